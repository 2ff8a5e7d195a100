package symbols

import (
	"bytes"
	"debug/elf"
	"strings"
	"sync"
)

// Compilers add these to the name of a function for what they make of it, each with a
// number behind it or without (gcc, clone_function_name; LLVM, HotColdSplitting and
// basic block sections). Of Go, dots are parts of names.
var cloneMarks = map[string]bool{
	"part": true, "cold": true, "isra": true, "constprop": true, "lto_priv": true, "local": true,
	"localalias": true, "ipa-pta": true, "simdclone": true, "specialized": true, "warm": true, "__part": true,
}

// CloneOf is the raw name of the function of which the compiler made this one, or a
// part of it: foo of foo.isra.0.cold. It is empty for all others.
func (f *File) CloneOf(fn *Function) string {
	of, _, _ := strings.Cut(fn.Name, ".")
	if f.Go || of == "" || len(of) == len(fn.Name) || fn.Into > 0 {
		return ""
	}
	for mark := range strings.SplitSeq(fn.Name[len(of)+1:], ".") {
		if !cloneMarks[mark] && strings.Trim(mark, "0123456789") != "" {
			return ""
		}
	}
	return of
}

// CloneOf is the same as people read it.
func (l *Listed) CloneOf(f *File) string {
	raw := f.CloneOf(l.Function)
	if raw == "" {
		return ""
	}
	// To demangle takes long, and mostly the name is there already: of C++ with what was
	// added behind it, of Rust without.
	if name, _, ok := strings.Cut(l.Shown, " [clone ."); ok {
		return name
	}
	if strings.HasPrefix(raw, "_R") && !strings.HasPrefix(l.Shown, "_R") && !l.Old() {
		return l.Shown
	}
	return Symbol{Name: raw}.Demangled()
}

// Fragment tells whether fn is only a piece of a function, which that jumps to: gcc's
// foo.cold, LLVM's parts and BOLT's. The stack is then as the function left it, and what
// is on top is no return address. LLVM has functions of their own by such names, too,
// which are called.
func (f *File) Fragment(fn *Function) bool {
	of := f.CloneOf(fn)
	if of == "" {
		return false
	}
	whole := strings.TrimRight(fn.Name, ".0123456789")
	whole, cold := strings.CutSuffix(whole, ".cold")
	if !cold {
		if whole, cold = strings.CutSuffix(whole, ".__part"); !cold {
			return false
		}
	}
	for _, parent := range f.lookupRaw(whole) {
		if parent.Place < NoCode && f.calls(parent, fn) {
			return false
		}
	}
	return true
}

// codeRoom is room for the code of functions that are looked through: a large program
// has ten thousand.
var codeRoom = sync.Pool{New: func() any { return new([scanBytes]byte) }}

// calls tells whether a function has an instruction that calls another one.
func (f *File) calls(from, to *Function) bool {
	if f.r == nil {
		return false
	}
	room := codeRoom.Get().(*[scanBytes]byte)
	defer codeRoom.Put(room)
	n, _ := f.r.ReadAt(room[:min(from.Size, scanBytes)], int64(from.Offset)) // what cannot be read is not understood
	code := room[:n]
	if f.Machine != elf.EM_AARCH64 && !holdsCall(code, int64(to.Addr-from.Addr)) {
		return false
	}
	for at := uint64(0); at < uint64(len(code)); {
		s := f.step(code[at:], at)
		switch {
		case s.does == unknown:
			return false
		case s.does == calls && from.Addr+Addr(s.target) == to.Addr:
			return true
		}
		at += s.length
	}
	return false
}

// holdsCall tells whether there are bytes in x86 code that can be a call of a place,
// given from its beginning. Nearly always there are none, and nothing is decoded: a
// large program has ten thousand pieces.
func holdsCall(code []byte, place int64) bool {
	const call = 0xe8
	for at := 0; ; at++ {
		next := bytes.IndexByte(code[at:], call)
		if at += next; next < 0 || at+5 > len(code) {
			return false
		}
		if int64(at+5)+int64(int32(order.Uint32(code[at+1:]))) == place {
			return true
		}
	}
}
