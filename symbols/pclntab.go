package symbols

import (
	"debug/elf"
	"errors"
	"fmt"
	"strings"
)

// maxGoTable bounds the table of Go's functions, in bytes. The largest programs have
// some 100 MB.
const maxGoTable = 1 << 30

// The magic numbers of the table, by the version of Go that began to write them
// (internal/abi/symtab.go).
const (
	go12  = 0xfffffffb
	go116 = 0xfffffffa
	go118 = 0xfffffff0
	go120 = 0xfffffff1
)

// goTable is .gopclntab, which the runtime of Go needs for its stack traces, and
// which strip therefore leaves (runtime/symtab.go, pcHeader). All offsets in it are
// held against its size; debug/gosym panics where they are wrong.
type goTable struct {
	im       *image
	section  section
	word     uint64 // bytes of an address
	relative bool   // addresses are 32 bits from the beginning of the code

	text         uint64 // what its header says of that; 0 from Go 1.26 on
	n            uint64 // functions
	names        uint64 // where their names are
	namesEnd     uint64
	funcs, first uint64 // where what is known of each begins; where the list of addresses begins
}

// goFunctions reads the functions of a Go program from the table. Without one they
// are none.
func (im *image) goFunctions() ([]symbol, error) {
	var t *goTable
	sec, ok := im.sectionNamed(".gopclntab", ".data.rel.ro.gopclntab")
	if !ok {
		if t = im.lostGoTable(); t == nil {
			return nil, nil
		}
		return t.functions()
	}
	if !within(sec.off, sec.size, im.size) || sec.typ != elf.SHT_PROGBITS {
		return nil, errDamaged
	}
	if sec.size > maxGoTable {
		return nil, fmt.Errorf("it has %d MB, more than is read", sec.size>>20)
	}
	t, err := im.goHeader(sec)
	if err != nil {
		return nil, err
	}
	return t.functions()
}

// lostGoTable finds the table by its header where no section is its own: before Go
// 1.26 another linker puts it into .data.rel.ro of a program at no fixed address.
func (im *image) lostGoTable() (t *goTable) {
	tries := goTries
	im.findData(func(s segment, at uint64, b []byte) bool {
		if magic := order.Uint32(b); magic < go118 || magic > go12 || order.Uint16(b[4:]) != 0 {
			return false
		}
		size := min(s.filesz-at, im.size-min(s.off+at, im.size), maxGoTable)
		found, err := im.goHeader(section{typ: elf.SHT_PROGBITS, addr: s.addr + at, off: s.off + at, size: size})
		if err == nil {
			t = found
		}
		tries--
		return t != nil || tries == 0
	})
	return t
}

// Bounds on one search of a file for Go's data.
const (
	goTries  = 64        // places that look like it
	goSearch = 256 << 20 // bytes; a file with holes can claim more than any disk has
)

// findData goes in steps of an address through what is loaded of the file, until
// found says that it is enough. It gets the segment, the place in it, and the bytes
// there, at least 8.
func (im *image) findData(found func(s segment, at uint64, b []byte) bool) {
	room := uint64(goSearch)
	for _, s := range im.segments {
		if s.typ != elf.PT_LOAD || s.off%8 != s.addr%8 {
			continue
		}
		for at := -s.addr % 8; at < s.filesz; at += chunk {
			n := min(chunk, s.filesz-at)
			if n > room {
				return
			}
			room -= n
			b, err := im.bytes(s.off+at, n, "data of Go")
			if err != nil {
				return
			}
			for i := 0; i+8 <= len(b); i += 4 {
				if found(s, at+uint64(i), b[i:]) {
					return
				}
			}
		}
	}
}

func (im *image) goHeader(sec section) (*goTable, error) {
	t := &goTable{im: im, section: sec, word: 4}
	if im.is64 {
		t.word = 8
	}
	const words = 8 // of the longest header
	h, err := im.bytes(sec.off, min(sec.size, 8+words*t.word), "table of Go's functions")
	if err != nil {
		return nil, err
	}
	h = append(h, make([]byte, 8+words*8-len(h))...) // a table that is shorter ends there
	if h[4] != 0 || h[5] != 0 || uint64(h[7]) != t.word {
		return nil, errDamaged
	}
	at := func(i uint64) uint64 { return t.number(h[8+i*t.word:]) }
	t.n = at(0)
	switch order.Uint32(h) {
	case go12:
		t.namesEnd, t.first = sec.size, 8+t.word
	case go116:
		t.names, t.namesEnd, t.funcs, t.first = at(2), at(3), at(6), at(6)
	case go118, go120:
		t.relative = true
		t.text, t.names, t.namesEnd, t.funcs, t.first = at(2), at(3), at(4), at(7), at(7)
	default:
		return nil, errors.New("it is of a version of Go that is not known")
	}
	if t.n == 0 || t.n > maxSymbols || t.names > t.namesEnd || t.namesEnd > sec.size ||
		!within(t.first, (2*t.n+1)*t.entry(), sec.size) {
		return nil, errDamaged
	}
	return t, nil
}

// entry is the bytes of each number in the list of addresses.
func (t *goTable) entry() uint64 {
	if t.relative {
		return 4
	}
	return t.word
}

// number reads one of the size of an address.
func (t *goTable) number(b []byte) uint64 {
	if t.word == 8 {
		return order.Uint64(b)
	}
	return uint64(order.Uint32(b))
}

