package probes

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/arch/x86/x86asm"

	"uprobetop/bpf"
	"uprobetop/symbols"
)

// Class is how the kernel executes the instruction that a breakpoint stands on. It sets
// the price of a hit: on Linux 6.18 a stepped one took three times as long as an
// emulated one, and that four times as long as a nop that had become a call.
type Class uint8

const (
	NoClass  Class = iota // nothing can be probed, or the machine is not known
	Stepped               // it is copied to a page of the process's own and run there
	Emulated              // the kernel does itself what it would do
	Nop5                  // a nop of 5 bytes, which becomes a call once it was hit
	Nop10                 // a nop of 10 bytes, likewise
)

func (c Class) String() string {
	return [...]string{"", "stepped", "emulated", "nop5", "nop10"}[c]
}

// ClassOf reads the instructions on which the breakpoints of a function go, and is the
// class of the dearest. That differs from kernel to kernel.
func ClassOf(f *symbols.File, fn *symbols.Function) Class { return thisKernel().of(f, fn) }

// stepping is what a kernel does with the instructions in which kernels differ.
type stepping struct {
	nops      bool // x86: it emulates the nops of 3 to 8 bytes that it uses itself
	anyNop    bool // x86: and every other one
	armNop    bool // arm64: it emulates nop
	optimised int  // bytes of the nop that becomes a call; 0: none does
}

// thisKernel is that of the running kernel: read in the sources of 6.1, 6.12, 6.17, 6.18
// and 7.3 where it is not asked.
var thisKernel = sync.OnceValue(func() stepping {
	k := stepping{optimised: bpf.OptimisedNop()}
	k.nops = since(6, 17) || k.optimised > 0
	k.anyNop = since(6, 19)
	k.armNop = since(6, 13)
	return k
})

// since tells whether the running kernel calls itself this version or a later one.
func since(major, minor int) bool {
	var a, b int
	if _, err := fmt.Sscanf(ThisHost().Kernel, "%d.%d", &a, &b); err != nil {
		return false
	}
	return a > major || a == major && b >= minor
}

func (k stepping) of(f *symbols.File, fn *symbols.Function) Class {
	if fn.Place != symbols.InFile {
		return NoClass
	}
	dearest := NoClass
	var room [2]symbols.Point
	for _, p := range f.AppendPoints(room[:0], fn) {
		code, err := f.CodeAt(fn, p.Offset, maxInstruction)
		if err != nil || len(code) == 0 {
			return NoClass
		}
		if c := k.class(f.Machine, code, uint64(p.Offset)); dearest == NoClass || c < dearest {
			dearest = c
		}
	}
	return dearest
}

// class is that of the first instruction of code, which stands at an offset of a file.
func (k stepping) class(m elf.Machine, code []byte, offset uint64) Class {
	switch m {
	case elf.EM_X86_64:
		const page = 4096 // a nop that goes over its end does not become a call
		switch {
		case offset%page+uint64(k.optimised) > page || !k.becomesCall(code):
			return k.x86(code, true)
		case k.optimised == 10:
			return Nop10
		}
		return Nop5
	case elf.EM_386:
		return k.x86(code, false)
	case elf.EM_AARCH64:
		return k.arm64(code)
	}
	return NoClass
}

// x86 is arch/x86/kernel/uprobes.c: branch_setup_xol_ops and push_setup_xol_ops.
func (k stepping) x86(code []byte, is64 bool) Class {
	n := nopLength(code)
	if n > 0 && n <= 8 && k.nops {
		return Emulated
	}
	op := code
	for len(op) > 1 && isPrefix(op[0], is64) {
		op = op[1:]
	}
	prefixes := len(code) - len(op)
	if is64 && k.anyNop {
		if n, _ := doesNothing(code); n > 0 {
			return Emulated
		}
	}
	switch b := op[0]; {
	case b == 0x90 && code[0] == 0xf3 && k.anyNop: // pause, which others take for a nop
		return Stepped
	case b == 0x90, b == 0xe8, b == 0xe9, b == 0xeb, b&0xf0 == 0x70: // nop, call, jmp, jcc
		return Emulated
	case b&0xf8 == 0x50 && (prefixes == 0 || is64 && prefixes == 1 && code[0] == 0x41): // push of a register
		return Emulated
	case b == 0x0f && len(op) > 2 && op[1]&0xf0 == 0x80: // jcc
		return Emulated
	}
	return Stepped
}

// nops are those that the kernel itself writes (arch/x86/include/asm/nops.h), from 3
// to 8 bytes, and the one of 10 that it turns into a call.
var nops = [][]byte{
	{0x0f, 0x1f, 0x00},
	{0x0f, 0x1f, 0x40, 0x00},
	{0x0f, 0x1f, 0x44, 0x00, 0x00},
	{0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00},
	{0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00},
	{0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00},
	{0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00},
}

