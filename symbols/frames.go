package symbols

import (
	"bytes"
	"debug/elf"
	"fmt"
	"sort"
)

// unnamed is a point in code that no symbol is known of. Where the function begins
// that it is in, from where instructions are decoded, tells the unwind table, which
// is there to be found by exceptions and which strip therefore leaves.
func (f *File) unnamed(im *image, addr Addr) (*Function, error) {
	start, size, ok := im.frame(uint64(addr))
	if !ok {
		return nil, fmt.Errorf("%#x is in no function that %s has a symbol or an unwind entry for, so that it cannot be checked whether an instruction begins there", uint64(addr), Printable(f.Path))
	}
	off, ok := im.fileOffset(start, elf.PF_X)
	if !ok {
		return nil, fmt.Errorf("the unwind entry for %#x in %s is of no code", uint64(addr), Printable(f.Path))
	}
	into := uint64(addr) - start
	around := &Function{Symbol: Symbol{Name: fmt.Sprintf("%#x", start)}, Addr: Addr(start), Offset: Offset(off), Size: size}
	if err := f.begins(around, into); err != nil {
		return nil, err
	}
	return &Function{
		Symbol: Symbol{Name: fmt.Sprintf("%#x", uint64(addr))},
		Addr:   addr, Offset: Offset(off + into), Into: into, Unnamed: true,
	}, nil
}

// Encodings of pointers in the unwind tables, and what they are relative to
// (Linux Standard Base Core, 10.5).
const (
	encAbsolute = 0x00
	encUdata4   = 0x03
	encUdata8   = 0x04
	encSdata4   = 0x0b
	encSdata8   = 0x0c
	encSize     = 0x0f
	encPC       = 0x10 // relative to where the pointer stands
	encTable    = 0x3b // sdata4, relative to the beginning of .eh_frame_hdr: what every linker writes
)

// frame finds the piece of code around addr that the unwind table has an entry for:
// a function, or a part of one that the compiler put elsewhere. The header has the
// beginnings in order, each with its entry in .eh_frame, which has the size.
func (im *image) frame(addr uint64) (start, size uint64, ok bool) {
	hdr, count := im.unwindHeader()
	if hdr == nil {
		return im.frameInList(addr)
	}
	at := func(i int) (begins, fde uint64) {
		b, err := im.bytes(hdr.off+unwindEntries+uint64(i)*unwindEntry, unwindEntry, "unwind table")
		if err != nil {
			return ^uint64(0), 0
		}
		return im.address(hdr.addr + signed32(b)), im.address(hdr.addr + signed32(b[4:]))
	}
	after := sort.Search(count, func(i int) bool { begins, _ := at(i); return begins > addr })
	if after == 0 {
		return 0, 0, false
	}
	start, fde := at(after - 1)
	begins, size, ok := im.fde(fde)
	return start, size, ok && begins == start && addr-start < size
}

const (
	unwindEntries = 12 // bytes before the entries: version, three encodings, where .eh_frame is, count
	unwindEntry   = 8  // bytes of one
)

// unwindHeader is .eh_frame_hdr and the number of its entries; nil if the file has
// none, or one of another form than linkers write.
func (im *image) unwindHeader() (hdr *segment, count int) {
	for i := range im.segments {
		hdr := &im.segments[i]
		if hdr.typ != elf.PT_GNU_EH_FRAME {
			continue
		}
		h, err := im.bytes(hdr.off, unwindEntries, "unwind table")
		if err != nil || h[0] != 1 || h[2] != encUdata4 || h[3] != encTable {
			return nil, 0
		}
		if pointer := h[1] & encSize; pointer != encUdata4 && pointer != encSdata4 {
			return nil, 0
		}
		count := int(order.Uint32(h[8:]))
		if hdr.filesz < unwindEntries || !within(unwindEntries, uint64(count)*unwindEntry, hdr.filesz) {
			return nil, 0
		}
		return hdr, count
	}
	return nil, 0
}

// hasFrames tells whether frame knows the functions of the file.
func (im *image) hasFrames() bool {
	hdr, count := im.unwindHeader()
	_, listed := im.sectionNamed(".eh_frame")
	return hdr != nil && count > 0 || hdr == nil && listed
}

