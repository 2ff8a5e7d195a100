package symbols

import (
	"bytes"
	"debug/elf"
	"slices"
	"strings"
)

// slot is where a loader writes which code an IFUNC chose: an entry of a global
// offset table, or a pointer in data.
type slot struct {
	at       uint64 // address in the file that has the slot
	resolver uint64 // address in the file that has the IFUNC
}

// Bounds on what is read of one file's relocations.
const (
	maxSlots = 1 << 16 // slots that are kept
	maxNamed = 1 << 20 // relocations of which the symbol is looked at
)

// relocations are the types that fill slots on a machine (the psABIs): irelative
// with what the code at its addend chooses, the others with the address of a symbol.
type relocations struct {
	irelative uint32
	named     [3]uint32 // JUMP_SLOT, GLOB_DAT, and an address in data
}

var relocationsOf = map[elf.Machine]relocations{
	elf.EM_X86_64: {
		uint32(elf.R_X86_64_IRELATIVE),
		[3]uint32{uint32(elf.R_X86_64_JMP_SLOT), uint32(elf.R_X86_64_GLOB_DAT), uint32(elf.R_X86_64_64)},
	},
	elf.EM_386: {
		uint32(elf.R_386_IRELATIVE),
		[3]uint32{uint32(elf.R_386_JMP_SLOT), uint32(elf.R_386_GLOB_DAT), uint32(elf.R_386_32)},
	},
	elf.EM_AARCH64: {
		uint32(elf.R_AARCH64_IRELATIVE),
		[3]uint32{uint32(elf.R_AARCH64_JUMP_SLOT), uint32(elf.R_AARCH64_GLOB_DAT), uint32(elf.R_AARCH64_ABS64)},
	},
}

// relocationTable is a piece of the file that holds relocations.
type relocationTable struct {
	off, size uint64
	addends   bool // RELA; in REL the addend stands in the slot
}

// relocationTables are those that a loader goes through: of the dynamic segment; of
// a static program, which has none and relocates itself, the sections in memory.
func (im *image) relocationTables(tags map[elf.DynTag]uint64) (ts []relocationTable) {
	add := func(addr, size uint64, addends bool) {
		if off, ok := im.fileOffset(addr, 0); ok && size > 0 && within(off, size, im.size) {
			ts = append(ts, relocationTable{off, size, addends})
		}
	}
	if len(tags) > 0 {
		// The first so many shift what is there, and name nothing.
		addSome := func(addr, size, shifts elf.DynTag, addends bool) {
			skip := min(tags[shifts], tags[size]/im.relocationSize(addends)) * im.relocationSize(addends)
			add(tags[addr]+skip, tags[size]-skip, addends)
		}
		addSome(elf.DT_RELA, elf.DT_RELASZ, elf.DT_RELACOUNT, true)
		addSome(elf.DT_REL, elf.DT_RELSZ, elf.DT_RELCOUNT, false)
		add(tags[elf.DT_JMPREL], tags[elf.DT_PLTRELSZ], elf.DynTag(tags[elf.DT_PLTREL]) == elf.DT_RELA)
		return ts
	}
	for _, s := range im.sections {
		if s.flags&elf.SHF_ALLOC != 0 && (s.typ == elf.SHT_RELA || s.typ == elf.SHT_REL) {
			add(s.addr, s.size, s.typ == elf.SHT_RELA)
		}
	}
	return ts
}

// mentions tells whether one of the names is among a file's dynamic strings. Most
// files import none of those that are looked for, and this is soon known.
func (im *image) mentions(names []string) bool {
	tags, err := im.dynamicTags()
	if err != nil {
		return false
	}
	const most = 256 << 20 // bytes; known files have a hundredth
	off, ok := im.fileOffset(tags[elf.DT_STRTAB], 0)
	if size := tags[elf.DT_STRSZ]; ok && size <= most {
		text, err := im.bytes(off, size, "dynamic string table")
		return err == nil && slices.ContainsFunc(names, func(name string) bool {
			return bytes.Contains(text, []byte(name+"\x00")) // it may be the end of another
		})
	}
	return false
}

