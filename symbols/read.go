package symbols

import (
	"cmp"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// read fills f from f.r.
func (f *File) read() error {
	im, typ, err := readImage(f.r, f.size)
	if err != nil {
		return err
	}
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
	sc := scan{im: im}
	for _, t := range ts {
		if err := sc.read(t); err != nil {
			return err
		}
	}
	if f.Stripped = !slices.ContainsFunc(ts, func(t *table) bool { return !t.dynamic }); f.Stripped {
		f.findNames(im, ts, &sc)
	} else {
		f.Source = "symbol table"
	}
	f.Unwinds, f.Switches = sc.unwinds, sc.switches
	if f.Library, err = im.library(typ); err != nil {
		return err
	}
	f.Functions = append(im.functions(sc.symbols), withoutCode(sc.others)...)
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
	s := im.sections[im.nameTable]
	if s.typ != elf.SHT_STRTAB {
		return "", nil
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
	if align != 8 {
		align = 4
	}
	const buildID = 3 // NT_GNU_BUILD_ID
	for len(b) >= 12 {
		nameSize, descSize, typ := uint64(order.Uint32(b)), uint64(order.Uint32(b[4:])), order.Uint32(b[8:])
		total := uint64(len(b))
		desc := roundUp(12+nameSize, align)
		if !within(12, nameSize, total) || !within(desc, descSize, total) {
			return nil // padding, or a note of another make: no reason to refuse the file
		}
		switch strings.TrimRight(string(b[12:12+nameSize]), "\x00") {
		case "GNU":
			if typ == buildID && f.BuildID == "" && descSize <= 64 {
				f.BuildID = hex.EncodeToString(b[desc : desc+descSize])
			}
		case "Go":
			f.Go = true
		}
		b = b[min(roundUp(desc+descSize, align), total):]
	}
	return nil
}

func roundUp(n, to uint64) uint64 { return (n + to - 1) &^ (to - 1) }

// functions makes one Function of each address. It sorts the places of the
// symbols, which are smaller than symbols.
func (im *image) functions(all []symbol) []Function {
	type place struct {
		addr uint64
		i    int32
	}
	places := make([]place, len(all))
	for i := range all {
		places[i] = place{all[i].addr, int32(i)}
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.addr, b.addr) })
	count := 0
	for i := range places {
		if i == 0 || places[i].addr != places[i-1].addr {
			count++
		}
	}
	fs := make([]Function, 0, count)
	var same []symbol
	for i := 0; i < len(places); {
		same = same[:0]
		for addr := places[i].addr; i < len(places) && places[i].addr == addr; i++ {
			same = append(same, all[places[i].i])
		}
		fs = append(fs, im.function(same))
	}
	return fs
}

// function makes a Function of the symbols of one address.
func (im *image) function(same []symbol) Function {
	if slices.ContainsFunc(same, func(s symbol) bool { return !s.untyped }) {
		same = slices.DeleteFunc(same, func(s symbol) bool { return s.untyped })
	}
	f := Function{Addr: Addr(same[0].addr)}
	off, _ := im.fileOffset(same[0].addr, elf.PF_X)
	f.Offset = Offset(off)
	for i := range same {
		f.Size = max(f.Size, same[i].size)
		if same[i].indirect {
			f.Place = Resolver
		}
	}
	f.setNames(same)
	return f
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
		return a.Name == b.Name && (a.Version == b.Version || b.Version == "")
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

// Code is the first up to n bytes of fn as the file has them: fewer at the end
// of the file. A process may have other bytes in memory.
func (f *File) Code(fn *Function, n int) ([]byte, error) {
	if f.r == nil {
		return nil, fmt.Errorf("%s is not open, so its code cannot be read", Printable(f.Path))
	}
	if n <= 0 || uint64(fn.Offset) >= f.size {
		return nil, nil
	}
	b := make([]byte, min(uint64(n), f.size-uint64(fn.Offset)))
	got, err := f.r.ReadAt(b, int64(fn.Offset))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("the code of %s in %s cannot be read: %w", fn.Demangled(), Printable(f.Path), cause(err))
	}
	return b[:got], nil
}
