package symbols

import (
	"debug/elf"
	"slices"
)

// An IFUNC's address is that of its resolver, which a loader calls once to learn
// which variant of the code is for this CPU. What it chose stands in the memory of
// every process that has the file mapped, in slots that relocations name. A process
// can write there what it likes, and a breakpoint in the middle of an instruction
// changes a program: so only the beginning of a function is believed, and what
// functions there are is told by the file alone.

// indirect is the IFUNCs of a file and what is learnt of them.
type indirect struct {
	im        *image
	id        fileID // as maps files name it; zero if nobody can map it
	buildID   string
	resolvers map[uint64]uint64 // by address, with the size that the symbol gives
	versions  map[string][]indirectName
	begins    map[uint64]bool // functions with a symbol
	frames    frames          // the unwinder knows the others

	asked map[fileID]*relocated // files of processes, each read once
	told  map[uint64]choice     // by resolver
}

type indirectName struct {
	Symbol
	resolver uint64
}

// choice is which code a resolver chose.
type choice struct {
	addr uint64
	vdso bool // the kernel's own, which is in no file
}

// relocated is a file of a process, which may have slots for the IFUNCs.
type relocated struct {
	im     *image // its headers, nil if it is for another machine; what it reads from is closed
	same   bool   // the file of the IFUNCs, or the same build
	slots  []slot
	filled bool // slots
}

// newIndirect collects the IFUNCs of a file; nil if it has none.
func newIndirect(im *image, all []symbol) *indirect {
	if !slices.ContainsFunc(all, func(s symbol) bool { return s.indirect }) {
		return nil
	}
	d := &indirect{
		im: im, resolvers: map[uint64]uint64{}, versions: map[string][]indirectName{}, begins: map[uint64]bool{},
		frames: im.frames(), asked: map[fileID]*relocated{}, told: map[uint64]choice{},
	}
	for _, s := range all {
		switch {
		case s.indirect:
			d.resolvers[s.addr] = s.size
			d.versions[s.Name] = append(d.versions[s.Name], indirectName{s.Symbol, s.addr})
		case !s.untyped:
			d.begins[s.addr] = true
		}
	}
	return d
}

// resolverOf is the resolver of the IFUNC that another file means by a symbol, or 0.
func (d *indirect) resolverOf(s Symbol) uint64 {
	for _, n := range d.versions[s.Name] {
		if n.Version == s.Version || n.Version == "" || s.Version == "" && n.Default {
			return n.resolver
		}
	}
	return 0
}

// isFunction tells whether a function begins at an address, by the word of the file:
// of the unwinder's table, of its symbols, or if it has no table of the resolver's code.
func (d *indirect) isFunction(addr, resolver uint64) bool {
	_, ok := d.im.fileOffset(addr, elf.PF_X)
	_, indirect := d.resolvers[addr]
	if !ok || indirect {
		return false
	}
	if f := d.frames.around(addr); f != nil {
		return f.start == addr && f.called
	}
	return d.begins[addr] || len(d.frames) == 0 && slices.Contains(d.taken(resolver), addr)
}

// complete tells whether nothing is left to ask.
func (d *indirect) complete() bool { return len(d.told) == len(d.resolvers) }

// untold is the names of those of which it is not known yet what they chose.
func (d *indirect) untold() (names []string) {
	for name, versions := range d.versions {
		for _, v := range versions {
			if _, known := d.told[v.resolver]; !known {
				names = append(names, name)
				break
			}
		}
	}
	return names
}

// ask reads what a process that has the file mapped chose, as far as it is not
// known yet: in the file itself, then in what else is loaded.
func (d *indirect) ask(p *Process) {
	m, err := p.memory()
	if err != nil {
		return
	}
	defer m.Close()
	files := m.files()
	at := slices.IndexFunc(files, func(r region) bool { return r.id() == d.id })
	if at < 0 {
		at = slices.IndexFunc(files, func(r region) bool { return d.of(m, r).same })
	}
	if at < 0 {
		return
	}
	own := files[at]
	var biases []uint64
	if im := d.of(m, own).im; im != nil {
		biases = im.biases(m.of(own.id()))
	}
	files[0], files[at] = files[at], files[0]
	for _, r := range files {
		f := d.of(m, r)
		if d.fillSlots(m, r, f); len(f.slots) == 0 {
			continue
		}
		for _, bias := range f.im.biases(m.of(r.id())) {
			d.read(m, f, bias, biases)
		}
		if d.complete() {
			return
		}
	}
}

// of looks at a file that a process has mapped.
func (d *indirect) of(m *memory, r region) *relocated {
	if f, known := d.asked[r.id()]; known {
		return f
	}
	f := &relocated{same: r.id() == d.id}
	d.asked[r.id()] = f
	im, closer, err := m.open(r)
	if err != nil {
		return f
	}
	defer closer.Close()
	if im.machine != d.im.machine {
		return f
	}
	f.im = im
	if !f.same && d.buildID != "" {
		var twin File
		err := twin.readNotes(im)
		f.same = err == nil && twin.BuildID == d.buildID
	}
	return f
}

// fillSlots reads the relocations of a file, once it is known to matter.
func (d *indirect) fillSlots(m *memory, r region, f *relocated) {
	if f.im == nil || f.filled {
		return
	}
	f.filled = true
	im, closer, err := m.open(r)
	if err != nil {
		return
	}
	defer closer.Close()
	if f.same || im.mentions(d.untold()) {
		f.slots, _ = im.slots(d, f.same) // of a damaged file there are none
	}
}

// read reads the slots of one file in memory.
func (d *indirect) read(m *memory, f *relocated, bias uint64, biases []uint64) {
	b := make([]byte, 8)
	if !f.im.is64 {
		b = b[:4]
	}
	for _, s := range f.slots {
		if _, known := d.told[s.resolver]; known {
			continue
		}
		if _, err := m.ReadAt(b, int64(bias+s.at)); err != nil {
			continue
		}
		if c, ok := d.judge(s.resolver, word(b), m.vdso, biases); ok {
			d.told[s.resolver] = c
		}
	}
}

// judge takes what a slot holds for what an IFUNC chose, if it can be: not the way
// to the loader that is there before the first call, nor another library's function.
func (d *indirect) judge(resolver, value uint64, vdso region, biases []uint64) (choice, bool) {
	if vdso.Start <= value && value < vdso.End {
		return choice{vdso: true}, true
	}
	for _, bias := range biases {
		if addr := value - bias; d.isFunction(addr, resolver) {
			return choice{addr: addr}, true
		}
	}
	return choice{}, false
}
