package symbols

import (
	"bytes"
	"cmp"
	"debug/elf"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
)

// maxMarkers is how many bytes of notes about usdt probes are read of a file, several
// times what 50,000 sites take.
const maxMarkers = 16 << 20

// marker is a usdt probe: the sites that the author of a program marked with one name.
// Each is a nop in the code, with a note about it (SystemTap's sys/sdt.h).
type marker struct {
	addr   Addr    // of the first site
	points []Point // of the sites that can be probed, in order of offset
	left   int     // how many others there are
	why    string  // of one of them
}

// markedNops are what a compiler puts where a marker is. A breakpoint on anything else
// would mean that the note is not about this code. Of a nop that a longer one follows
// only the first is taken: Linux 6.18 to 7.1 turn a 5-byte nop into a call, which
// overwrites what lies below the stack.
var markedNops = map[elf.Machine][]byte{
	elf.EM_X86_64: {0x90}, elf.EM_386: {0x90}, elf.EM_AARCH64: {0x1f, 0x20, 0x03, 0xd5},
}

// Markers is the usdt probes of the file, in order of name, which is provider:name.
func (f *File) Markers() []Function {
	return f.Functions[sort.Search(len(f.Functions), func(i int) bool { return f.Functions[i].Place >= Marker }):]
}

// MarkersNamed finds the usdt probes of exactly this name: provider:name, or the
// name alone, which several providers may have.
func (f *File) MarkersNamed(name string) (found []*Function) {
	all := f.Markers()
	for i := range all {
		if all[i].Name == name {
			return []*Function{&all[i]}
		}
		if _, bare, _ := strings.Cut(all[i].Name, ":"); bare == name {
			found = append(found, &all[i])
		}
	}
	return found
}

// MarkersLike finds the usdt probes that a pattern means: one for the name, or two with a colon between
// them, for provider and name.
func (f *File) MarkersLike(pattern string) (found []*Function) {
	forProvider, forName, both := strings.Cut(pattern, ":")
	if !both {
		forProvider, forName = "*", pattern
	}
	all := f.Markers()
	for i := range all {
		provider, name, _ := strings.Cut(all[i].Name, ":")
		if globMatch(forProvider, provider) && globMatch(forName, name) {
			found = append(found, &all[i])
		}
	}
	return found
}

// Unmarked is how many sites of a usdt probe have no breakpoint, and why one of them.
func (f *File) Unmarked(fn *Function) (sites int, why string) {
	if m := f.markers[fn.Name]; m != nil && fn.Place == Marker {
		return m.left, m.why
	}
	return 0, ""
}

// Guarded tells whether a usdt probe has a site at an offset, with a semaphore.
func (f *File) Guarded(at Offset) bool {
	for _, m := range f.markers {
		if i, found := slices.BinarySearchFunc(m.points, at, func(p Point, at Offset) int { return cmp.Compare(p.Offset, at) }); found && m.points[i].Semaphore != 0 {
			return true
		}
	}
	return false
}

// pointsOf are those of a usdt probe: none if it has none that can be probed.
func (f *File) pointsOf(fn *Function) []Point {
	if m := f.markers[fn.Name]; m != nil {
		return m.points
	}
	return nil
}

// readMarkers finds the usdt probes, and makes a Function of each.
func (f *File) readMarkers(im *image) ([]Function, error) {
	sites, err := im.sites()
	if err != nil || len(sites) == 0 {
		return nil, err
	}
	f.markers = map[string]*marker{}
	for i := range sites {
		s := &sites[i]
		m := f.markers[s.name]
		if m == nil {
			m = &marker{addr: Addr(s.addr)}
			f.markers[s.name] = m
		}
		point, why := im.point(s)
		if why == "" {
			m.points = append(m.points, point)
		} else {
			m.left, m.why = m.left+1, why
		}
	}
	fs := make([]Function, 0, len(f.markers))
	for name, m := range f.markers {
		slices.SortStableFunc(m.points, func(a, b Point) int { return cmp.Compare(a.Offset, b.Offset) })
		m.points = slices.CompactFunc(m.points, func(a, b Point) bool { return a.Offset == b.Offset })
		fn := Function{Symbol: Symbol{Name: name}, Addr: m.addr, Place: Marker}
		if len(m.points) > 0 {
			fn.Offset = m.points[0].Offset
		}
		fs = append(fs, fn)
	}
	slices.SortFunc(fs, func(a, b Function) int { return strings.Compare(a.Name, b.Name) })
	return fs, nil
}

