package probes

import (
	"debug/elf"
	"fmt"

	"uprobetop/symbols"
)

// The first bytes of VEX and EVEX instructions in 64-bit code. The kernel
// decodes some of them as the jump or call that has the same opcode byte, and
// then does not execute them: glibc's memset for AVX-512 returned wrong memory
// every time (Linux 5.15 to 7.3, arch/x86/kernel/uprobes.c,
// branch_setup_xol_ops). No answer of a person makes this right.
const (
	vex3 = 0xc4
	vex2 = 0xc5
	evex = 0x62
)

// Check finds what speaks against a request. It reads a few bytes of the file
// and asks the kernel nothing. unwinds is a file of the target that uses
// exceptions, if there is one.
func Check(r Request, unwinds string) Finding {
	name := r.Function.Demangled()
	if r.Function.Indirect {
		return Finding{
			Verdict: Refuses,
			Reason:  name + " is chosen among variants when the program starts (IFUNC), and its address is of the code that chooses",
			Way:     "probe the variant by its own name",
		}
	}
	code, err := r.File.Code(r.Function, 1)
	if err != nil || len(code) == 0 {
		return Finding{Verdict: Refuses, Reason: fmt.Sprintf("the first instruction of %s cannot be read", name)}
	}
	switch code[0] {
	case vex3, vex2, evex:
		if x86(r.File) {
			return Finding{
				Verdict: Refuses,
				Reason:  name + " begins with an AVX or AVX-512 instruction, which the kernel would skip: its results would be wrong",
				Way:     "probe a function that calls it",
			}
		}
	}
	if r.Kind == Return && r.File.Go {
		return Finding{
			Verdict: Refuses,
			Reason:  "return probes crash Go programs, whose stacks move",
			Way:     "count entries, without -r",
		}
	}
	if r.File.Unwinds {
		unwinds = r.File.Path
	}
	if r.Kind == Return && unwinds != "" {
		return Finding{
			Verdict: Asks,
			Reason:  symbols.Printable(unwinds) + " uses exceptions, and one that passes through a function with a return probe ends the process",
			Way:     "-y places it all the same, and without -r its entries are counted",
		}
	}
	return Finding{}
}

func x86(f *symbols.File) bool { return f.Machine == elf.EM_X86_64 || f.Machine == elf.EM_386 }
