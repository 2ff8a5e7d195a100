package symbols

import (
	"debug/elf"
	"errors"
	"fmt"
	"sort"

	"golang.org/x/arch/arm64/arm64asm"
	"golang.org/x/arch/x86/x86asm"
)

// maxWalk is how far into a function instructions are decoded, in bytes.
const maxWalk = 16 << 20

// At is what begins at an address: a function, or a point inside one at which an
// instruction begins, as a Function of its own; see Inside. An error is one
// sentence.
func (f *File) At(addr Addr) (*Function, error) {
	const nested = 64 // functions looked at, for one that reaches over others
	code := f.code()
	after := sort.Search(len(code), func(i int) bool { return code[i].Addr > addr })
	for i := after - 1; i >= max(0, after-nested); i-- {
		fn := &code[i]
		if into := uint64(addr - fn.Addr); into < f.extent(i) {
			return f.Inside(fn, into)
		}
	}
	im, _, err := readImage(f.r, f.size)
	if err != nil {
		return nil, fmt.Errorf("%s %w", Printable(f.Path), err)
	}
	if _, ok := im.fileOffset(uint64(addr), elf.PF_X); !ok {
		return nil, fmt.Errorf("%#x is outside the code of %s: an address is one of the ELF file, as nm prints it", uint64(addr), Printable(f.Path))
	}
	return f.unnamed(im, addr)
}

// extent is how many bytes the i-th function has, or could have where the table
// does not say.
func (f *File) extent(i int) uint64 {
	code := f.code()
	fn := &code[i]
	switch {
	case fn.Size > 0:
		return fn.Size
	case i+1 < len(code):
		return uint64(code[i+1].Addr - fn.Addr)
	}
	return f.size - uint64(fn.Offset)
}

// Inside is the point n bytes behind the beginning of a function of this file, as
// a Function of its own: its name is name+0x10 and its size 0. For n = 0 it is fn.
// An error is one sentence: n is behind the function's end, or not known to be
// where an instruction begins.
func (f *File) Inside(fn *Function, n uint64) (*Function, error) {
	if n == 0 {
		return fn, nil
	}
	code := f.code()
	i := sort.Search(len(code), func(i int) bool { return code[i].Addr >= fn.Addr })
	if fn.Place >= NoCode || i == len(code) || code[i].Addr != fn.Addr {
		return nil, fmt.Errorf("%s is no function of %s", fn.Demangled(), Printable(f.Path))
	}
	if size := f.extent(i); n >= size {
		return nil, fmt.Errorf("%s+%#x is behind the end of the function, which has %d bytes", fn.Demangled(), n, size)
	}
	for i++; i < len(code) && code[i].Addr <= fn.Addr+Addr(n); i++ {
		if code[i].Addr == fn.Addr+Addr(n) {
			return &code[i], nil
		}
	}
	if err := f.begins(fn, n); err != nil {
		return nil, err
	}
	return &Function{
		Symbol: Symbol{Name: fmt.Sprintf("%s+%#x", fn.Demangled(), n)},
		Addr:   fn.Addr + Addr(n), Offset: fn.Offset + Offset(n), Place: fn.Place, Into: n,
	}, nil
}

// begins returns nil if an instruction begins n bytes into a function. It decodes
// all that stand before it: a breakpoint inside an instruction would change it.
func (f *File) begins(fn *Function, n uint64) error {
	const longest = 16 // bytes of an instruction, rounded up
	unknown := func(at uint64) error {
		return fmt.Errorf("it cannot be checked whether an instruction begins at %s+%#x: what stands at +%#x is not understood", fn.Demangled(), n, at)
	}
	if n > maxWalk {
		return unknown(maxWalk)
	}
	code, err := f.Code(fn, int(n)+longest)
	if err != nil {
		return err
	}
	exclusive := false
	for at := uint64(0); ; {
		if at >= uint64(len(code)) {
			return unknown(at)
		}
		length, err := f.instruction(code[at:])
		if f.Machine == elf.EM_AARCH64 && at < n && len(code[at:]) >= 4 {
			err = nil // all have 4 bytes: those that are not known do not matter on the way
		}
		switch {
		case err != nil:
			return unknown(at)
		case at == n && exclusive:
			return fmt.Errorf("%s+%#x is between an exclusive load and its store, which would never succeed with a breakpoint there", fn.Demangled(), n)
		case at == n:
			return f.contradicts(fn, n)
		case at+length > n:
			return errInside{fmt.Errorf("%s+%#x is inside an instruction: those around it begin at +%#x and +%#x", fn.Demangled(), n, at, at+length)}
		}
		if f.Machine == elf.EM_AARCH64 {
			exclusive = inExclusive(exclusive, order.Uint32(code[at:]))
		}
		at += length
	}
}

var errInstruction = errors.New("no known instruction")

// instruction is the length of the first instruction in a piece of code.
func (f *File) instruction(code []byte) (uint64, error) {
	switch f.Machine {
	case elf.EM_AARCH64:
		_, err := arm64asm.Decode(code)
		return 4, err
	case elf.EM_X86_64, elf.EM_386:
		if isEndbr(code) {
			return 4, nil
		}
		if f.Machine == elf.EM_X86_64 {
			if n, is := vectorInstruction(code); is && n == 0 {
				return 0, errInstruction
			} else if is {
				return n, nil
			}
		}
		mode := 64
		if f.Machine == elf.EM_386 {
			mode = 32
		}
		inst, err := x86asm.Decode(code, mode)
		if err == nil && inst.Op == 0 {
			err = errInstruction
		}
		return uint64(inst.Len), err
	}
	return 0, errInstruction
}

// isEndbr tells endbr64 and endbr32, which the decoder takes apart.
func isEndbr(code []byte) bool {
	return len(code) >= 4 && code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e && code[3]&^1 == 0xfa
}

// inExclusive tells whether an ARM64 instruction leaves its CPU between ldxr and
// stxr, given whether it found it there (ARM DDI 0487, load/store exclusive). An
// interrupt between them makes the store fail, and the program tries again.
func inExclusive(before bool, insn uint32) bool {
	switch insn & 0x3fc00000 {
	case 0x08400000:
		return true
	case 0x08000000:
		return false
	}
	return before
}
