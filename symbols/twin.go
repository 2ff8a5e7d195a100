package symbols

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// Twin is a file that has the symbol table which another one lost: the build
// before it was stripped, or what was taken away from it. Of a twin come names and
// addresses alone: what is probed, and every offset, is of the file that runs.
type Twin struct {
	Path    string // print it through Printable
	BuildID string // lower-case hex, or empty

	im       *image
	file     *os.File // nil for one in memory
	dev, ino uint64
}

var errNoNames = errors.New("it has no symbol table with functions")

// OpenTwin opens a file that somebody says has the names of another. It stays open
// until Close. An error is one sentence.
func OpenTwin(path string) (*Twin, error) {
	t, err := openTwin(path)
	if err != nil {
		return nil, fmt.Errorf("%s %w", Printable(path), err)
	}
	if !slices.ContainsFunc(t.im.sections, func(s section) bool { return s.typ == elf.SHT_SYMTAB }) {
		t.Close()
		return nil, fmt.Errorf("%s has no symbol table: name the build before it was stripped, or its debug file", Printable(path))
	}
	return t, nil
}

func openTwin(path string) (*Twin, error) {
	file, st, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	t, err := readTwin(file, uint64(st.Size))
	if err != nil {
		file.Close()
		return nil, err
	}
	t.Path, t.file, t.dev, t.ino = path, file, st.Dev, st.Ino
	return t, nil
}

// readTwin reads the headers of a twin. They are all that is the same in a debug
// file as in the one that it is of: its code is not there.
func readTwin(r io.ReaderAt, size uint64) (*Twin, error) {
	im, _, err := readImage(r, size)
	if err != nil {
		return nil, err
	}
	var f File
	_ = f.readNotes(im) // one that cannot be read has no build id, and that is held against it
	return &Twin{BuildID: f.BuildID, im: im}, nil
}

// Close lets the file go.
func (t *Twin) Close() error {
	if t.file == nil {
		return nil
	}
	return t.file.Close()
}

// of tells why the twin is not of the build with this id.
func (t *Twin) of(id string) error {
	switch t.BuildID {
	case id:
		return nil
	case "":
		return fmt.Errorf("it has no build id, and the file has %s", id)
	}
	if id == "" {
		return fmt.Errorf("it has build id %s, and the file has none", t.BuildID)
	}
	return fmt.Errorf("it is of another build: its build id is %s, and that of the file %s", t.BuildID, id)
}

// Of tells why this twin, which somebody named, is not that of a file; see
// Sources.IDsOnly.
func (t *Twin) Of(f *File, idsOnly bool) error {
	im, _, err := readImage(f.r, f.size)
	if err != nil {
		return err
	}
	return t.belongs(f, im, idsOnly)
}

func (t *Twin) belongs(f *File, im *image, idsOnly bool) error {
	if err := t.of(f.BuildID); err != nil {
		return err
	}
	if f.BuildID == "" && idsOnly {
		return errors.New("it has no build id, so that it cannot be told which file it is of")
	}
	_, err := t.shift(im)
	return err
}

// shift is what must be added to the addresses of a twin to have those of the file.
// It is 0 unless the file was moved after the twin was made, as prelink does. That
// changes nothing of the code's segments but their address, by which it is told
// that the two fit.
func (t *Twin) shift(im *image) (uint64, error) {
	if t.im.machine != im.machine || t.im.is64 != im.is64 {
		return 0, fmt.Errorf("it is made for %s, and the file for %s", machineName(t.im.machine), machineName(im.machine))
	}
	ours, theirs := im.code(), t.im.code()
	if len(ours) != len(theirs) {
		return 0, fmt.Errorf("it has %d segments of code, and the file %d", len(theirs), len(ours))
	}
	var shift uint64
	for i := range ours {
		by := ours[i].addr - theirs[i].addr
		if i == 0 {
			shift = by
		}
		if ours[i].memsz != theirs[i].memsz || by != shift {
			return 0, errors.New("its code is not where and as large as that of the file")
		}
	}
	return shift, nil
}

// code is the segments that are loaded as code.
func (im *image) code() (segments []segment) {
	for _, s := range im.segments {
		if s.typ == elf.PT_LOAD && s.flags&elf.PF_X != 0 {
			segments = append(segments, s)
		}
	}
	return segments
}

// scan reads the symbol table of a twin as if it were one of the file im.
func (t *Twin) scan(im *image, shift uint64, defined map[uint16]string) (*scan, error) {
	table, err := t.im.sectionTable(elf.SHT_SYMTAB)
	if err != nil {
		return nil, err
	}
	if table == nil {
		return nil, errNoNames
	}
	table.defined = defined
	// The twin's sections and strings, and the segments of the file where the twin
	// would have them.
	both := *t.im
	both.segments = slices.Clone(im.segments)
	for i := range both.segments {
		both.segments[i].addr -= shift
	}
	sc := &scan{im: &both}
	if err := sc.read(table); err != nil || shift == 0 {
		return sc, err
	}
	for i := range sc.symbols {
		sc.symbols[i].addr += shift
	}
	for i := range sc.others {
		sc.others[i].addr += shift
	}
	sc.symbols = slices.DeleteFunc(sc.symbols, func(s symbol) bool {
		_, ok := im.fileOffset(s.addr, elf.PF_X) // not so if the sum of false numbers overflows
		return !ok
	})
	return sc, nil
}
