package symbols

import (
	"bytes"
	"debug/elf"
	"sort"
	"strings"

	"golang.org/x/arch/arm64/arm64asm"
	"golang.org/x/arch/x86/x86asm"
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

// does is what an instruction does, as far as it matters here.
type does uint8

const (
	unknown  does = iota
	computes      // in registers other than the stack pointer
	moves         // the stack pointer
	branches      // to target, under a condition
	jumps         // to target
	calls         // target
	other
)

// step is one instruction.
type step struct {
	does   does
	length uint64
	target int64 // bytes from the beginning of the function
}

// body is the code of a function on its way through the decoder.
type body struct {
	f  *File
	fn *Function
}

// at is n bytes of the function from a place in it.
func (b *body) at(from uint64, n int) []byte {
	code, _ := b.f.CodeAt(b.fn.Offset+Offset(from), n) // what cannot be read is not understood
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
	const longest = 16
	if b.f.step(b.at(place, longest), place).does == moves {
		return false
	}
	if b.fn.Size == 0 || b.fn.Size > scanBytes {
		return true
	}
	code := b.at(0, int(b.fn.Size))
	for at := uint64(0); at < uint64(len(code)); {
		s := b.f.step(code[at:], at)
		switch {
		case s.does == unknown && b.f.padding(code[at:]):
			return false
		case s.does == unknown:
			return true
		case (s.does == branches || s.does == jumps) && s.target == int64(place):
			return true
		}
		at += s.length
	}
	return false
}

// padding tells what the linker fills up with: int3 on x86, zeros on ARM64.
func (f *File) padding(code []byte) bool {
	fill := byte(0xcc)
	if f.Machine == elf.EM_AARCH64 {
		fill = 0
	}
	return bytes.Count(code, []byte{fill}) == len(code)
}

// step decodes one instruction, which begins at bytes behind the function.
func (f *File) step(code []byte, at uint64) step {
	switch f.Machine {
	case elf.EM_AARCH64:
		return armStep(code, at)
	case elf.EM_X86_64:
		if n, is := vectorInstruction(code); is && n > 0 {
			return step{does: other, length: n}
		} else if !is {
			return x86Step(code, at, 64)
		}
	case elf.EM_386:
		return x86Step(code, at, 32)
	}
	return step{}
}

func x86Step(code []byte, at uint64, mode int) step {
	if isEndbr(code) {
		return step{does: other, length: 4}
	}
	inst, err := x86asm.Decode(code, mode)
	if err != nil || inst.Op == 0 {
		return step{}
	}
	s := step{does: other, length: uint64(inst.Len)}
	if rel, ok := inst.Args[0].(x86asm.Rel); ok {
		s.target = int64(at+s.length) + int64(rel)
		switch inst.Op {
		case x86asm.JMP:
			s.does = jumps
		case x86asm.CALL:
			s.does = calls
		default:
			s.does = branches
		}
		return s
	}
	to, register := inst.Args[0].(x86asm.Reg)
	stack := register && (to == x86asm.RSP || to == x86asm.ESP)
	switch inst.Op {
	case x86asm.CMP, x86asm.TEST:
		s.does = computes
	case x86asm.PUSH:
		s.does = moves
	case x86asm.MOV, x86asm.LEA, x86asm.SUB, x86asm.ADD:
		switch {
		case stack:
			s.does = moves
		case register:
			s.does = computes
		}
	}
	return s
}

func armStep(code []byte, at uint64) step {
	if len(code) < 4 || order.Uint32(code) == 0 {
		return step{} // no instruction
	}
	s := step{does: other, length: 4}
	inst, err := arm64asm.Decode(code)
	if err != nil {
		return s // the decoder knows all jumps
	}
	switch inst.Op {
	case arm64asm.B, arm64asm.BL, arm64asm.CBZ, arm64asm.CBNZ, arm64asm.TBZ, arm64asm.TBNZ:
		s.does = branches
		for _, a := range inst.Args {
			if rel, ok := a.(arm64asm.PCRel); ok {
				s.target = int64(at) + int64(rel)
			}
		}
		if _, conditional := inst.Args[0].(arm64asm.Cond); !conditional && inst.Op == arm64asm.B {
			s.does = jumps
		} else if inst.Op == arm64asm.BL {
			s.does = calls
		}
	case arm64asm.LDR, arm64asm.MOV, arm64asm.MOVZ, arm64asm.MOVK, arm64asm.MOVN, arm64asm.ORR,
		arm64asm.SUB, arm64asm.SUBS, arm64asm.ADD, arm64asm.ADDS, arm64asm.CMP, arm64asm.CMN:
		s.does = computes
		if to, ok := inst.Args[0].(arm64asm.RegSP); ok && arm64asm.Reg(to) == arm64asm.SP && inst.Op != arm64asm.CMP && inst.Op != arm64asm.CMN {
			s.does = moves
		}
	case arm64asm.STR, arm64asm.STP:
		for _, a := range inst.Args {
			if m, ok := a.(arm64asm.MemImmediate); ok && m.Mode == arm64asm.AddrPreIndex && arm64asm.Reg(m.Base) == arm64asm.SP {
				s.does = moves
			}
		}
	}
	return s
}

// lookupGo finds the instances of a generic function or of a method of a generic type by
// the name without type arguments, or with [...] for them, as Go's own traces have it:
// main.Sum, main.(*List[...]).Push.
func (f *File) lookupGo(name string) (fns []*Function) {
	name = strings.ReplaceAll(name, "[...]", "")
	if !f.Go || name == "" || strings.Contains(name, "[") {
		return nil
	}
	for i := range f.Functions {
		fn := &f.Functions[i]
		if strings.Contains(fn.Name, "[") && withoutTypeArguments(fn.Name) == name {
			fns = append(fns, fn)
		}
	}
	return fns
}

func withoutTypeArguments(name string) string {
	var b strings.Builder
	depth := 0
	for i := 0; i < len(name); i++ {
		switch {
		case name[i] == '[':
			depth++
		case name[i] == ']':
			depth--
		case depth == 0:
			b.WriteByte(name[i])
		}
	}
	return b.String()
}
