package symbols

import (
	"bytes"
	"debug/elf"

	"golang.org/x/arch/arm64/arm64asm"
	"golang.org/x/arch/x86/x86asm"
)

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
