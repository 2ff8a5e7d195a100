package symbols

import (
	"bytes"
	"debug/elf"
)

// An entry of the unwind table tells, for each instruction of a piece of code, how to
// find the frame of its caller: by steps that change a first row, which holds where
// the code begins. Where that is not as a call leaves it, the code is jumped to
// (DWARF 5, 6.4; Linux Standard Base Core, 10.6).

// unwindList is .eh_frame while it is read.
type unwindList struct {
	im      *image
	b       []byte
	addr    uint64
	commons map[uint64]*common // by their place in b; nil if one is not understood
}

// common is what entries have in common.
type common struct {
	pointers  byte // how addresses are written
	augmented bool // entries have further data before their steps
	signal    bool // of a signal's frame, which nobody called
	dataAlign int64
	returns   uint64 // the register of the return address
	steps     []byte
}

// entry reads an entry whose length, at a place in the list, has been read.
func (l *unwindList) entry(at uint64, b []byte) (f frame, ok bool) {
	back := uint64(order.Uint32(b))
	if back == 0 || back > at+4 {
		return f, false // a common one; or none
	}
	c := l.common(at + 4 - back)
	if c == nil {
		return f, false
	}
	if f.start, ok = l.im.pointerAt(b[4:], c.pointers, l.addr+at+8); !ok {
		return f, false
	}
	_, n, _ := l.im.pointer(b[4:], c.pointers&encSize)
	b = b[4+n:]
	if f.size, n, ok = l.im.pointer(b, c.pointers&encSize&7); !ok { // a size has no sign
		return f, false
	}
	steps := multibytes{b: b[n:]}
	if c.augmented {
		steps.skip(steps.next())
	}
	f.signal = c.signal
	f.called = !steps.bad && !c.signal && l.im.called(c, steps.b)
	return f, true
}

func (l *unwindList) common(at uint64) *common {
	c, known := l.commons[at]
	if !known {
		if n := uint64(len(l.b)); within(at, 8, n) && within(at+4, uint64(order.Uint32(l.b[at:])), n) {
			c = l.im.common(l.b[at+4 : at+4+uint64(order.Uint32(l.b[at:]))])
		}
		l.commons[at] = c
	}
	return c
}

// common reads a common entry; the result is nil if it is not understood.
func (im *image) common(b []byte) *common {
	if len(b) < 6 || order.Uint32(b) != 0 || b[4] != 1 && b[4] != 3 {
		return nil
	}
	version, b := b[4], b[5:]
	end := bytes.IndexByte(b, 0)
	if end < 0 {
		return nil
	}
	augmentation := b[:end]
	n := multibytes{b: b[end+1:]}
	n.next() // code alignment
	c := &common{dataAlign: n.signed()}
	if version == 1 {
		c.returns = uint64(n.byte())
	} else {
		c.returns = n.next()
	}
	c.steps = n.b
	if len(augmentation) > 0 {
		if augmentation[0] != 'z' {
			return nil
		}
		c.augmented = true
		size := n.next()
		data := multibytes{b: n.b[:min(size, uint64(len(n.b)))]}
		n.skip(size)
		c.steps = n.b
		if !im.augment(c, augmentation[1:], &data) || data.bad {
			return nil
		}
	}
	if n.bad {
		return nil
	}
	return c
}

func (im *image) augment(c *common, letters []byte, data *multibytes) bool {
	for _, letter := range letters {
		switch letter {
		case 'R':
			c.pointers = data.byte()
			if relative := c.pointers &^ encSize; relative != 0 && relative != encPC {
				return false
			}
		case 'L':
			data.byte()
		case 'P':
			_, size, ok := im.pointer(data.b[min(1, len(data.b)):], data.byte()&encSize)
			if !ok {
				return false
			}
			data.skip(uint64(size))
		case 'S':
			c.signal = true
		case 'B', 'G': // ARM64: keys and tags of pointers
		default:
			return false
		}
	}
	return true
}

