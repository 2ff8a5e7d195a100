package probes

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"uprobetop/symbols"
)

// maxInstruction is the longest x86 instruction, in bytes.
const maxInstruction = 15

// checkCode looks at the first instruction of a function.
func checkCode(m elf.Machine, code []byte) Finding {
	switch m {
	case elf.EM_X86_64:
		return checkX86(code, true)
	case elf.EM_386:
		return checkX86(code, false)
	case elf.EM_AARCH64:
		if len(code) >= 4 && armRefused(binary.LittleEndian.Uint32(code)) {
			return notStepped
		}
	}
	return Finding{}
}

const callers = "probe a function that calls it"

// notStepped is for what every kernel refuses. Asking the kernel takes it 0.1 s each.
var notStepped = Finding{Verdict: Refuses, Reason: "the kernel refuses to step the first instruction", Way: callers}

// checkX86 looks at x86 code.
//
// VEX and EVEX (c4, c5, 62): the kernel decodes some of them as the jump or call
// that has the same opcode byte, and then does not execute them: glibc's memset
// for AVX-512 returned wrong memory every time (Linux 5.15 to 7.3,
// arch/x86/kernel/uprobes.c, branch_setup_xol_ops). It takes an exchange with r8 for
// the nop that has the same opcode: seen on 6.18. No answer of a person makes this
// right.
//
// A system call that is stepped out of line returns to where it was stepped: the
// program crashes, or goes round for ever. A repeated string instruction is one
// hit a round. Both seen on 6.18.
func checkX86(code []byte, is64 bool) Finding {
	refuse := func(does string) Finding {
		return Finding{Verdict: Refuses, Reason: "the first instruction is " + does, Way: callers}
	}
	if nopLength(code) == 10 && is64 && thisKernel().optimised == 10 {
		return Finding{} // for which that kernel makes an exception from its rule on prefixes
	}
	var repeated, short, extended bool
	for len(code) > 1 && isPrefix(code[0], is64) {
		repeated = repeated || code[0] == 0xf2 || code[0] == 0xf3
		short = short || code[0] == 0x66
		extended = is64 && code[0]&0xf1 == 0x41
		code = code[1:]
	}
	refused := refused32
	if is64 {
		refused = refused64
	}
	switch op := code[0]; {
	case op == 0xc4, op == 0xc5, op == 0x62:
		return refuse("an AVX or AVX-512 instruction, which the kernel would skip: its results would be wrong")
	case len(code) > 1 && op == 0x0f && (code[1] == 0x05 || code[1] == 0x34), op == 0xcd:
		return refuse("a system call, which does not survive being stepped: the program would crash")
	case repeated && isString(op):
		return refuse("a repeated string instruction, of which every round would count as a hit")
	case extended && op == 0x90:
		return refuse("an exchange of registers that the kernel would take for a nop: its results would be wrong")
	case strings.IndexByte(refused, op) >= 0,
		short && branches(code),
		len(code) > 1 && op == 0x8e && code[1]&0x38 == 0x10: // mov to ss
		return notStepped
	}
	return Finding{}
}

// What the kernel refuses (good_insns_64 and good_insns_32, is_prefix_bad): the
// prefixes es, cs, ss, ds and lock, traps and hlt, input and output, and what has no
// meaning or loads a segment.
const (
	refusedBoth = "\x17\x1f\x26\x2e\x36\x3e\x6c\x6d\x6e\x6f\xcc\xce\xe4\xe5\xe6\xe7\xec\xed\xee\xef\xf0\xf1\xf4\xfa\xfb"
	refused32   = refusedBoth + "\x07\x63"
	refused64   = refusedBoth + "\x06\x07\x0e\x16\x1e\x27\x2f\x37\x3f\x60\x61\x82\x9a\xcf\xd4\xd5\xd6\xea"
)

// branches tells a relative jump or call.
func branches(code []byte) bool {
	b := code[0]
	return b == 0xe8 || b == 0xe9 || b == 0xeb || b&0xf0 == 0x70 || b == 0x0f && len(code) > 1 && code[1]&0xf0 == 0x80
}