// site is what a note says of one place.
type site struct {
	name            string // provider:name
	addr, semaphore uint64 // of which the second is 0 if there is none
	arguments       string
}

// sites reads all the notes: those of the section, or of segments where there is none.
func (im *image) sites() ([]site, error) {
	names, err := im.sectionNames()
	if err != nil {
		return nil, err
	}
	t := table{strings: names}
	var base uint64
	var parts []section
	for _, s := range im.sections {
		switch t.name(s.name) {
		case ".note.stapsdt":
			if s.typ == elf.SHT_NOTE {
				parts = append(parts, s)
			}
		case ".stapsdt.base":
			base = s.addr
		}
	}
	if len(parts) == 0 {
		for _, s := range im.segments {
			if s.typ == elf.PT_NOTE {
				parts = append(parts, section{off: s.off, size: min(s.filesz, maxNotes), align: s.align})
			}
		}
	}
	var sites []site
	read := map[[2]uint64]bool{} // thousands of headers can name one place
	room := uint64(maxMarkers)
	for _, p := range parts {
		at := [2]uint64{p.off, p.size}
		if read[at] {
			continue
		}
		read[at] = true
		if p.size > room {
			return nil, fmt.Errorf("has more than %d MB of notes about usdt probes, and no more is read", maxMarkers>>20)
		}
		room -= p.size
		b, err := im.bytes(p.off, p.size, "notes about usdt probes")
		if err != nil {
			return nil, err
		}
		const stapsdt = 3 // NT_STAPSDT
		for n := range notes(b, p.align) {
			if s, ok := im.site(n.desc, base); ok && n.owner == "stapsdt" && n.typ == stapsdt {
				sites = append(sites, s)
			}
		}
	}
	return sites, nil
}

// site reads one note: three addresses and three strings. The second address is where the
// section .stapsdt.base was when the note was written: if that has moved, as
// prelink moves all of a file, so have the others.
func (im *image) site(desc []byte, base uint64) (s site, ok bool) {
	word, mask := 4, uint64(math.MaxUint32)
	number := func(i int) uint64 { return uint64(order.Uint32(desc[4*i:])) }
	if im.is64 {
		word, mask = 8, math.MaxUint64
		number = func(i int) uint64 { return order.Uint64(desc[8*i:]) }
	}
	if len(desc) < 3*word {
		return s, false
	}
	texts := bytes.SplitN(desc[3*word:], []byte{0}, 4)
	if len(texts) < 3 || len(texts[0]) == 0 || len(texts[1]) == 0 || len(texts[0])+len(texts[1]) > maxName {
		return s, false
	}
	s = site{
		name: string(texts[0]) + ":" + string(texts[1]),
		addr: number(0), semaphore: number(2),
		arguments: Printable(string(texts[2][:min(len(texts[2]), maxName)])),
	}
	if noted := number(1); base != 0 && noted != 0 {
		s.addr = (s.addr + base - noted) & mask
		if s.semaphore != 0 {
			s.semaphore = (s.semaphore + base - noted) & mask
		}
	}
	return s, true
}

// point is where the breakpoint of a site goes, or why there can be none. The
// semaphore is 16 bits of data, at an even offset (Linux 6.18, uprobe_register) that
// has room in 32 bits (perf_event_attr.config).
func (im *image) point(s *site) (p Point, why string) {
	off, ok := im.fileOffset(s.addr, elf.PF_X)
	if !ok {
		return p, "its address is outside the code of the file"
	}
	nop := markedNops[im.machine]
	code, err := im.bytes(off, uint64(len(nop)), "code")
	if len(nop) == 0 || err != nil || !bytes.Equal(code, nop) {
		return p, "its address is not that of the nop which marks it"
	}
	p = Point{Offset: Offset(off), Arguments: s.arguments}
	if s.semaphore == 0 {
		return p, ""
	}
	first, ok1 := im.fileOffset(s.semaphore, elf.PF_W)
	second, ok2 := im.fileOffset(s.semaphore+1, elf.PF_W)
	if !ok1 || !ok2 || second != first+1 || first%2 != 0 || first == 0 || first > math.MaxUint32 {
		return p, "its semaphore is not where the kernel could raise it"
	}
	p.Semaphore = Offset(first)
	return p, ""
}