// entered is how a call leaves things: the caller's frame begins so many bytes above
// the stack pointer, and the return address lies right below that or is in a register.
var entered = map[elf.Machine]struct {
	stack uint64 // register
	above int64
	saved bool // the return address is in memory
}{
	elf.EM_X86_64: {7, 8, true}, elf.EM_386: {4, 4, true}, elf.EM_AARCH64: {31, 0, false},
}

// called tells whether the first row is how a call leaves things.
// Of machines that are not known it is true.
func (im *image) called(c *common, steps []byte) bool {
	r := row{common: c}
	if !r.run(c.steps) {
		return false
	}
	r.initial = r.address
	if !r.run(steps) {
		return false
	}
	want, known := entered[im.machine]
	if !known {
		return true
	}
	if r.register != want.stack || r.offset != want.above {
		return false
	}
	if want.saved {
		return r.address == rule{inMemory, -want.above}
	}
	return r.address == rule{}
}

// row is how a frame is found: the caller's begins at offset from a register. address
// is where the return address is.
type row struct {
	*common
	register         uint64
	offset           int64
	address, initial rule
}

type rule struct {
	lies   lies
	offset int64 // from the beginning of the caller's frame
}

type lies uint8

const (
	inRegister lies = iota
	inMemory        // at offset
	notToBeFound
)

// noRegister is that of a frame which an expression finds.
const noRegister = ^uint64(0)

// Steps of entries. The first three have an operand in their low bits.
const (
	stepAdvance = 0x40
	stepOffset  = 0x80
	stepRestore = 0xc0
)

// run takes steps up to the first that goes on in the code. It tells whether all of
// them are understood.
func (r *row) run(steps []byte) bool {
	for s := (multibytes{b: steps}); len(s.b) > 0 && !s.bad; {
		op := s.byte()
		switch low := uint64(op & 0x3f); op & 0xc0 {
		case stepAdvance:
			if low > 0 {
				return true
			}
		case stepOffset:
			r.set(low, rule{inMemory, int64(s.next()) * r.dataAlign})
		case stepRestore:
			r.set(low, r.initial)
		default:
			if more, known := r.step(op, &s); !more || !known {
				return known && !s.bad
			}
		}
		if s.bad {
			return false
		}
	}
	return true
}

// step takes one of the other steps. more is false if it goes on in the code.
func (r *row) step(op byte, s *multibytes) (more, known bool) {
	switch op {
	case 0x00, 0x0a, 0x0b, 0x2d: // nop; remember_state and restore_state, which nobody has in a first row; negate_ra_state
		return true, op == 0x00 || op == 0x2d
	case 0x01, 0x02, 0x03, 0x04: // set_loc, advance_loc1, 2, 4
		return false, true
	case 0x05: // offset_extended
		register := s.next()
		r.set(register, rule{inMemory, int64(s.next()) * r.dataAlign})
	case 0x11: // offset_extended_sf
		register := s.next()
		r.set(register, rule{inMemory, s.signed() * r.dataAlign})
	case 0x06: // restore_extended
		r.set(s.next(), r.initial)
	case 0x08: // same_value
		r.set(s.next(), rule{})
	case 0x07: // undefined
		r.set(s.next(), rule{lies: notToBeFound})
	case 0x09, 0x14, 0x15: // register, val_offset, val_offset_sf
		r.set(s.next(), rule{lies: notToBeFound})
		s.next()
	case 0x10, 0x16: // expression, val_expression
		r.set(s.next(), rule{lies: notToBeFound})
		s.skip(s.next())
	case 0x0c: // def_cfa
		r.register, r.offset = s.next(), int64(s.next())
	case 0x12: // def_cfa_sf
		r.register, r.offset = s.next(), s.signed()*r.dataAlign
	case 0x0d: // def_cfa_register
		r.register = s.next()
	case 0x0e: // def_cfa_offset
		r.offset = int64(s.next())
	case 0x13: // def_cfa_offset_sf
		r.offset = s.signed() * r.dataAlign
	case 0x0f: // def_cfa_expression
		r.register = noRegister
		s.skip(s.next())
	case 0x2e: // GNU_args_size
		s.next()
	default:
		return false, false
	}
	return true, true
}

func (r *row) set(register uint64, to rule) {
	if register == r.returns {
		r.address = to
	}
}
