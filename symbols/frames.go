package symbols

import (
	"cmp"
	"debug/elf"
	"fmt"
	"slices"
	"sort"
	"sync"
)

// unnamed is a point in code that no symbol is known of. Where the function begins
// that it is in, from where instructions are decoded, tells the unwind table, which
// is there to be found by exceptions and which strip therefore leaves.
func (f *File) unnamed(im *image, addr Addr) (*Function, error) {
	start, size, ok := f.frames().frame(uint64(addr))
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
)

// maxUnwind is how many bytes of an unwind table are read, several times what the
// largest known browsers have.
const maxUnwind = 256 << 20

// frames is the unwind table of a file: the pieces of code that it has entries for, in
// order of address. Each is a function, or a part of one that the compiler put elsewhere.
type frames []frame

type frame struct {
	start, size uint64
	called      bool // the return address is where a call leaves it when the code begins
	signal      bool // begun by a signal: start is, by agreement, a byte before the code
}

// frames is read once, when it is first asked for: whoever looks at all functions
// would else ask the system for each.
func (f *File) frames() frames {
	f.unwind.Do(func() {
		if f.r == nil {
			return
		}
		if im, _, err := readImage(f.r, f.size); err == nil {
			f.unwind.frames = im.frames()
		}
	})
	return f.unwind.frames
}

type framesOnce struct {
	sync.Once
	frames frames
}

// frame is the piece of code around an address.
func (fs frames) frame(addr uint64) (start, size uint64, ok bool) {
	f := fs.around(addr)
	if f == nil {
		return 0, 0, false
	}
	return f.start, f.size, true
}

func (fs frames) around(addr uint64) *frame {
	after := sort.Search(len(fs), func(i int) bool { return fs[i].start > addr })
	if after == 0 || addr-fs[after-1].start >= fs[after-1].size {
		return nil
	}
	return &fs[after-1]
}

// frames reads the unwind table, entry by entry. It is empty if the file has none, or
// one in a form that no compiler writes.
func (im *image) frames() frames {
	b, addr := im.unwindList()
	list := unwindList{im: im, b: b, addr: addr, commons: map[uint64]*common{}}
	var fs frames
	for at := uint64(0); within(at, 8, uint64(len(b))); {
		n := uint64(order.Uint32(b[at:]))
		if n < 4 || !within(at+4, n, uint64(len(b))) { // its end
			break
		}
		if f, ok := list.entry(at, b[at+4:at+4+n]); ok && f.size > 0 {
			fs = append(fs, f)
		}
		at += 4 + n
	}
	byStart := func(a, b frame) int { return cmp.Compare(a.start, b.start) }
	if !slices.IsSortedFunc(fs, byStart) {
		slices.SortStableFunc(fs, byStart)
	}
	return fs
}

// unwindList is .eh_frame and its address: where the segment says that the unwinder
// uses, else the section, since static programs can be without the former. Only the
// section says where it ends; without, a zero does.
func (im *image) unwindList() (b []byte, addr uint64) {
	listed, named := im.sectionNamed(".eh_frame")
	addr, ok := im.unwindHeader()
	if !ok {
		if !named {
			return nil, 0
		}
		addr = listed.addr
	}
	for i := range im.segments {
		s := &im.segments[i]
		if s.typ != elf.PT_LOAD || addr < s.addr || addr-s.addr >= s.filesz {
			continue
		}
		n := s.filesz - (addr - s.addr)
		if named && listed.addr == addr {
			n = min(n, listed.size)
		}
		b, _ = im.bytes(s.off+(addr-s.addr), min(n, maxUnwind), "unwind table")
		return b, addr
	}
	return nil, 0
}

// unwindHeader reads from .eh_frame_hdr where .eh_frame is.
func (im *image) unwindHeader() (list uint64, ok bool) {
	const bytes = 12 // version, three encodings, a pointer
	for i := range im.segments {
		s := &im.segments[i]
		if s.typ != elf.PT_GNU_EH_FRAME {
			continue
		}
		h, err := im.bytes(s.off, bytes, "unwind table")
		if err != nil || h[0] != 1 {
			return 0, false
		}
		return im.pointerAt(h[4:], h[1], s.addr+4)
	}
	return 0, false
}

func signed32(b []byte) uint64 { return uint64(int64(int32(order.Uint32(b)))) }

// address cuts a sum to the size of an address.
func (im *image) address(n uint64) uint64 {
	if im.is64 {
		return n
	}
	return uint64(uint32(n))
}

// pointerAt reads a pointer that stands at an address.
func (im *image) pointerAt(b []byte, enc byte, at uint64) (value uint64, ok bool) {
	value, _, ok = im.pointer(b, enc&encSize)
	switch enc &^ encSize {
	case encAbsolute:
	case encPC:
		value += at
	default:
		return 0, false
	}
	return im.address(value), ok
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