// nopLength is the bytes of one of these nops, or 0 if code begins with another
// instruction.
func nopLength(code []byte) int {
	if len(code) == 0 || code[0] != 0x0f && code[0] != 0x66 {
		return 0
	}
	for _, n := range nops {
		if bytes.HasPrefix(code, n) {
			return len(n)
		}
	}
	return 0
}

// becomesCall tells the nops that the kernel turns into a call once they were hit.
func (k stepping) becomesCall(code []byte) bool {
	switch {
	case k.optimised == 0:
		return false
	case nopLength(code) == k.optimised:
		return true
	}
	n, named := doesNothing(code)
	return k.optimised == 5 && n == 5 && (named || k.anyNop)
}

// mayDoNothing is false for nearly all that does something: to decode takes long.
func mayDoNothing(code []byte) bool {
	op := code
	for len(op) > 1 && (isPrefix(op[0], true) || strings.IndexByte("\x26\x2e\x36\x3e\xf0", op[0]) >= 0) {
		op = op[1:]
	}
	if len(op) < 2 {
		return len(op) == 1 && op[0] == 0x90
	}
	to, from := op[1]>>3&7, op[1]&7
	switch op[0] {
	case 0x90, 0xe9, 0xeb: // nop, jmp
		return true
	case 0x0f:
		return op[1] == 0x1f // nop
	case 0x89: // mov
		return to == from
	case 0x8d: // lea, of which 4 says that another byte has the register
		return to == from || from == 4
	}
	return false
}

// doesNothing is the length of an instruction of 64-bit code that does nothing, or 0
// (insn_is_nop): one that is named a nop, a jump to what follows, a register that is
// moved to itself.
func doesNothing(code []byte) (n int, named bool) {
	if !mayDoNothing(code) {
		return 0, false
	}
	return decodeNothing(code)
}

func decodeNothing(code []byte) (n int, named bool) {
	inst, err := x86asm.Decode(code, 64)
	if err != nil {
		return 0, false
	}
	nop := false
	switch inst.Op {
	case x86asm.NOP:
		nop = inst.Opcode>>16 == 0x0f1f || inst.Opcode>>24 == 0x90
	case x86asm.JMP:
		nop = inst.Args[0] == x86asm.Rel(0)
	case x86asm.MOV:
		nop = inst.Opcode>>24 == 0x89 && inst.DataSize == 64 && inst.Args[0] == inst.Args[1]
	case x86asm.LEA:
		at, _ := inst.Args[1].(x86asm.Mem)
		nop = inst.DataSize == 64 && at == x86asm.Mem{Base: at.Base} && inst.Args[0] == at.Base
	}
	if !nop {
		return 0, false
	}
	return inst.Len, inst.Op == x86asm.NOP
}

// arm64 is arch/arm64/kernel/probes/decode-insn.c: it emulates what reads or writes the
// program counter.
func (k stepping) arm64(code []byte) Class {
	if len(code) < 4 {
		return NoClass
	}
	insn := binary.LittleEndian.Uint32(code)
	switch {
	case insn == armNop:
		if k.armNop {
			return Emulated
		}
	case insn&0x7c000000 == 0x14000000, // b, bl
		insn&0xff000010 == 0x54000000, // b.cond
		insn&0x7c000000 == 0x34000000, // cbz, cbnz, tbz, tbnz
		insn&0x1f000000 == 0x10000000, // adr, adrp
		insn&0xff9ffc1f == 0xd61f0000: // br, blr, ret
		return Emulated
	}
	return Stepped
}

const armNop = 0xd503201f

// armRefused tells what the kernel does not step: exceptions, branches that check a
// signature, writes of system registers, unknown hints, exclusive pairs and the
// copies that take three instructions. Literal loads would read from beside the copy;
// of those of floating point the kernel does not know that.
func armRefused(insn uint32) bool {
	return insn&0xff000000 == 0xd4000000 || // svc, hvc, smc, brk, hlt
		insn&0xfff00000 == 0xd5100000 || insn&0xfff8f01f == 0xd500401f || // msr
		insn&0xfffff01f == 0xd503201f && !armHint(insn>>5&0x7f) ||
		insn&0xfedff800 == 0xd61f0800 || insn&0xfffffbff == 0xd65f0bff || // braa, blraa, retaa
		insn == 0xd69f03e0 || insn&0xfffffbff == 0xd69f0bff || // eret, eretaa
		insn&0x3b000000 == 0x18000000 || // ldr and prfm of a literal
		insn&0x3f800000 == 0x08000000 || // ldxr, stxr and their like
		insn&0x3b200c00 == 0x19000400 // cpy, set
}

// armHint tells the hints that are steppable: nop, those that sign addresses, and the
// marks of where branches may go.
func armHint(n uint32) bool {
	switch n {
	case 0, 7, 8, 10, 24, 25, 26, 27, 32, 34, 36, 38: // nop, xpaclri, pacia… to pacibsp, bti
		return true
	}
	return false
}
