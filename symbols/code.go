package symbols

import (
	"errors"
	"fmt"
	"io"
)

const (
	beginning = 16       // bytes of a function that ReadBeginnings keeps: an x86 instruction has 15
	codePiece = 64 << 10 // bytes of code read at a time
)

// Code is the first up to n bytes of fn as the file has them: fewer at the end
// of the file. A process may have other bytes in memory. It is not to be written to.
func (f *File) Code(fn *Function, n int) ([]byte, error) { return f.CodeAt(fn, fn.Offset, n) }

// CodeAt is Code from another place of a function on, such as one of its points.
func (f *File) CodeAt(fn *Function, off Offset, n int) ([]byte, error) {
	if f.r == nil {
		return nil, fmt.Errorf("%s is not open, so its code cannot be read", Printable(f.Path))
	}
	if n <= 0 || uint64(off) >= f.size {
		return nil, nil
	}
	n = int(min(uint64(n), f.size-uint64(off)))
	if kept := f.beginnings.Load(); kept != nil && n <= beginning && off == fn.Offset {
		if i := f.index(fn); i >= 0 && (i+1)*beginning <= len(*kept) {
			return (*kept)[i*beginning:][:n:n], nil
		}
	}
	b := make([]byte, n)
	got, err := f.r.ReadAt(b, int64(off))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("the code of %s in %s cannot be read: %w", fn.Demangled(), Printable(f.Path), cause(err))
	}
	return b[:got], nil
}

// ReadBeginnings reads the first bytes of all functions, in large pieces and once:
// whoever looks at all of them would else ask the kernel for each. What cannot be
// read is left to Code.
func (f *File) ReadBeginnings() {
	if f.r == nil || f.beginnings.Load() != nil {
		return
	}
	code := f.code()
	kept := make([]byte, len(code)*beginning)
	const each = 4096 // functions
	failed := make([]bool, (len(code)+each-1)/each)
	inParallel(len(failed), func() func(i int) {
		piece := make([]byte, codePiece)
		return func(i int) {
			from := i * each
			failed[i] = !f.readBeginnings(kept[from*beginning:], code[from:min(from+each, len(code))], piece)
		}
	})
	for _, f := range failed {
		if f {
			return
		}
	}
	f.beginnings.Store(&kept)
}

// readBeginnings fills kept with those of some functions, which are in order of
// address: most begin in the piece that was read for the one before.
func (f *File) readBeginnings(kept []byte, code []Function, piece []byte) bool {
	var at uint64 // of have, in the file
	var have []byte
	for i := range code {
		off := uint64(code[i].Offset)
		if off >= f.size {
			continue
		}
		want := min(beginning, f.size-off)
		if off < at || !within(off-at, want, uint64(len(have))) {
			at, have = off, piece[:min(codePiece, f.size-off)]
			if _, err := f.r.ReadAt(have, int64(off)); err != nil {
				return false
			}
		}
		copy(kept[i*beginning:(i+1)*beginning], have[off-at:off-at+want])
	}
	return true
}
