package symbols

import (
	"cmp"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// read fills f from f.r.
func (f *File) read() (err error) {
	im, typ, err := readImage(f.r, f.size)
	if err != nil {
		return err
	}
	if f.process != nil {
		im.budget = f.process.budget
	}
	defer func() {
		if f.took = im.took; err != nil {
			im.budget.give(f.took)
		}
	}()
	if err := im.check(typ); err != nil {
		return err
	}
	f.Machine, f.Class = im.machine, elf.ELFCLASS32
	if im.is64 {
		f.Class = elf.ELFCLASS64
	}
	if err := f.readNotes(im); err != nil {
		return err
	}
	ts, err := im.tables()
	if err != nil {
		return err
	}
	sc, n := scan{im: im}, 0
	for _, t := range ts {
		n += int(t.n)
	}
	sc.symbols = make([]symbol, 0, n)
	for _, t := range ts {
		if err := sc.read(t); err != nil {
			return err
		}
	}
	if f.Stripped = !slices.ContainsFunc(ts, func(t *table) bool { return !t.dynamic }); f.Stripped {
		f.findNames(im, ts, &sc)
	} else {
		f.Source = OwnTable
	}
	f.Unwinds, f.Switches = sc.unwinds, sc.switches
	if f.Library, err = im.library(typ); err != nil {
		return err
	}
	markers, err := f.readMarkers(im)
	if err != nil {
		return err
	}
	f.resolve(&sc)
	f.Functions = slices.Concat(im.functions(sc.symbols), withoutCode(sc.others), markers)
	return nil
}

// check refuses what is ELF and yet not something that runs.
func (im *image) check(typ elf.Type) error {
	switch typ {
	case elf.ET_EXEC, elf.ET_DYN:
	case elf.ET_REL:
		return errors.New("is an object file that is not linked yet; name the program or library made from it")
	case elf.ET_CORE:
		return errors.New("is a core dump; name the program that left it")
	default:
		return fmt.Errorf("is damaged: it is ELF of the unknown type %d; get a whole copy", typ)
	}
	if im.debugOnly() {
		return errors.New("holds only debug information and no code; name the program or library that it belongs to")
	}
	for _, s := range im.segments {
		if s.typ == elf.PT_LOAD && !within(s.off, s.filesz, im.size) {
			return behindEnd("code or data")
		}
	}
	if im.overlaps() {
		return errors.New("is damaged: two of its segments would be at the same address in memory; get a whole copy")
	}
	return nil
}

// debugOnly says that the code was taken away, into another file.
func (im *image) debugOnly() bool {
	code := 0
	for _, s := range im.sections {
		if s.flags&elf.SHF_EXECINSTR == 0 {
			continue
		}
		if s.typ != elf.SHT_NOBITS {
			return false
		}
		code++
	}
	return code > 0
}

// readNotes finds the build id, and whether the Go compiler made the file. Its
// marks are left in a stripped file: a note, and sections by their names.
func (f *File) readNotes(im *image) error {
	for _, s := range im.segments {
		if s.typ == elf.PT_NOTE {
			if err := f.note(im, s.off, s.filesz, s.align); err != nil {
				return err
			}
		}
	}
	names, err := im.sectionNames()
	if err != nil {
		return err
	}
	t := table{strings: names}
	for _, s := range im.sections {
		switch t.name(s.name) {
		case ".go.buildinfo", ".note.go.buildid", ".gopclntab":
			f.Go = true
		case ".note.gnu.build-id":
			if f.BuildID == "" && s.typ == elf.SHT_NOTE {
				if err := f.note(im, s.off, s.size, s.align); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (im *image) sectionNames() (string, error) {
	if uint64(im.nameTable) >= uint64(len(im.sections)) {
		return "", nil
	}
	const most = 1 << 20 // bytes
	s := im.sections[im.nameTable]
	if s.typ != elf.SHT_STRTAB {
		return "", nil
	}
	if s.size > most {
		return "", fmt.Errorf("has names of sections of %d MB, more than is read", s.size>>20)
	}
	var err error
	if im.nameText == "" {
		im.nameText, err = im.text(s.off, s.size, "table of section names")
	}
	return im.nameText, err
}

// note reads one segment or section of notes.
func (f *File) note(im *image, off, size, align uint64) error {
	b, err := im.bytes(off, min(size, maxNotes), "notes")
	if err != nil {
		return err
	}
	const buildID = 3 // NT_GNU_BUILD_ID
	for n := range notes(b, align) {
		switch n.owner {
		case "GNU":
			if n.typ == buildID && f.BuildID == "" && len(n.desc) <= 64 {
				f.BuildID = hex.EncodeToString(n.desc)
			}
		case "Go":
			f.Go = true
		}
	}
	return nil
}

// note is one of an ELF file.
type note struct {
	owner string
	typ   uint32
	desc  []byte
}

// notes goes through the notes in b, up to the first that is not whole: padding, or a
// note of another make, which is no reason to refuse the file.
func notes(b []byte, align uint64) iter.Seq[note] {
	if align != 8 {
		align = 4
	}
	return func(yield func(note) bool) {
		for len(b) >= 12 {
			nameSize, descSize, typ := uint64(order.Uint32(b)), uint64(order.Uint32(b[4:])), order.Uint32(b[8:])
			total := uint64(len(b))
			desc := roundUp(12+nameSize, align)
			if !within(12, nameSize, total) || !within(desc, descSize, total) {
				return
			}
			owner := strings.TrimRight(string(b[12:12+nameSize]), "\x00")
			if !yield(note{owner, typ, b[desc : desc+descSize]}) {
				return
			}
			b = b[min(roundUp(desc+descSize, align), total):]
		}
	}
}

func roundUp(n, to uint64) uint64 { return (n + to - 1) &^ (to - 1) }

// functions makes one Function of each address.
func (im *image) functions(all []symbol) []Function {
	places := make([]place, len(all))
	for i := range all {
		places[i] = place{all[i].addr, int32(i)}
	}
	places = byAddress(places)
	// The symbols of one address stand together now. Each part of them begins with
	// another address, and its functions at first.
	const each = 8192 // symbols
	type part struct{ from, to, first int }
	var parts []part
	count, from, first := 0, 0, 0
	for i := range places {
		if i > 0 && places[i].addr == places[i-1].addr {
			continue
		}
		if i-from >= each {
			parts = append(parts, part{from, i, first})
			from, first = i, count
		}
		count++
	}
	parts = append(parts, part{from, len(places), first})
	fs := make([]Function, count)
	inParallel(len(parts), func() func(i int) {
		var same []symbol
		return func(i int) {
			p := parts[i]
			to := fs[p.first:]
			for places := places[p.from:p.to]; len(places) > 0; to = to[1:] {
				same = same[:0]
				n := 0
				for ; n < len(places) && places[n].addr == places[0].addr; n++ {
					same = append(same, all[places[n].i])
				}
				im.function(&to[0], same)
				places = places[n:]
			}
		}
	})
	return fs
}

// place is the address of a symbol, smaller than the symbol.
type place struct {
	addr uint64
	i    int32 // of the symbol
}

// byAddress sorts places, eleven bits at a time from the lowest: addresses of one
// file have few bits, and a sort that compares takes five times as long.
func byAddress(places []place) []place {
	const digit = 11
	var highest uint64
	ordered := true
	for i := range places {
		highest = max(highest, places[i].addr)
		ordered = ordered && (i == 0 || places[i-1].addr <= places[i].addr)
	}
	if ordered {
		return places
	}
	other := make([]place, len(places))
	for shift := 0; highest>>shift > 0 && shift < 64; shift += digit {
		var next [1 << digit]int // place of the next with these bits
		for i := range places {
			next[places[i].addr>>shift&(1<<digit-1)]++
		}
		sum := 0
		for i, n := range next {
			next[i], sum = sum, sum+n
		}
		for _, p := range places {
			at := &next[p.addr>>shift&(1<<digit-1)]
			other[*at] = p
			*at++
		}
		places, other = other, places
	}
	return places
}

// function makes a Function of the symbols of one address.
func (im *image) function(f *Function, same []symbol) {
	if len(same) > 1 && slices.ContainsFunc(same, func(s symbol) bool { return !s.untyped }) {
		same = slices.DeleteFunc(same, func(s symbol) bool { return s.untyped })
	}
	f.Addr = Addr(same[0].addr)
	off, _ := im.fileOffset(same[0].addr, elf.PF_X)
	f.Offset = Offset(off)
	for i := range same {
		f.Size = max(f.Size, same[i].size)
		if same[i].indirect {
			f.Place = Resolver
		}
		f.Chosen = f.Chosen || same[i].chosen
	}
	f.setNames(same)
}

// withoutCode makes a Function of each name that has no code here.
func withoutCode(all []symbol) []Function {
	slices.SortFunc(all, func(a, b symbol) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.place, b.place), cmp.Compare(a.addr, b.addr))
	})
	all = slices.CompactFunc(all, func(a, b symbol) bool {
		return a.Name == b.Name && a.place == b.place && a.addr == b.addr
	})
	fs := make([]Function, len(all))
	for i, s := range all {
		fs[i] = Function{Symbol: s.Symbol, Addr: Addr(s.addr), Size: s.size, Place: s.place}
	}
	return fs
}

// setNames gives a function the names of the symbols of its address.
func (f *Function) setNames(same []symbol) {
	if len(same) == 1 {
		f.Symbol = same[0].Symbol
		return
	}
	if len(same) == 2 && same[0].Name == same[1].Name && (same[0].Version == "" || same[1].Version == "") {
		f.Symbol = same[0].Symbol // nearly all that have two
		if f.Version == "" {
			f.Symbol = same[1].Symbol
		}
		return
	}
	// The two tables have most names twice, and only one has the versions: of
	// the same name, one without a version comes last and goes.
	slices.SortFunc(same, func(a, b symbol) int {
		return cmp.Or(
			strings.Compare(a.Name, b.Name),
			strings.Compare(b.Version, a.Version),
			cmp.Compare(a.rank, b.rank),
		)
	})
	same = slices.CompactFunc(same, func(a, b symbol) bool {
		return a.Name == b.Name && (a.Version == b.Version || a.Version == "" || b.Version == "")
	})
	if len(same) > 1 {
		slices.SortStableFunc(same, func(a, b symbol) int {
			return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(len(a.Name), len(b.Name)), strings.Compare(a.Name, b.Name))
		})
		f.Aliases = make([]Symbol, 0, len(same)-1)
		for _, s := range same[1:] {
			f.Aliases = append(f.Aliases, s.Symbol)
		}
	}
	f.Symbol = same[0].Symbol
}
