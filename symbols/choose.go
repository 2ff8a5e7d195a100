package symbols

import (
	"debug/elf"
	"os"
	"slices"
)

// choose moves the names of IFUNCs to the code that was chosen for them. What stays
// at a resolver is names that are its own.
func (sc *scan) choose(d *indirect) {
	kept := sc.symbols[:0]
	for _, s := range sc.symbols {
		c, known := d.told[s.addr]
		switch {
		case !s.indirect || !known:
		case c.vdso:
			sc.others = append(sc.others, symbol{Symbol: s.Symbol, place: InVDSO})
			continue
		default:
			s.indirect, s.chosen, s.addr, s.size = false, true, c.addr, 0
			if start, size, ok := d.frames.frame(c.addr); ok && start == c.addr {
				s.size = size
			}
		}
		kept = append(kept, s)
	}
	sc.symbols = kept
}

// resolve finds out what the IFUNCs of a file chose: in the process whose file it
// is, else in any.
func (f *File) resolve(sc *scan) {
	d := newIndirect(sc.im, sc.symbols)
	if d == nil {
		return
	}
	f.indirect = d
	d.buildID = f.BuildID
	if f.file != nil {
		if m, ok := f.mappedAs(); ok {
			d.id = m.id()
		}
		f.ask(d)
	}
	sc.choose(d)
}

func (f *File) ask(d *indirect) {
	tuned := os.Getenv(tunablesVariable) // of a command, which inherits it
	if f.process != nil {
		d.ask(f.process)
		tuned, _ = f.process.tunables()
	}
	switch {
	case d.complete():
		return
	case tuned != "":
		f.Untold = "with " + tunablesVariable + " set it can choose otherwise than in other processes"
		return
	}
	if d.search(); !d.complete() {
		f.Untold = "no running process tells which"
		if f.process != nil {
			f.Untold = "process " + f.process.String() + " has not called it yet (lazy binding), nor does another one tell which"
		}
		if os.Geteuid() != 0 {
			f.Untold += " to this user"
		}
	}
}

// variant is the point of a further variant of an IFUNC.
func (f *File) variant(im *image, addr uint64) Point {
	off, _ := im.fileOffset(addr, elf.PF_X)
	fn := Function{Addr: Addr(addr), Offset: Offset(off), Place: InFile}
	if start, size, ok := f.frames().frame(addr); ok && start == addr {
		fn.Size = size
	}
	return Point{Offset: fn.Offset, Again: f.ComesBack(&fn)}
}

// Also says that the file is one of a further process of a target. Where that has
// chosen another variant of an IFUNC than the first, which it can by GLIBC_TUNABLES
// alone, both are the function's Points: each call comes to one of them. It is to be
// called before anything else looks at the file's points.
func (f *File) Also(p *Process) {
	if f.indirect == nil || f.process == nil {
		return
	}
	here, _ := f.process.tunables()
	if there, ok := p.tunables(); !ok || here == there {
		return
	}
	d := *f.indirect
	d.asked, d.told = map[fileID]*relocated{}, map[uint64]choice{}
	d.ask(p)
	for resolver, c := range d.told {
		first, known := f.indirect.told[resolver]
		if !known || first.vdso || c.vdso || first.addr == c.addr {
			continue
		}
		if f.more == nil {
			f.more = map[Addr][]Point{}
		}
		addr, at := Addr(first.addr), f.variant(d.im, c.addr)
		if !slices.Contains(f.more[addr], at) {
			f.more[addr] = append(f.more[addr], at)
		}
	}
}