// functions reads the list: an address, and where the function's name stands; behind
// the last one the address of the end.
func (t *goTable) functions() ([]symbol, error) {
	text, err := t.im.text(t.section.off+t.names, t.namesEnd-t.names, "names of Go's functions")
	if err != nil {
		return nil, err
	}
	funcs, err := t.im.bytes(t.section.off+t.funcs, t.section.size-t.funcs, "table of Go's functions")
	if err != nil {
		return nil, err
	}
	entry := t.entry()
	list := funcs[t.first-t.funcs:]
	value := func(i uint64) uint64 {
		if t.relative {
			return uint64(order.Uint32(list[i*4:]))
		}
		return t.number(list[i*t.word:])
	}
	var start uint64
	if t.relative {
		if start, err = t.textStart(value(0), value(2*t.n)); err != nil {
			return nil, err
		}
	}
	names := table{strings: text}
	found := make([]symbol, 0, t.n)
	for i := range t.n {
		from, to := value(2*i), value(2*i+2)
		if to < from {
			return nil, errDamaged
		}
		at := value(2*i + 1) // of what is known of the function: its address, then where its name is
		if !within(at, entry+4, uint64(len(funcs))) {
			return nil, errDamaged
		}
		name := names.name(order.Uint32(funcs[at+entry:]))
		if _, ok := t.im.fileOffset(start+from, elf.PF_X); !ok || name == "" || from == to {
			continue
		}
		s := Symbol{Name: strings.ReplaceAll(name, "·", ".")} // as linkers write it into symbol tables
		found = append(found, symbol{Symbol: s, addr: start + from, size: to - from, rank: rankOf(s, true, false)})
	}
	return found, nil
}

// textStart is the address of runtime.text, where the functions begin, the first of
// them at from and the last ending at to. With cgo that is not the beginning of
// .text, which has C code before it. Go 1.18 to 1.25 have it in the header, which
// from 1.26 on has a zero there; and always in runtime.firstmoduledata.
func (t *goTable) textStart(from, to uint64) (uint64, error) {
	fits := func(text uint64) bool {
		_, ok := t.im.fileOffset(text+from, elf.PF_X)
		_, end := t.im.fileOffset(text+to-1, elf.PF_X)
		return ok && end && text != 0 && from < to
	}
	// pcHeader, six slices, findfunctab; then minpc, maxpc, text (moduledata in
	// runtime/symtab.go, the same from Go 1.16 to 1.26).
	inModule := func(at uint64, values func(...uint64) []uint64) (uint64, bool) {
		v := values(at, at+20*t.word, at+21*t.word, at+22*t.word)
		return v[3], v[0] == t.section.addr && v[1] == v[3]+from && v[2] == v[3]+to && fits(v[3])
	}
	module, hasModule := t.im.sectionNamed(".go.module")
	header := t.section.addr + 8 + 2*t.word
	for _, values := range []func(...uint64) []uint64{t.stored, t.relocated} {
		if hasModule {
			if text, ok := inModule(module.addr, values); ok {
				return text, nil
			}
		}
		if text := values(header)[0]; fits(text) {
			return text, nil
		}
	}
	const padding = 64 // bytes behind the last function
	if s, ok := t.im.sectionNamed(".text"); ok && fits(s.addr) && s.size >= to && s.size-to < padding {
		return s.addr, nil
	}
	var text uint64
	found, tries := false, goTries
	t.im.findData(func(s segment, at uint64, b []byte) bool {
		if t.number(b) == t.section.addr {
			text, found = inModule(s.addr+at, t.stored)
			tries--
		}
		return found || tries == 0
	})
	if !found {
		return 0, errors.New("it does not say where the code begins")
	}
	return text, nil
}

// stored is the words at some addresses as the file has them; 0 where it has none.
func (t *goTable) stored(addrs ...uint64) []uint64 {
	values := make([]uint64, len(addrs))
	for i, a := range addrs {
		if off, ok := t.im.fileOffset(a, 0); ok {
			if b, err := t.im.bytes(off, t.word, "data of Go"); err == nil {
				values[i] = t.number(b)
			}
		}
	}
	return values
}

// relativeTypes are the relocations that add where the file was loaded.
var relativeTypes = map[elf.Machine]uint32{
	elf.EM_X86_64: uint32(elf.R_X86_64_RELATIVE), elf.EM_AARCH64: uint32(elf.R_AARCH64_RELATIVE),
	elf.EM_RISCV: uint32(elf.R_RISCV_RELATIVE), elf.EM_PPC64: uint32(elf.R_PPC64_RELATIVE),
	elf.EM_LOONGARCH: uint32(elf.R_LARCH_RELATIVE),
}

// relocated is the words at some addresses as the loader makes them: of a program at
// no fixed address, some linkers leave zeros in the file.
func (t *goTable) relocated(addrs ...uint64) []uint64 {
	values := t.stored(addrs...)
	tags, err := t.im.dynamicTags()
	off, ok := t.im.fileOffset(tags[elf.DT_RELA], 0)
	size := tags[elf.DT_RELASZ]
	if err != nil || !ok || !t.im.is64 || !within(off, size, t.im.size) {
		return values
	}
	const entry = 24 // bytes: address, type, value
	typ := uint64(relativeTypes[t.im.machine])
	for step := uint64(chunk / entry * entry); size >= entry; {
		n := min(step, size/entry*entry)
		b, err := t.im.bytes(off, n, "relocations")
		if err != nil {
			return values
		}
		off, size = off+n, size-n
		for ; len(b) > 0; b = b[entry:] {
			for i, a := range addrs {
				if order.Uint64(b) == a && order.Uint64(b[8:]) == typ {
					values[i] = order.Uint64(b[16:])
				}
			}
		}
	}
	return values
}