// isPrefix tells the prefixes that can stand before an opcode and that the kernel
// steps: operand and address size, rep, fs and gs, in 64-bit code REX.
func isPrefix(b byte, is64 bool) bool {
	switch b {
	case 0x64, 0x65, 0x66, 0x67, 0xf2, 0xf3:
		return true
	}
	return is64 && b&0xf0 == 0x40
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

// Check finds what speaks against a request. It reads a few bytes of the file
// and asks the kernel nothing.
func Check(r Request, h Hazards) Finding {
	if f := refusal(r); f.Verdict != Fine || r.Kind != Return {
		return f
	}
	return checkHazards(r, h)
}

// refusal is Check without what a person can say yes to.
func refusal(r Request) Finding {
	if f := checkPlace(r); f.Verdict != Fine {
		return f
	}
	if r.Kind == USDT || r.Function.Place == symbols.Marker {
		return checkMarker(r)
	}
	if startup(r.Function) {
		return Finding{Verdict: Refuses, Reason: "start-up code of the compiler, not of the program"}
	}
	if r.Function.Into == 0 && !r.Function.Unnamed {
		if err := r.File.InsideInstruction(r.Function.Addr); err != nil {
			return Finding{Verdict: Refuses, Reason: "its symbol is wrong: " + err.Error()}
		}
	}
	if r.Kind == Return {
		if f := checkReturn(r); f.Verdict != Fine {
			return f
		}
	}
	var room [2]symbols.Point
	for _, at := range r.File.AppendPoints(room[:0], r.Function) {
		if f := checkPoint(r, at); f.Verdict != Fine {
			return f
		}
	}
	return Finding{}
}

// checkPoint looks at the instruction that gets the breakpoint.
func checkPoint(r Request, at symbols.Point) Finding {
	code, err := r.File.CodeAt(r.Function, at.Offset, maxInstruction)
	if err != nil || len(code) == 0 {
		return Finding{Verdict: Refuses, Reason: "the first instruction cannot be read"}
	}
	inside := !r.File.Begins(r.Function, at.Offset)
	f := checkCode(r.File.Machine, code)
	if f.Verdict == Fine && (!r.File.ReadsAlike(code) || r.File.Class == elf.ELFCLASS32 && bytes.HasPrefix(code, nop5)) {
		f = Finding{Verdict: Refuses, Reason: "the kernel could take the first instruction, which is of 32-bit code, for another one of 64-bit code", Way: beside}
	}
	if f.Verdict != Fine {
		if inside {
			f.Reason, f.Way = strings.Replace(f.Reason, "the first instruction", "the instruction", 1), beside
		}
		return f
	}
	if inside && x86(r.File) && (bytes.HasPrefix(code, nop5) || thisKernel().optimised == 5 && thisKernel().becomesCall(code)) {
		return Finding{Verdict: Refuses, Reason: "the kernel can turn a 5-byte nop into a call, which inside a function overwrites what lies below its stack", Way: beside}
	}
	return Finding{}
}

// checkPlace finds what there is no breakpoint for.
func checkPlace(r Request) Finding {
	switch r.Function.Place {
	case symbols.Resolver:
		reason := "IFUNC: its address is of the code that chooses among variants when the program starts"
		if r.File.Untold != "" {
			reason += ", and " + r.File.Untold
		}
		return Finding{Verdict: Refuses, Reason: reason, Way: wayToVariants(r.File.Variants(r.Function), r.File.OfProcess())}
	case symbols.NoCode:
		return Finding{Verdict: Refuses, Reason: "its address is outside the code of the file"}
	case symbols.Imported:
		where := "a library"
		if library := r.File.Import(r.Function).Library; library != "" {
			where = symbols.Printable(library)
		}
		return Finding{Verdict: Refuses, Reason: "imported: its code is in " + where, Way: "probe it there"}
	case symbols.InVDSO:
		return Finding{Verdict: Refuses, Reason: "IFUNC: the code in use is the kernel's own (vDSO), which is in no file", Way: "probe a function that calls it"}
	}
	return Finding{}
}

// wayToVariants is what to do about an IFUNC that may stand for these, of a process or
// of a file alone.
func wayToVariants(names []string, ofProcess bool) string {
	const most = 4 // among more nobody can choose
	isCall := func(name string) bool { return strings.HasSuffix(name, "_syscall") }
	if len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return !isCall(name) }) {
		return "most likely the kernel's own code is used (vDSO), which is in no file: " + callers
	}
	which := "probe the variant that is used"
	switch n := len(names); {
	case n > most && ofProcess:
		return fmt.Sprintf("it is one of %d variants: try again once it was called", n)
	case n > most:
		return fmt.Sprintf("it is one of %d variants: start the program and name it with -p", n)
	case n > 0:
		which += ": " + strings.Join(names, ", ")
	default:
		which += " by its own name"
	}
	if ofProcess {
		return which
	}
	return "start the program and name it with -p, or " + which
}

const beside = "probe an instruction beside it"

// nop5 is the nop that Linux 6.18 to 7.1 turns into a call once its breakpoint was
// hit. Where a function begins nothing is below the stack pointer yet.
var nop5 = []byte{0x0f, 0x1f, 0x44, 0x00, 0x00}

// checkReturn finds why a function cannot be timed, whatever a person says.
func checkReturn(r Request) Finding {
	if r.Function.Into > 0 {
		return Finding{Verdict: Refuses, Reason: "a return probe inside a function would overwrite what stands where the return address is at its beginning", Way: count}
	}
	if r.Function.Unnamed {
		return Finding{Verdict: Refuses, Reason: "no symbol tells that a function begins there, and a return probe inside one would overwrite what stands where the return address is at its beginning", Way: count}
	}
	if r.File.Go {
		return Finding{Verdict: Refuses, Reason: "return probes crash Go programs, whose stacks move", Way: count}
	}
	if f := checkCaller(r); f.Verdict == Refuses {
		return f
	}
	if anyName(r.Function, twice) {
		return Finding{
			Verdict: Refuses,
			Reason:  "the function returns more than once for a call, and with a return probe that ends the process",
			Way:     count,
		}
	}
	return Finding{}
}

// checkHazards finds what makes every function of a file dangerous to time.
func checkHazards(r Request, h Hazards) Finding {
	if r.File.Switches {
		h.Switches = r.File.Path
	}
	if h.Switches != "" {
		return Finding{
			Verdict: Asks,
			Reason:  symbols.Printable(h.Switches) + " switches stacks, and a function with a return probe that is left that way ends the process",
			Way:     orYes,
		}
	}
	if r.File.Unwinds {
		h.Unwinds = r.File.Path
	}
	if h.Unwinds != "" {
		return Finding{
			Verdict: Asks,
			Reason:  symbols.Printable(h.Unwinds) + " uses exceptions, and one that passes through a function with a return probe ends the process",
			Way:     orYes,
		}
	}
	if h.Shared != "" && r.File.Library {
		return Finding{
			Verdict: Asks,
			Reason: "whoever maps " + symbols.Printable(r.File.Path) +
				" is probed, and a program that uses exceptions or switches stacks can end at a return probe",
			Way: orYes,
		}
	}
	return checkCaller(r)
}

func x86(f *symbols.File) bool { return f.Machine == elf.EM_X86_64 || f.Machine == elf.EM_386 }
