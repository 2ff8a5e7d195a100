package symbols

import (
	"debug/elf"
	"slices"
	"strings"
	"sync"

	"golang.org/x/arch/x86/x86asm"
)

// maxResolver is how much of a resolver is read for what it refers to, in bytes.
const maxResolver = 4 << 10

// Variants is what an IFUNC may stand for, of which it is not known what it chose:
// names, or addresses of functions without one, each as Lookup or At takes it. They
// are the functions to which the resolver's code refers; where it is not understood,
// those that have the IFUNC's name in theirs.
func (f *File) Variants(fn *Function) []string {
	if fn.Place != Resolver || f.indirect == nil {
		return nil
	}
	cache := &f.variants
	cache.Lock()
	defer cache.Unlock()
	found, known := cache.of[fn.Addr]
	if !known {
		if found = f.referred(fn); len(found) == 0 {
			found = f.namedAfter(fn)
		}
		if cache.of == nil {
			cache.of = map[Addr][]string{}
		}
		cache.of[fn.Addr] = found
	}
	return found
}

// OfProcess tells whether a file was opened as one that a process has mapped.
func (f *File) OfProcess() bool { return f.process != nil }

// variantCache keeps what is asked for again with every picture of a screen.
type variantCache struct {
	sync.Mutex
	of map[Addr][]string
}

func (f *File) referred(fn *Function) (names []string) {
	for _, addr := range f.indirect.taken(uint64(fn.Addr)) {
		if variant, err := f.At(Addr(addr)); err == nil && variant.Into == 0 && variant.Place == InFile {
			names = append(names, variant.Demangled())
		}
	}
	return names
}

// namedAfter is the functions called as an IFUNC and more: __memcpy_avx_unaligned.
func (f *File) namedAfter(fn *Function) (names []string) {
	code := f.code()
	for i := range code {
		for _, s := range fn.symbols() {
			name := strings.TrimLeft(code[i].Name, "_")
			if rest, ok := strings.CutPrefix(name, strings.TrimLeft(s.Name, "_")+"_"); ok && rest != "" && &code[i] != fn {
				names = append(names, code[i].Demangled())
				break
			}
		}
	}
	return names
}

// taken is the addresses of code that a resolver takes, in its order.
func (d *indirect) taken(resolver uint64) (found []uint64) {
	off, ok := d.im.fileOffset(resolver, elf.PF_X)
	if !ok {
		return nil
	}
	code, err := d.im.bytes(off, min(d.extent(resolver), d.im.size-off), "code")
	if err != nil {
		return nil
	}
	take := func(addr uint64) {
		if _, ok := d.im.fileOffset(addr, elf.PF_X); ok && addr != resolver && !slices.Contains(found, addr) {
			found = append(found, addr)
		}
	}
	switch d.im.machine {
	case elf.EM_AARCH64:
		takenARM64(code, resolver, take)
	case elf.EM_X86_64, elf.EM_386:
		var got uint64 // what 32-bit code reckons from
		if tags, err := d.im.dynamicTags(); err == nil {
			got = tags[elf.DT_PLTGOT]
		}
		takenX86(d.im.machine, code, resolver, got, take)
	}
	return found
}

// extent is how many bytes a resolver has, at most.
func (d *indirect) extent(resolver uint64) uint64 {
	if size := d.resolvers[resolver]; size > 0 {
		return min(size, maxResolver)
	}
	end := uint64(maxResolver)
	for addr := range d.resolvers {
		if addr > resolver {
			end = min(end, addr-resolver)
		}
	}
	for addr := range d.begins {
		if addr > resolver {
			end = min(end, addr-resolver)
		}
	}
	return end
}

// takenX86 finds the addresses that x86 code takes: lea of a place near the code or
// near the global offset table, and mov of a number where addresses are fixed.
func takenX86(machine elf.Machine, code []byte, at, got uint64, take func(uint64)) {
	mode := 64
	if machine == elf.EM_386 {
		mode = 32
	}
	f := File{Machine: machine}
	for len(code) > 0 {
		n, err := f.instruction(code)
		if err != nil || n == 0 || n > uint64(len(code)) {
			return
		}
		at += n
		if inst, err := x86asm.Decode(code[:n], mode); err == nil && uint64(inst.Len) == n {
			switch from := inst.Args[1].(type) {
			case x86asm.Mem:
				switch {
				case inst.Op != x86asm.LEA || from.Index != 0:
				case from.Base == x86asm.RIP:
					take(at + uint64(from.Disp))
				case from.Base == 0:
					take(uint64(from.Disp))
				case mode == 32:
					take(uint64(uint32(got + uint64(from.Disp))))
				}
			case x86asm.Imm:
				if inst.Op == x86asm.MOV {
					take(uint64(from))
				}
			}
		}
		code = code[n:]
	}
}

// takenARM64 finds the addresses that ARM64 code takes: adr, and adrp with the add
// that follows (ARM DDI 0487, PC-relative addressing).
func takenARM64(code []byte, at uint64, take func(uint64)) {
	var page [32]uint64 // by register
	var known [32]bool
	for ; len(code) >= 4; code, at = code[4:], at+4 {
		insn := order.Uint32(code)
		to, from := insn&31, insn>>5&31
		relative := uint64(int64(int32(insn<<8)>>13<<2) | int64(insn>>29&3))
		switch {
		case insn&0x9f000000 == 0x10000000: // adr
			take(at + relative)
		case insn&0x9f000000 == 0x90000000: // adrp
			page[to], known[to] = at&^0xfff+relative<<12, true
		case insn&0xffc00000 == 0x91000000 && known[from]: // add
			take(page[from] + uint64(insn>>10&0xfff))
		}
	}
}
