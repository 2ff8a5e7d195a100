package symbols

import (
	"debug/elf"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxName is the longest name that is taken for one, in bytes. Without it, a
// string table without a NUL would be searched to its end for every symbol.
const maxName = 16 << 10

// table is a symbol table and what belongs to it.
type table struct {
	off, n   uint64 // in the file; number of symbols
	strings  string
	dynamic  bool
	versions []byte            // of each symbol, 16 bits; may be shorter or empty
	defined  map[uint16]string // version definitions of this file, by index
}

// symbol is one defined function symbol on its way to a Function.
type symbol struct {
	Symbol
	addr, size uint64
	rank       rank
	place      Place
	indirect   bool
	chosen     bool // by an IFUNC whose name it is
	untyped    bool
}

// rank orders the names of one address, the lowest first.
type rank uint8

const (
	notDynamic rank = 1 << iota // only in .symtab
	underscore                  // _name: not meant for others
	oldVersion                  // name@version
	local                       // not visible to other files
)

func rankOf(s Symbol, global, dynamic bool) rank {
	var r rank
	if !dynamic {
		r |= notDynamic
	}
	if strings.HasPrefix(s.Name, "_") && !mangled(s.Name) {
		r |= underscore
	}
	if s.old() {
		r |= oldVersion
	}
	if !global {
		r |= local
	}
	return r
}

// scan is what one pass over the symbol tables finds.
type scan struct {
	im       *image
	symbols  []symbol
	others   []symbol // those without code here
	unwinds  bool
	switches bool
	named    uint64 // bytes of names that can still be long
}

// read goes once through a table, in pieces on all CPUs. Names are parts of its one
// string.
func (sc *scan) read(t *table) error {
	const each = 8192 // symbols
	n := int((t.n + each - 1) / each)
	parts, errs := make([]scan, n), make([]error, n)
	sc.symbols = slices.Grow(sc.symbols, int(t.n))
	room := sc.symbols[len(sc.symbols):cap(sc.symbols)]
	inParallel(n, func() func(i int) {
		buf := make([]byte, min(each, t.n)*sc.im.symbolSize())
		return func(i int) {
			from := i * each
			to := min(from+each, int(t.n))
			parts[i] = scan{im: sc.im, symbols: room[from:from:to], named: t.longNames(n)}
			errs[i] = parts[i].readPart(t, uint64(from), uint64(to-from), buf)
		}
	})
	for i := range parts {
		if errs[i] != nil {
			return errs[i]
		}
		p := &parts[i]
		sc.symbols, sc.others = append(sc.symbols, p.symbols...), append(sc.others, p.others...)
		sc.unwinds, sc.switches = sc.unwinds || p.unwinds, sc.switches || p.switches
	}
	return nil
}

// readPart reads n symbols from the first on, by way of buf.
func (sc *scan) readPart(t *table, first, n uint64, buf []byte) error {
	size := sc.im.symbolSize()
	buf = buf[:n*size]
	if err := sc.im.fill(buf, t.off+first*size, "symbol table"); err != nil {
		return err
	}
	for i := range n {
		sc.add(t, first+i, buf[i*size:(i+1)*size])
	}
	return nil
}

// symbolSize is the bytes of a symbol in a table.
func (im *image) symbolSize() uint64 {
	if im.is64 {
		return 24
	}
	return 16
}

// add keeps the i-th symbol of t if it is a function.
func (sc *scan) add(t *table, i uint64, b []byte) {
	var addr, size uint64
	var info byte
	var shndx elf.SectionIndex
	if sc.im.is64 {
		info, shndx = b[4], elf.SectionIndex(order.Uint16(b[6:]))
		addr, size = order.Uint64(b[8:]), order.Uint64(b[16:])
	} else {
		addr, size = uint64(order.Uint32(b[4:])), uint64(order.Uint32(b[8:]))
		info, shndx = b[12], elf.SectionIndex(order.Uint16(b[14:]))
	}
	if shndx == elf.SHN_UNDEF {
		if name := t.name(order.Uint32(b)); t.dynamic {
			sc.unwinds = sc.unwinds || importsUnwinder(name)
			sc.switches = sc.switches || importsContexts(name)
			if elf.ST_TYPE(info) == elf.STT_FUNC && name != "" {
				sc.others = append(sc.others, symbol{Symbol: Symbol{Name: name}, place: Imported})
			}
		}
		return
	}
	global := elf.ST_BIND(info) != elf.STB_LOCAL
	typ := elf.ST_TYPE(info)
	switch typ {
	case elf.STT_FUNC, elf.STT_GNU_IFUNC:
		if shndx == elf.SHN_ABS || shndx == elf.SHN_COMMON {
			return
		}
	case elf.STT_NOTYPE:
		if !global || !sc.im.inCode(shndx, addr) {
			return
		}
	default:
		return
	}
	name := sc.short(t.name(order.Uint32(b)))
	if name == "" {
		return
	}
	if _, ok := sc.im.fileOffset(addr, elf.PF_X); !ok {
		if typ == elf.STT_FUNC {
			s := t.versioned(name, i)
			sc.others = append(sc.others, symbol{Symbol: s, addr: addr, size: size, place: NoCode})
		}
		return
	}
	sc.unwinds = sc.unwinds || definesThrow(name)
	sc.switches = sc.switches || definesCoroutines(name)
	s := t.versioned(name, i)
	sc.symbols = append(sc.symbols, symbol{
		Symbol: s, addr: addr, size: size, rank: rankOf(s, global, t.dynamic),
		indirect: typ == elf.STT_GNU_IFUNC, untyped: typ == elf.STT_NOTYPE,
	})
}

// inCode says whether an address is inside the section that a symbol names, and
// that section holds instructions. It keeps out the linker's marks, such as
// _etext and __executable_start.
func (im *image) inCode(i elf.SectionIndex, addr uint64) bool {
	if len(im.sections) == 0 {
		return i < elf.SHN_LORESERVE
	}
	if int(i) >= len(im.sections) || i >= elf.SHN_LORESERVE {
		return false
	}
	s := &im.sections[i]
	return s.flags&elf.SHF_EXECINSTR != 0 && addr >= s.addr && addr-s.addr < s.size
}

// name is the string that begins at off: empty where there is none.
func (t *table) name(off uint32) string {
	if uint64(off) >= uint64(len(t.strings)) {
		return ""
	}
	s := t.strings[off:]
	n := strings.IndexByte(s[:min(len(s), maxName)], 0)
	if n < 0 {
		if len(s) >= maxName {
			return ""
		}
		n = len(s)
	}
	return s[:n]
}

// longNames is how many bytes of names one of n parts of a table may have before they
// are cut. Names can be ends of others: millions could have thousands of bytes each, of
// a table of strings that has few.
func (t *table) longNames(n int) uint64 {
	return 4<<20 + 8*uint64(len(t.strings))/uint64(n)
}

// short cuts a name once too many long ones were read.
func (sc *scan) short(name string) string {
	const shortest = 256 // bytes
	if n := uint64(len(name)); n <= sc.named {
		sc.named -= n
		return name
	}
	return name[:min(len(name), shortest)]
}

// versioned finds the version of the i-th symbol. A linker writes it into the
// names of .symtab, and into a table beside .dynsym.
func (t *table) versioned(name string, i uint64) Symbol {
	if !t.dynamic {
		if len(t.defined) == 0 {
			return Symbol{Name: name}
		}
		at := strings.IndexByte(name, '@')
		if at <= 0 {
			return Symbol{Name: name}
		}
		version := strings.TrimPrefix(name[at+1:], "@")
		for _, v := range t.defined {
			if v == version {
				return Symbol{Name: name[:at], Version: v, Default: name[at+1] == '@'}
			}
		}
		return Symbol{Name: name}
	}
	if !within(i*2, 2, uint64(len(t.versions))) {
		return Symbol{Name: name}
	}
	v := order.Uint16(t.versions[i*2:])
	version, ok := t.defined[v&^hidden]
	if !ok {
		return Symbol{Name: name}
	}
	return Symbol{Name: name, Version: version, Default: v&hidden == 0}
}

// tables finds the symbol tables: by section, or by the dynamic segment where
// the sections were taken away.
func (im *image) tables() ([]*table, error) {
	dynamic, err := im.sectionTable(elf.SHT_DYNSYM)
	if err != nil {
		return nil, err
	}
	if dynamic == nil {
		if dynamic, err = im.dynamicTable(); err != nil {
			return nil, err
		}
	}
	static, err := im.sectionTable(elf.SHT_SYMTAB)
	if err != nil {
		return nil, err
	}
	var ts []*table
	if dynamic != nil {
		ts = append(ts, dynamic)
	}
	if static != nil {
		if dynamic != nil {
			static.defined = dynamic.defined
		}
		ts = append(ts, static)
	}
	return ts, nil
}

// sectionTable reads the first symbol table of a type: a linker writes one.
func (im *image) sectionTable(typ elf.SectionType) (*table, error) {
	for _, s := range im.sections {
		if s.typ != typ {
			continue
		}
		what := map[bool]string{true: "dynamic symbol table", false: "symbol table"}[typ == elf.SHT_DYNSYM]
		if !within(s.off, s.size, im.size) {
			return nil, behindEnd(what)
		}
		if s.flags&elf.SHF_COMPRESSED != 0 {
			return nil, errors.New("has a compressed symbol table, which no kernel or debugger reads; get an uncompressed copy")
		}
		if uint64(s.link) >= uint64(len(im.sections)) || im.sections[s.link].typ != elf.SHT_STRTAB {
			return nil, fmt.Errorf("is damaged: its %s names no string table; get a whole copy", what)
		}
		names := im.sections[s.link]
		text, err := im.text(names.off, names.size, "string table")
		if err != nil {
			return nil, err
		}
		t, err := im.newTable(s.off, s.size, text)
		if err != nil || typ == elf.SHT_SYMTAB {
			return t, err
		}
		t.dynamic = true
		return t, im.sectionVersions(t)
	}
	return nil, nil
}

func (im *image) newTable(off, size uint64, text string) (*table, error) {
	t := &table{off: off, n: size / im.symbolSize(), strings: text}
	if t.n > maxSymbols {
		return nil, fmt.Errorf("has a table of %d million symbols, more than is read", t.n/1e6)
	}
	return t, nil
}

// sectionVersions reads the versions of the dynamic symbols.
func (im *image) sectionVersions(t *table) error {
	for _, s := range im.sections {
		switch s.typ {
		case elf.SHT_GNU_VERSYM:
			b, err := im.bytes(s.off, min(s.size, t.n*2), "table of symbol versions")
			if err != nil {
				return err
			}
			t.versions = b
		case elf.SHT_GNU_VERDEF:
			b, err := im.bytes(s.off, min(s.size, maxNotes), "list of versions")
			if err != nil {
				return err
			}
			t.defined = definitions(b, t)
		}
	}
	return nil
}

// definitions reads a chain of version definitions. The steps between them are
// the file's word: each must go forward.
func definitions(b []byte, t *table) map[uint16]string {
	const base = 1 // VER_FLG_BASE: the name of the library itself
	defined := make(map[uint16]string)
	for len(b) >= 20 {
		flags, index := order.Uint16(b[2:]), order.Uint16(b[4:])
		aux, next := uint64(order.Uint32(b[12:])), uint64(order.Uint32(b[16:]))
		if flags&base == 0 && within(aux, 8, uint64(len(b))) {
			if v := t.name(order.Uint32(b[aux:])); v != "" {
				defined[index&0x7fff] = v
			}
		}
		if next == 0 || next >= uint64(len(b)) {
			break
		}
		b = b[next:]
	}
	return defined
}
