package symbols

import (
	"sort"
	"strings"
)

// A Go function first compares its stack pointer with the end of the goroutine's
// stack, and if there is no room calls the runtime, which moves the stack or lets
// another goroutine run; then the function begins again at its first byte
// (cmd/internal/obj/x86/obj6.go, stacksplit, and obj7.go for ARM64). A breakpoint
// there is hit more often than the function is called: 41,400 times in 40,200
// calls. Behind the check it is hit once a call.
//
// The check is known by what it does and not by its bytes, of which every
// architecture and release has its own: instructions that compute in registers,
// and jumps under a condition to code that calls runtime.morestack and then jumps
// to the function's first byte.

// Bounds on what is decoded for one function.
const (
	checkSteps = 16       // instructions of a stack check
	checkBytes = 128      // bytes that these take
	blockBytes = 1 << 10  // bytes of the code that calls morestack: it saves up to 24 arguments
	scanBytes  = 64 << 10 // bytes of a function that is looked through for jumps
)

// goPoint is the point of a function in a file that the Go compiler made, which can
// be a C function as well.
func (f *File) goPoint(fn *Function) Point {
	b := body{f: f, fn: fn}
	behind := b.check()
	return Point{Offset: fn.Offset + Offset(behind), Again: b.comesBackTo(behind)}
}

// body is the code of a function on its way through the decoder.
type body struct {
	f  *File
	fn *Function
}

// at is n bytes of the function from a place in it.
func (b *body) at(from uint64, n int) []byte {
	code, _ := b.f.CodeAt(b.fn, b.fn.Offset+Offset(from), n) // what cannot be read is not understood
	return code
}

// check is how far behind the beginning the stack check ends; 0 if there is none.
func (b *body) check() (behind uint64) {
	code := b.at(0, checkBytes)
	at := uint64(0)
	for range checkSteps {
		if at >= uint64(len(code)) {
			break
		}
		s := b.f.step(code[at:], at)
		at += s.length
		switch {
		case s.does == computes:
		case s.does == branches && s.target > int64(at) && b.grows(uint64(s.target)):
			behind = at
		default:
			return behind
		}
	}
	return behind
}

// grows tells whether the code at a place of the function calls morestack and then
// begins the function again.
func (b *body) grows(at uint64) bool {
	code := b.at(at, blockBytes)
	called := false
	for from := at; at-from < uint64(len(code)); {
		s := b.f.step(code[at-from:], at)
		at += s.length
		switch s.does {
		case calls:
			if called || !b.f.isMorestack(b.fn.Addr+Addr(s.target)) {
				return false
			}
			called = true
		case jumps:
			return called && s.target == 0
		case computes, other:
		default:
			return false
		}
	}
	return false
}

// isMorestack takes every function for it of which the file has no name: what calls
// it says enough.
func (f *File) isMorestack(addr Addr) bool {
	code := f.code()
	i := sort.Search(len(code), func(i int) bool { return code[i].Addr >= addr })
	if i == len(code) || code[i].Addr != addr {
		return true
	}
	for _, s := range code[i].symbols() {
		if strings.HasPrefix(s.Name, "runtime.morestack") {
			return true
		}
	}
	return false
}

// comesBackTo tells whether a call can come to a place of the function more than
// once, or that this is not known. No loop begins with an instruction that moves the
// stack pointer.
func (b *body) comesBackTo(place uint64) bool {
	back, known := b.goesTo(place)
	return back || !known
}

// ComesBack tells whether a loop of the function goes back to its first instruction, so
// that one call hits a breakpoint there again and again. It decodes the function, which
// takes some ten microseconds.
func (f *File) ComesBack(fn *Function) bool {
	b := body{f: f, fn: fn}
	back, _ := b.goesTo(0)
	return back && fn.Into == 0 && fn.Place < NoCode
}

// goesTo looks for a jump of the function to a place in it.
func (b *body) goesTo(place uint64) (goes, known bool) {
	const longest = 16
	if b.f.step(b.at(place, longest), place).does == moves {
		return false, true
	}
	if b.fn.Size == 0 || b.fn.Size > scanBytes {
		return false, false
	}
	code := b.at(0, int(b.fn.Size))
	for at := uint64(0); at < uint64(len(code)); {
		s := b.f.step(code[at:], at)
		switch {
		case s.does == unknown:
			return false, b.f.padding(code[at:])
		case (s.does == branches || s.does == jumps) && s.target == int64(place):
			return true, true
		}
		at += s.length
	}
	return false, true
}