// slots finds the slots of a file for the IFUNCs of one that may be another. own
// says that it is the same: its nameless slots count as well.
func (im *image) slots(of *indirect, own bool) ([]slot, error) {
	tags, err := im.dynamicTags()
	if err != nil {
		return nil, err
	}
	r := slotReader{im: im, types: relocationsOf[im.machine], of: of, own: own}
	if r.names, err = im.importNames(); err != nil {
		return nil, err
	}
	for _, t := range im.relocationTables(tags) {
		if err := r.read(t); err != nil {
			return nil, err
		}
	}
	return r.found, nil
}

type slotReader struct {
	im    *image
	types relocations
	of    *indirect
	own   bool
	names *table // nil if there are none
	named int
	found []slot
}

// relocationSize is the bytes of one relocation: two words, or three.
func (im *image) relocationSize(addends bool) uint64 {
	size := uint64(8)
	if im.is64 {
		size = 16
	}
	if addends {
		size += size / 2
	}
	return size
}

func (r *slotReader) read(t relocationTable) error {
	size := r.im.relocationSize(t.addends)
	n := t.size / size * size
	for done := uint64(0); done < n; {
		b, err := r.im.bytes(t.off+done, min(chunk/size*size, n-done), "table of relocations")
		if err != nil {
			return err
		}
		done += uint64(len(b))
		for ; len(b) > 0 && len(r.found) < maxSlots; b = b[size:] {
			r.add(b[:size], t.addends)
		}
	}
	return nil
}

// add keeps a relocation that fills a slot for an IFUNC.
func (r *slotReader) add(b []byte, addends bool) {
	var at, addend uint64
	var typ, symbol uint32
	if r.im.is64 {
		at, typ, symbol = order.Uint64(b), order.Uint32(b[8:]), order.Uint32(b[12:])
	} else {
		at, typ, symbol = uint64(order.Uint32(b)), order.Uint32(b[4:])&0xff, order.Uint32(b[4:])>>8
	}
	switch {
	case typ == r.types.irelative && r.own:
	case (typ == r.types.named[0] || typ == r.types.named[1] || typ == r.types.named[2]) && r.names != nil:
	default:
		return
	}
	switch {
	case addends && r.im.is64:
		addend = order.Uint64(b[16:])
	case addends:
		addend = uint64(order.Uint32(b[8:]))
	case typ == r.types.irelative || typ == r.types.named[2]:
		addend = r.inPlace(at)
	}
	resolver := addend
	if typ != r.types.irelative {
		if addend != 0 {
			return // an address inside
		}
		resolver = r.of.resolverOf(r.symbol(symbol))
	}
	if _, known := r.of.resolvers[resolver]; known {
		r.found = append(r.found, slot{at, resolver})
	}
}

// inPlace is what the file has in a slot.
func (r *slotReader) inPlace(at uint64) uint64 {
	off, ok := r.im.fileOffset(at, 0)
	if !ok {
		return 0
	}
	size := uint64(4)
	if r.im.is64 {
		size = 8
	}
	b, err := r.im.bytes(off, size, "data")
	if err != nil {
		return 0
	}
	return word(b)
}

// word is a pointer of 4 or 8 bytes.
func word(b []byte) uint64 {
	if len(b) == 4 {
		return uint64(order.Uint32(b))
	}
	return order.Uint64(b)
}

// symbol is the name and the version of a dynamic symbol.
func (r *slotReader) symbol(i uint32) Symbol {
	size := uint64(16)
	if r.im.is64 {
		size = 24
	}
	if r.named++; uint64(i) >= r.names.n || r.named > maxNamed {
		return Symbol{}
	}
	b, err := r.im.bytes(r.names.off+uint64(i)*size, 4, "dynamic symbol table")
	if err != nil {
		return Symbol{}
	}
	return r.names.versioned(r.names.name(order.Uint32(b)), uint64(i))
}

// importNames is the dynamic symbols, with the versions that the file wants of
// others beside its own.
func (im *image) importNames() (*table, error) {
	t, err := im.dynamicTable()
	if err != nil || t == nil {
		return nil, err
	}
	if t.defined == nil {
		t.defined = map[uint16]string{}
	}
	for i, asked := range im.asked(t) {
		if asked.Version != "" {
			t.defined[i] = strings.Clone(asked.Version)
		}
	}
	return t, nil
}
