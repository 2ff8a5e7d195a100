package symbols

import (
	"cmp"
	"debug/elf"
	"slices"
)

// frame is one function as the unwinder knows it.
type frame struct {
	addr uint64 // at which it begins
	at   uint64 // the address of its entry in .eh_frame
}

// functionStarts is where functions begin, in order, by the table that a linker
// makes for the unwinder (LSB, .eh_frame_hdr). It stays in stripped files, and has
// what is written in assembler, too, if that says how to unwind it. A file without
// a table, or with one that is damaged or of another make, has none.
func (im *image) functionStarts() []frame {
	const header, entry = 12, 8
	// The version, and in what form the table is: that which linkers write.
	const form = "\x01\x1b\x03\x3b"
	for _, s := range im.segments {
		if s.typ != elf.PT_GNU_EH_FRAME || s.filesz < header {
			continue
		}
		h, err := im.bytes(s.off, header, "table of functions")
		if err != nil || string(h[:4]) != form {
			return nil
		}
		n := uint64(order.Uint32(h[8:]))
		if n > maxSymbols || n*entry > s.filesz-header {
			return nil
		}
		b, err := im.bytes(s.off+header, n*entry, "table of functions")
		if err != nil {
			return nil
		}
		starts := make([]frame, 0, n)
		for ; len(b) > 0; b = b[entry:] {
			starts = append(starts, frame{s.addr + signed4(b), s.addr + signed4(b[4:])})
		}
		slices.SortFunc(starts, func(a, b frame) int { return cmp.Compare(a.addr, b.addr) })
		return starts
	}
	return nil
}

func signed4(b []byte) uint64 { return uint64(int64(int32(order.Uint32(b)))) }

// frameSize is how many bytes a function has, or 0: its entry must say that the
// function begins where the table does, in the form that compilers write.
func (im *image) frameSize(f frame) uint64 {
	const start, length = 8, 12 // behind the entry's own size and the pointer to what it shares
	off, ok := im.fileOffset(f.at, 0)
	if !ok {
		return 0
	}
	b, err := im.bytes(off, length+4, "table of functions")
	if err != nil || f.at+start+signed4(b[start:]) != f.addr {
		return 0
	}
	return uint64(order.Uint32(b[length:]))
}

// findFrame finds the function that begins at an address.
func findFrame(starts []frame, addr uint64) (frame, bool) {
	i, ok := slices.BinarySearchFunc(starts, addr, func(f frame, addr uint64) int { return cmp.Compare(f.addr, addr) })
	if !ok {
		return frame{}, false
	}
	return starts[i], true
}
