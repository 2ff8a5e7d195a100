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

// Hazards are the properties of a whole target that make return probes dangerous
// in whatever file of it: each is the path of a file that has it, or empty.
type Hazards struct {
	Unwinds  string // uses exceptions: one ends the process when it passes a return probe
	Switches string // switches stacks: so does a call that is left that way
}

// twice are functions that return more than once for one call: the kernel knows
// of the first return, and the next ends the process.
var twice = map[string]bool{
	"setjmp": true, "_setjmp": true, "sigsetjmp": true, "__sigsetjmp": true,
	"getcontext": true, "swapcontext": true, "vfork": true, "__vfork": true,
}

// Check finds what speaks against a request. It reads a few bytes of the file
// and asks the kernel nothing.
func Check(r Request, h Hazards) Finding {
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
	if r.Kind == Return {
		return checkReturn(r, h)
	}
	return Finding{}
}

func checkReturn(r Request, h Hazards) Finding {
	const count = "count entries, without -r"
	if r.File.Go {
		return Finding{Verdict: Refuses, Reason: "return probes crash Go programs, whose stacks move", Way: count}
	}
	for _, s := range append([]symbols.Symbol{r.Function.Symbol}, r.Function.Aliases...) {
		if twice[s.Name] {
			return Finding{
				Verdict: Refuses,
				Reason:  r.Function.Demangled() + " returns more than once for a call, and with a return probe that ends the process",
				Way:     count,
			}
		}
	}
	const way = "-y places it all the same, and without -r its entries are counted"
	if r.File.Switches {
		h.Switches = r.File.Path
	}
	if h.Switches != "" {
		return Finding{
			Verdict: Asks,
			Reason:  symbols.Printable(h.Switches) + " switches stacks, and a function with a return probe that is left that way ends the process",
			Way:     way,
		}
	}
	if r.File.Unwinds {
		h.Unwinds = r.File.Path
	}
	if h.Unwinds != "" {
		return Finding{
			Verdict: Asks,
			Reason:  symbols.Printable(h.Unwinds) + " uses exceptions, and one that passes through a function with a return probe ends the process",
			Way:     way,
		}
	}
	return Finding{}
}

func x86(f *symbols.File) bool { return f.Machine == elf.EM_X86_64 || f.Machine == elf.EM_386 }
