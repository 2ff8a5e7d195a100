package symbols

import (
	"debug/elf"
	"slices"

	"golang.org/x/arch/x86/x86asm"
)

// ReadsAlike tells whether the first instruction of a piece of 32-bit x86 code is
// the same instruction in 64-bit code. The kernel prepares a breakpoint once, as
// code of the first process that it finds to have the file mapped, which need not be
// one that runs it: what it then takes for an address relative to the instruction
// pointer, or for a prefix, crashes the program (uprobe_init_insn, Linux 6.18). For
// every other machine it is true.
func (f *File) ReadsAlike(code []byte) bool {
	if f.Machine != elf.EM_386 || isEndbr(code) {
		return true
	}
	short, err := x86asm.Decode(code, 32)
	if err != nil || short.Op == 0 {
		return false
	}
	long, err := x86asm.Decode(code, 64)
	if err != nil || long.Op != short.Op || long.Len != short.Len {
		return false
	}
	return !slices.ContainsFunc(long.Args[:], func(a x86asm.Arg) bool {
		m, ok := a.(x86asm.Mem)
		return ok && m.Base == x86asm.RIP
	})
}