// frameInList looks through .eh_frame itself, entry by entry: static programs can be
// without its header.
func (im *image) frameInList(addr uint64) (start, size uint64, ok bool) {
	list, ok := im.sectionNamed(".eh_frame")
	for at := uint64(0); ok && within(at, 8, min(list.size, maxWalk)); {
		b := im.upTo(list.addr+at, 4)
		if len(b) < 4 || order.Uint32(b) < 8 { // its end; every entry has more
			break
		}
		if start, size, ok := im.fde(list.addr + at); ok && addr >= start && addr-start < size {
			return start, size, true
		}
		at += 4 + uint64(order.Uint32(b))
	}
	return 0, 0, false
}

func signed32(b []byte) uint64 { return uint64(int64(int32(order.Uint32(b)))) }

// address cuts a sum to the size of an address.
func (im *image) address(n uint64) uint64 {
	if im.is64 {
		return n
	}
	return uint64(uint32(n))
}

// fde reads an entry of .eh_frame: where its code begins, and how many bytes it has.
func (im *image) fde(addr uint64) (start, size uint64, ok bool) {
	const longest = 64 // bytes that are needed of an entry
	b := im.upTo(addr, longest)
	if len(b) < 8 {
		return 0, 0, false
	}
	length, back := order.Uint32(b), order.Uint32(b[4:])
	if length == 0xffffffff || back == 0 {
		return 0, 0, false // in 64 bits, which no compiler writes here; or none of code
	}
	enc, ok := im.pointerEncoding(addr + 4 - uint64(back))
	if !ok {
		return 0, 0, false
	}
	start, n, ok := im.pointer(b[8:], enc&encSize)
	if !ok {
		return 0, 0, false
	}
	if enc&^encSize == encPC {
		start += addr + 8
	}
	size, _, ok = im.pointer(b[8+n:], enc&encSize&7) // a size has no sign
	return im.address(start), size, ok
}

// pointerEncoding reads from a common entry how the addresses in others are written.
func (im *image) pointerEncoding(addr uint64) (enc byte, ok bool) {
	const longest = 128
	b := im.upTo(addr, longest)
	if len(b) < 10 || order.Uint32(b[4:]) != 0 || b[8] != 1 && b[8] != 3 {
		return 0, false
	}
	version, b := b[8], b[9:]
	end := bytes.IndexByte(b, 0)
	if end < 0 {
		return 0, false
	}
	augmentation := b[:end]
	n := multibytes{b: b[end+1:]}
	n.next()                          // code alignment
	n.next()                          // data alignment
	if version == 1 && len(n.b) > 0 { // return register
		n.b = n.b[1:]
	} else {
		n.next()
	}
	if len(augmentation) == 0 {
		return encAbsolute, !n.bad
	}
	if augmentation[0] != 'z' {
		return 0, false
	}
	n.next() // bytes of what follows
	for _, c := range augmentation[1:] {
		if n.bad || len(n.b) == 0 && c != 'S' && c != 'B' {
			return 0, false
		}
		switch c {
		case 'R':
			enc := n.b[0]
			return enc, enc&^encSize == 0 || enc&^encSize == encPC
		case 'L':
			n.b = n.b[1:]
		case 'P':
			_, size, ok := im.pointer(n.b[1:], n.b[0]&encSize)
			if !ok {
				return 0, false
			}
			n.b = n.b[1+size:]
		case 'S', 'B':
		default:
			return 0, false
		}
	}
	return encAbsolute, !n.bad
}

// pointer reads a pointer and tells how many bytes it has.
func (im *image) pointer(b []byte, enc byte) (value uint64, size int, ok bool) {
	if enc == encAbsolute {
		enc = encUdata4
		if im.is64 {
			enc = encUdata8
		}
	}
	switch {
	case (enc == encUdata8 || enc == encSdata8) && len(b) >= 8:
		return order.Uint64(b), 8, true
	case enc == encUdata4 && len(b) >= 4:
		return uint64(order.Uint32(b)), 4, true
	case enc == encSdata4 && len(b) >= 4:
		return signed32(b), 4, true
	}
	return 0, 0, false
}

// upTo is up to n loaded bytes at an address: fewer at the end of the file.
func (im *image) upTo(addr, n uint64) []byte {
	off, ok := im.fileOffset(addr, 0)
	if !ok {
		return nil
	}
	b, err := im.bytes(off, min(n, im.size-min(off, im.size)), "unwind table")
	if err != nil {
		return nil
	}
	return b
}
