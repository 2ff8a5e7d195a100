package symbols

import "sort"

// Caller is whether a function finds its return address where a call leaves it when
// it begins: a return probe replaces what stands there, whatever it is.
type Caller uint8

const (
	CallerUnsaid  Caller = iota // the file has no unwind table, and nothing speaks against it
	CallerThere                 // by the word of the unwind table
	CallerAbsent                // likewise it is not: the function is jumped to, or the system starts it
	CallerPiece                 // the address is inside a function, or by its name a piece of one
	CallerUnknown               // the unwind table, which has others, has no entry for it
)

// Caller looks fn up in the unwind table of the file. Where it has no entry, a function
// with a size that reaches over it speaks against it.
func (f *File) Caller(fn *Function) Caller {
	frames := f.frames()
	around := frames.around(uint64(fn.Addr))
	switch {
	case around != nil && around.start != uint64(fn.Addr):
		return CallerPiece
	case around != nil && !around.called && f.fragment(fn):
		return CallerPiece
	case around != nil && !around.called:
		return CallerAbsent
	case around != nil:
		return CallerThere
	case f.fragment(fn) || f.inAnother(fn):
		return CallerPiece
	case len(frames) == 0:
		return CallerUnsaid
	}
	return CallerUnknown
}

// inAnother tells whether a function that begins before fn reaches over it.
func (f *File) inAnother(fn *Function) bool {
	const nested = 64 // functions looked at
	code := f.code()
	own := sort.Search(len(code), func(i int) bool { return code[i].Addr >= fn.Addr })
	for i := own - 1; i >= max(0, own-nested); i-- {
		if uint64(fn.Addr-code[i].Addr) < code[i].Size {
			return true
		}
	}
	return false
}
