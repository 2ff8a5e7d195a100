package symbols

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"sort"
	"sync"
)

// errInside is for a place inside an instruction.
type errInside struct{ error }

// contradicts returns an error if an instruction that a function gets to by its own
// jumps reaches over the place n bytes into it. Data between instructions makes those
// that are decoded one after the other wrong, and so their word alone is not enough.
func (f *File) contradicts(fn *Function, n uint64) error {
	if f.Machine != elf.EM_X86_64 && f.Machine != elf.EM_386 {
		return nil // all instructions have one size
	}
	code, err := f.Code(fn, int(min(max(fn.Size, n+beginning), maxWalk)))
	if err != nil {
		return err
	}
	reached := make([]bool, len(code))
	for todo := []int64{0}; len(todo) > 0; {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for at >= 0 && at < int64(len(code)) && !reached[at] {
			reached[at] = true
			s := f.step(code[at:], uint64(at))
			if s.does == unknown {
				break
			}
			next := at + int64(s.length)
			if uint64(at) < n && n < uint64(next) {
				return errInside{fmt.Errorf("%s+%#x is inside an instruction: the function jumps to one at +%#x, and the next begins at +%#x", fn.Demangled(), n, at, next)}
			}
			if s.does == branches || s.does == jumps {
				todo = append(todo, s.target)
			}
			if s.does == jumps || endsFlow(code[at:next]) {
				break
			}
			at = next
		}
	}
	return nil
}

// endsFlow tells x86 instructions behind which the program does not go on: returns,
// jumps to where a register or memory says, traps.
func endsFlow(code []byte) bool {
	for len(code) > 1 && (bytes.IndexByte([]byte{0x3e, 0xf2, 0xf3, 0x66}, code[0]) >= 0 || code[0]&0xf0 == 0x40) {
		code = code[1:]
	}
	switch code[0] {
	case 0xc2, 0xc3, 0xca, 0xcb, 0xcc, 0xf4:
		return true
	case 0x0f:
		return len(code) > 1 && code[1] == 0x0b
	case 0xff:
		return len(code) > 1 && (code[1]>>3&7 == 4 || code[1]>>3&7 == 5)
	}
	return false
}

// instructionCache keeps what was found out about places inside the pieces of code that
// the unwind table knows. A file with many such places has few bytes before each, if
// it is honest.
type instructionCache struct {
	sync.Mutex
	of     map[Addr]error
	walked uint64 // bytes
}

// InsideInstructionAt is InsideInstruction for a place in the file, by the word of the
// symbols where the unwind table says nothing.
func (f *File) InsideInstructionAt(off Offset) error {
	im, _, err := readImage(f.r, f.size)
	if err != nil {
		return err
	}
	for _, s := range im.segments {
		if into := uint64(off) - s.off; s.isCode() && uint64(off) >= s.off && into < s.filesz {
			addr := Addr(s.addr + into)
			if f.frames().around(uint64(addr)) == nil {
				return f.insideOfSymbol(addr)
			}
			return f.InsideInstruction(addr)
		}
	}
	return nil
}

// insideOfSymbol decodes from the nearest function on that says it has this address.
func (f *File) insideOfSymbol(addr Addr) error {
	code := f.code()
	i := sort.Search(len(code), func(i int) bool { return code[i].Addr > addr }) - 1
	if i < 0 || uint64(addr-code[i].Addr) >= code[i].Size {
		return nil
	}
	err := f.begins(&code[i], uint64(addr-code[i].Addr))
	if !errors.As(err, new(errInside)) {
		return nil // what is not understood says nothing
	}
	return err
}

// InsideInstruction returns an error if a breakpoint at an address would stand inside an
// instruction, by the word of the unwind table about where code begins: symbols, of
// this file or of another one, and notes can be wrong.
func (f *File) InsideInstruction(addr Addr) error {
	const most = 64 << 20 // bytes decoded of one file
	around := f.frames().around(uint64(addr))
	if around == nil || around.start == uint64(addr) || around.signal {
		return nil
	}
	c := &f.instructions
	c.Lock()
	defer c.Unlock()
	if err, known := c.of[addr]; known {
		return err
	}
	into := uint64(addr) - around.start
	if c.walked += into; c.walked > most {
		return errors.New("it cannot be checked whether an instruction begins there: the file has too many such places")
	}
	im, _, err := readImage(f.r, f.size)
	if err != nil {
		return err
	}
	if off, ok := im.fileOffset(around.start, elf.PF_X); ok {
		fn := &Function{Symbol: Symbol{Name: fmt.Sprintf("%#x", around.start)}, Addr: Addr(around.start), Offset: Offset(off), Size: around.size}
		err = f.begins(fn, into)
		if !errors.As(err, new(errInside)) {
			err = nil // what is not understood says nothing
		}
	}
	if c.of == nil {
		c.of = map[Addr]error{}
	}
	c.of[addr] = err
	return err
}
