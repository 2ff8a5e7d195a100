package probes

import (
	"bytes"
	"debug/elf"
	"strings"

	"uprobetop/symbols"
)

// maxInstruction is the longest x86 instruction, in bytes.
const maxInstruction = 15

// checkCode looks at the first instruction of a function in x86 code.
//
// VEX and EVEX (c4, c5, 62): the kernel decodes some of them as the jump or call
// that has the same opcode byte, and then does not execute them: glibc's memset
// for AVX-512 returned wrong memory every time (Linux 5.15 to 7.3,
// arch/x86/kernel/uprobes.c, branch_setup_xol_ops). No answer of a person makes
// this right.
//
// The prefixes es, ss and lock, int3 and hlt: every kernel refuses them. What else
// it refuses it says when asked, but that takes it a second each.
//
// A system call that is stepped out of line returns to where it was stepped: the
// program crashes, or goes round for ever. A repeated string instruction is one
// hit a round. Both seen on 6.18.
func checkCode(code []byte) Finding {
	refuse := func(does string) Finding {
		return Finding{Verdict: Refuses, Reason: "the first instruction is " + does, Way: "probe a function that calls it"}
	}
	if bytes.IndexByte([]byte{0xc4, 0xc5, 0x62}, code[0]) >= 0 {
		return refuse("an AVX or AVX-512 instruction, which the kernel would skip: its results would be wrong")
	}
	repeated := false
	for len(code) > 1 && isPrefix(code[0]) {
		repeated = repeated || code[0] == 0xf2 || code[0] == 0xf3
		code = code[1:]
	}
	if bytes.IndexByte([]byte{0x26, 0x36, 0xf0, 0xcc, 0xf4}, code[0]) >= 0 {
		return Finding{Verdict: Refuses, Reason: "the kernel refuses to step the first instruction", Way: "probe a function that calls it"}
	}
	switch {
	case len(code) > 1 && code[0] == 0x0f && (code[1] == 0x05 || code[1] == 0x34), code[0] == 0xcd:
		return refuse("a system call, which does not survive being stepped: the program would crash")
	case repeated && isString(code[0]):
		return refuse("a repeated string instruction, of which every round would count as a hit")
	}
	return Finding{}
}

// isPrefix tells the prefixes that can stand before an opcode and that the kernel
// steps: operand and address size, rep, fs and gs, REX.
func isPrefix(b byte) bool {
	return bytes.IndexByte([]byte{0x66, 0x67, 0xf2, 0xf3, 0x64, 0x65}, b) >= 0 || b&0xf0 == 0x40
}

// isString tells the opcodes of ins, outs, movs, cmps, stos, lods and scas.
func isString(b byte) bool {
	return b >= 0x6c && b <= 0x6f || b >= 0xa4 && b <= 0xa7 || b >= 0xaa && b <= 0xaf
}

// Hazards are the properties of a whole target that make return probes dangerous
// in whatever file of it: each is the path of a file that has it, or empty.
type Hazards struct {
	Unwinds  string // uses exceptions: one ends the process when it passes a return probe
	Switches string // switches stacks: so does a call that is left that way
	Shared   string // a library, without a process alone: who maps it may do either
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
	if f := checkPlace(r.Function.Place); f.Verdict != Fine {
		return f
	}
	code, err := r.File.Code(r.Function, maxInstruction)
	if err != nil || len(code) == 0 {
		return Finding{Verdict: Refuses, Reason: "the first instruction cannot be read"}
	}
	if f := checkCode(code); x86(r.File) && f.Verdict != Fine {
		if r.Function.Into > 0 {
			f.Reason, f.Way = strings.Replace(f.Reason, "the first instruction", "the instruction", 1), beside
		}
		return f
	}
	if r.Function.Into > 0 && bytes.HasPrefix(code, nop5) && x86(r.File) {
		return Finding{Verdict: Refuses, Reason: "the kernel can turn a 5-byte nop into a call, which inside a function overwrites what lies below its stack", Way: beside}
	}
	if r.Kind == Return {
		return checkReturn(r, h)
	}
	return Finding{}
}

// checkPlace finds what there is no breakpoint for.
func checkPlace(p symbols.Place) Finding {
	switch p {
	case symbols.Resolver:
		return Finding{
			Verdict: Refuses,
			Reason:  "IFUNC: its address is of the code that chooses among variants when the program starts",
			Way:     "probe the variant by its own name",
		}
	case symbols.NoCode:
		return Finding{Verdict: Refuses, Reason: "its address is outside the code of the file"}
	case symbols.Imported:
		return Finding{Verdict: Refuses, Reason: "imported: its code is in a library", Way: "probe it there"}
	case symbols.InVDSO:
		return Finding{Verdict: Refuses, Reason: "IFUNC: the code in use is the kernel's own (vDSO), which is in no file", Way: "probe a function that calls it"}
	}
	return Finding{}
}

const beside = "probe an instruction beside it"

// nop5 is the nop that Linux 6.18 to 7.1 turns into a call once its breakpoint was
// hit. Where a function begins nothing is below the stack pointer yet.
var nop5 = []byte{0x0f, 0x1f, 0x44, 0x00, 0x00}

func checkReturn(r Request, h Hazards) Finding {
	const count = "count entries, without -r"
	if r.Function.Into > 0 {
		return Finding{Verdict: Refuses, Reason: "a return probe inside a function would overwrite what stands where the return address is at its beginning", Way: count}
	}
	if r.Function.Unnamed {
		return Finding{Verdict: Refuses, Reason: "no symbol tells that a function begins there, and a return probe inside one would overwrite what stands where the return address is at its beginning", Way: count}
	}
	if r.File.Go {
		return Finding{Verdict: Refuses, Reason: "return probes crash Go programs, whose stacks move", Way: count}
	}
	for _, s := range append([]symbols.Symbol{r.Function.Symbol}, r.Function.Aliases...) {
		if twice[s.Name] {
			return Finding{
				Verdict: Refuses,
				Reason:  "the function returns more than once for a call, and with a return probe that ends the process",
				Way:     count,
			}
		}
	}
	const way = "say yes to place it, or count its entries alone"
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
	if h.Shared != "" && r.File.Library {
		return Finding{
			Verdict: Asks,
			Reason: "whoever maps " + symbols.Printable(r.File.Path) +
				" is probed, and a program that uses exceptions or switches stacks can end at a return probe",
			Way: way,
		}
	}
	return Finding{}
}

func x86(f *symbols.File) bool { return f.Machine == elf.EM_X86_64 || f.Machine == elf.EM_386 }
