package symbols

import (
	"debug/elf"
	"slices"
	"sync"
)

// Import is what a file says of a name that it has from elsewhere. Both are empty
// where it was linked with a library without versions.
type Import struct {
	Version string // "GLIBC_2.34"
	Library string // by its own name, "libc.so.6": where it was when the file was linked
}

// importCache is read at the first need.
type importCache struct {
	once sync.Once
	all  map[string]Import
}

// Import is what the file says of a function that it imports.
func (f *File) Import(fn *Function) Import {
	f.wants.once.Do(func() {
		if f.r == nil {
			return
		}
		if im, _, err := readImage(f.r, f.size); err == nil {
			f.wants.all = im.imports()
		}
	})
	return f.wants.all[fn.Name]
}

// imports is the versions that are asked for, by name (.gnu.version_r).
func (im *image) imports() map[string]Import {
	t, err := im.dynamicSymbols()
	if err != nil || t == nil {
		return nil
	}
	asked := im.asked(t)
	all := make(map[string]Import, len(asked))
	_ = im.eachDynamic(t, func(s dynamicSymbol) bool { // what could be read of a damaged table counts
		if v, ok := asked[s.version&^hidden]; ok && s.section == elf.SHN_UNDEF {
			all[t.name(s.name)] = v
		}
		return true
	})
	return all
}

// dynamicSymbols is the table by which the loader finds functions, or nil.
func (im *image) dynamicSymbols() (*table, error) {
	t, err := im.sectionTable(elf.SHT_DYNSYM)
	if t != nil || err != nil {
		return t, err
	}
	return im.dynamicTable()
}

// dynamicSymbol is an entry of that table.
type dynamicSymbol struct {
	name    uint32
	info    byte
	other   byte
	section elf.SectionIndex
	addr    uint64
	version uint16 // index of its version, and the mark hidden
}

// hidden marks a version that is not the default.
const hidden = 0x8000

// eachDynamic goes through a table of dynamic symbols until do says no.
func (im *image) eachDynamic(t *table, do func(s dynamicSymbol) bool) error {
	size := uint64(16)
	if im.is64 {
		size = 24
	}
	const per = 4096
	for first := uint64(0); first < t.n; first += per {
		n := min(per, t.n-first)
		b, err := im.bytes(t.off+first*size, n*size, "dynamic symbol table")
		if err != nil {
			return err
		}
		for i := range n {
			e := b[i*size:]
			s := dynamicSymbol{name: order.Uint32(e)}
			if im.is64 {
				s.info, s.other, s.section, s.addr = e[4], e[5], elf.SectionIndex(order.Uint16(e[6:])), order.Uint64(e[8:])
			} else {
				s.addr, s.info, s.other, s.section = uint64(order.Uint32(e[4:])), e[12], e[13], elf.SectionIndex(order.Uint16(e[14:]))
			}
			if within((first+i)*2, 2, uint64(len(t.versions))) {
				s.version = order.Uint16(t.versions[(first+i)*2:])
			}
			if !do(s) {
				return nil
			}
		}
	}
	return nil
}

// asked reads the versions that the file wants of its libraries, by index.
func (im *image) asked(t *table) map[uint16]Import {
	var b []byte
	if at := slices.IndexFunc(im.sections, func(s section) bool { return s.typ == elf.SHT_GNU_VERNEED }); at >= 0 {
		b, _ = im.bytes(im.sections[at].off, min(im.sections[at].size, maxNotes), "list of versions")
	} else if tags, err := im.dynamicTags(); err == nil {
		if o, ok := im.fileOffset(tags[elf.DT_VERNEED], 0); ok && tags[elf.DT_VERNEED] != 0 && o < im.size {
			b, _ = im.bytes(o, min(im.size-o, maxNotes), "list of versions")
		}
	}
	return askedIn(b, t)
}

// askedIn reads a chain of files, each with a chain of versions. The steps between
// them are the file's word: each must go forward, and all together are bounded.
func askedIn(b []byte, t *table) map[uint16]Import {
	const entry, most = 16, 1 << 16
	all := map[uint16]Import{}
	for n := 0; len(b) >= entry; {
		library := t.name(order.Uint32(b[4:]))
		versions, next := uint64(order.Uint32(b[8:])), uint64(order.Uint32(b[12:]))
		for v := b[min(versions, uint64(len(b))):]; len(v) >= entry && n < most; n++ {
			all[order.Uint16(v[6:])&^hidden] = Import{t.name(order.Uint32(v[8:])), library}
			step := uint64(order.Uint32(v[12:]))
			if step == 0 || step >= uint64(len(v)) {
				break
			}
			v = v[step:]
		}
		if next == 0 || next >= uint64(len(b)) || n >= most {
			break
		}
		b = b[next:]
	}
	return all
}

// exported is the address of the function that the loader finds by a name, of the
// version asked for: empty means the default.
func (im *image) exported(name, version string) (addr uint64, ok bool) {
	t, err := im.dynamicSymbols()
	if err != nil || t == nil {
		return 0, false
	}
	_ = im.eachDynamic(t, func(s dynamicSymbol) bool {
		if s.section == elf.SHN_UNDEF || elf.ST_BIND(s.info) == elf.STB_LOCAL || t.name(s.name) != name {
			return true
		}
		switch elf.ST_TYPE(s.info) {
		case elf.STT_FUNC, elf.STT_GNU_IFUNC, elf.STT_NOTYPE:
		default:
			return true
		}
		if v := elf.ST_VISIBILITY(s.other); v == elf.STV_HIDDEN || v == elf.STV_INTERNAL {
			return true
		}
		has := t.defined[s.version&^hidden]
		switch {
		case version != "" && has != "" && has != version, version == "" && s.version&hidden != 0:
			return true
		}
		addr, ok = s.addr, true
		return false
	})
	return addr, ok
}

// Dynamic is the first of the names wanted that the loader sees in the file, and
// whether the file has it itself rather than from another.
func (f *File) Dynamic(wanted func(name string) bool) (name string, own bool) {
	if f.r == nil {
		return "", false
	}
	im, _, err := readImage(f.r, f.size)
	if err != nil {
		return "", false
	}
	t, err := im.dynamicSymbols()
	if err != nil || t == nil {
		return "", false
	}
	_ = im.eachDynamic(t, func(s dynamicSymbol) bool {
		if text := t.name(s.name); wanted(text) {
			name, own = text, s.section != elf.SHN_UNDEF
			return false
		}
		return true
	})
	return name, own
}
