package symbols

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// survive reads a file's bytes and uses everything that it gives.
func survive(t testing.TB, b []byte) (*File, error) {
	t.Helper()
	f := &File{Path: "file", r: bytes.NewReader(b), size: uint64(len(b)), from: &Sources{Root: "testdata/no-debug-files"}}
	if err := f.read(); err != nil {
		if s := err.Error(); s != Printable(s) || strings.Contains(s, "\n") {
			t.Errorf("not one sentence: %q", s)
		}
		return nil, err
	}
	for i := range f.Functions {
		fn := &f.Functions[i]
		if uint64(fn.Offset) >= f.size {
			t.Errorf("%s lies behind the end of the file", fn)
		}
		if s := fn.Demangled(); s != Printable(s) {
			t.Errorf("%q is not fit for a terminal", s)
		}
		if _, err := f.Code(fn, 16); err != nil {
			t.Error(err)
		}
		if fns := f.Lookup(fn.Name); len(fns) == 0 {
			t.Errorf("%q is not found", fn.Name)
		}
		if p, err := f.Inside(fn, 3); err == nil && uint64(p.Offset) >= f.size {
			t.Errorf("%s lies behind the end of the file", p)
		}
		for _, p := range f.Points(fn) {
			if uint64(p.Offset) >= f.size || uint64(p.Semaphore) >= f.size || p.Arguments != Printable(p.Arguments) {
				t.Errorf("%s has the point %+v", fn, p)
			}
		}
		if _, err := f.At(fn.Addr + 1); err != nil && err.Error() != Printable(err.Error()) {
			t.Errorf("not one sentence: %q", err)
		}
	}
	if d := f.indirect; d != nil {
		_, _ = d.im.slots(d, true)
		for i := range f.Functions {
			f.Variants(&f.Functions[i])
		}
	}
	if fns, _ := f.Glob("*"); len(fns) > len(f.Functions) {
		t.Errorf("%d of %d functions match *", len(fns), len(f.Functions))
	}
	Search([]*File{f}, "a b", 10)
	f.Nearest("stedy", 3)
	for _, pattern := range []string{"", "t*d?", "a::*", "api@", "[^x]*"} {
		for _, l := range f.List(pattern) {
			if s := l.Versioned() + strings.Join(l.Other, ""); s != Printable(s) {
				t.Errorf("%q is not fit for a terminal", s)
			}
		}
	}
	for _, begin := range []string{"", "s", "a::b"} {
		for _, s := range f.Complete(begin, 3) {
			if s != Printable(s) || !strings.HasPrefix(s, begin) {
				t.Errorf("%q is offered for %q", s, begin)
			}
		}
	}
	f.MarkersNamed("plain")
	if fns := f.MarkersLike("*"); len(fns) != len(f.Markers()) {
		t.Errorf("%d of %d usdt probes match *", len(fns), len(f.Markers()))
	}
	f.LibraryDirs("")
	return f, nil
}

// allocated is how many bytes opening a file takes in all, garbage included.
func allocated(t testing.TB, b []byte) uint64 {
	path := writeFile(t, b)
	t.Setenv(tunablesVariable, "other processes are not asked")
	return allocatedBy(func() {
		if f, err := Open(path); err == nil {
			f.Close()
		}
	})
}

func allocatedBy(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func bound(size int) uint64 { return uint64(size)*40 + 64<<10 }

func forMachine(t testing.TB) []string {
	paths := []string{prebuilt(t), filepath.Join("testdata", "ifunc-"+runtime.GOARCH+".so")}
	if runtime.GOARCH == "amd64" {
		paths = append(paths, filepath.Join("testdata", "versioned-386.so"), filepath.Join("testdata", "ifunc-386.so"))
	}
	return paths
}

func TestCutShort(t *testing.T) {
	for _, path := range forMachine(t) {
		whole := readFile(t, path)
		opened := 0
		for n := len(whole) - 1; n >= 0; n-- {
			if _, err := survive(t, whole[:n]); err == nil {
				opened++
			}
			if n%256 == 0 {
				if got := allocated(t, whole[:n]); got > bound(n) {
					t.Errorf("%d bytes took %d", n, got)
				}
			}
		}
		// The section headers are at the end, so that every cut shows.
		if opened > 0 {
			t.Errorf("%s: %d cuts were not noticed", path, opened)
		}
	}
}

func TestFlippedBytes(t *testing.T) {
	const seed = 1 // a failure names the round; the same seed brings it back
	rounds := 1500
	if os.Getenv("UPROBETOP_LONG") != "" {
		rounds *= 30
	}
	rnd := rand.New(rand.NewPCG(seed, 0))
	seeds := strippedSeeds(t)
	for _, path := range forMachine(t) {
		seeds = append(seeds, readFile(t, path))
	}
	for _, whole := range seeds {
		for round := range rounds {
			b := append([]byte(nil), whole...)
			for range 1 + rnd.IntN(8) {
				at := rnd.IntN(len(b))
				if rnd.IntN(2) == 0 {
					at = rnd.IntN(1024) // headers, dynamic symbols and versions
				}
				b[at] = [...]byte{0, 0xff, 0x7f, 0x80, byte(rnd.Uint32())}[rnd.IntN(5)]
			}
			survive(t, b)
			if round%64 == 0 {
				if got := allocated(t, b); got > bound(len(b)) {
					t.Errorf("round %d: %d bytes took %d", round, len(b), got)
				}
			}
			if t.Failed() {
				t.Fatalf("in round %d", round)
			}
		}
	}
}

// crafted is a 64-bit file whose section headers a test can falsify.
type crafted struct {
	t *testing.T
	b []byte
}

func craft(t *testing.T) crafted { return crafted{t, readFile(t, prebuilt(t))} }

// section is the header of the first section of a type.
func (c crafted) section(typ elf.SectionType) []byte {
	c.t.Helper()
	off, n := binary.LittleEndian.Uint64(c.b[40:]), binary.LittleEndian.Uint16(c.b[60:])
	for i := range uint64(n) {
		h := c.b[off+i*64:][:64]
		if elf.SectionType(binary.LittleEndian.Uint32(h[4:])) == typ {
			return h
		}
	}
	c.t.Fatalf("no section of type %v", typ)
	return nil
}

func (c crafted) linked(h []byte) []byte {
	off := binary.LittleEndian.Uint64(c.b[40:])
	return c.b[off+uint64(binary.LittleEndian.Uint32(h[40:]))*64:][:64]
}

func TestFalseSections(t *testing.T) {
	put32, put64 := binary.LittleEndian.PutUint32, binary.LittleEndian.PutUint64
	for name, c := range map[string]struct {
		falsify func(crafted)
		want    string // in the error; empty where the file is still read
	}{
		"as it is":              {func(crafted) {}, ""},
		"wrong entry size":      {func(c crafted) { put64(c.section(elf.SHT_SYMTAB)[56:], 1) }, ""},
		"no entry size":         {func(c crafted) { put64(c.section(elf.SHT_DYNSYM)[56:], 0) }, ""},
		"huge symbol table":     {func(c crafted) { put64(c.section(elf.SHT_SYMTAB)[32:], 1<<40) }, "symbol table would lie behind its end"},
		"size that overflows":   {func(c crafted) { put64(c.section(elf.SHT_SYMTAB)[32:], ^uint64(0)) }, "symbol table would lie behind its end"},
		"offset that overflows": {func(c crafted) { put64(c.section(elf.SHT_SYMTAB)[24:], ^uint64(7)) }, "symbol table would lie behind its end"},
		"link to nowhere":       {func(c crafted) { put32(c.section(elf.SHT_SYMTAB)[40:], 9999) }, "symbol table names no string table"},
		"link to itself":        {func(c crafted) { put32(c.section(elf.SHT_DYNSYM)[40:], 3) }, "dynamic symbol table names no string table"},
		"huge strings":          {func(c crafted) { put64(c.linked(c.section(elf.SHT_SYMTAB))[32:], 1<<33) }, "string table would lie behind its end"},
		"no strings":            {func(c crafted) { put64(c.linked(c.section(elf.SHT_SYMTAB))[32:], 0) }, ""},
		"strings without a NUL": {func(c crafted) {
			h := c.linked(c.section(elf.SHT_SYMTAB))
			put64(h[32:], binary.LittleEndian.Uint64(h[32:])-1)
		}, ""},
		"compressed":              {func(c crafted) { put64(c.section(elf.SHT_SYMTAB)[8:], uint64(elf.SHF_COMPRESSED)) }, "compressed symbol table"},
		"the whole file":          {func(c crafted) { h := c.section(elf.SHT_SYMTAB); put64(h[24:], 0); put64(h[32:], uint64(len(c.b))) }, ""},
		"versions behind the end": {func(c crafted) { put64(c.section(elf.SHT_GNU_VERSYM)[24:], 1<<40) }, "table of symbol versions would lie behind its end"},
		"many sections": {func(c crafted) {
			b := c.b[60:62]
			b[0], b[1] = 0, 0
			put64(c.b[binary.LittleEndian.Uint64(c.b[40:])+32:], 1<<50)
		}, "section headers have a wrong size"},
	} {
		t.Run(name, func(t *testing.T) {
			cr := craft(t)
			c.falsify(cr)
			f, err := survive(t, cr.b)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want == "" && len(f.Lookup("steady")) == 0:
				t.Error("steady is not found any more")
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q", err, c.want)
			}
			if got := allocated(t, cr.b); got > bound(len(cr.b)) {
				t.Errorf("%d bytes took %d", len(cr.b), got)
			}
		})
	}
}

// TestSparseFile claims a string table of a terabyte and has the room for it.
func TestSparseFile(t *testing.T) {
	c := craft(t)
	binary.LittleEndian.PutUint64(c.linked(c.section(elf.SHT_SYMTAB))[32:], 1<<40)
	path := writeFile(t, c.b)
	if err := os.Truncate(path, 2<<40); err != nil {
		t.Skipf("no sparse file of 2 TB here: %v", err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "more than is read") {
		t.Errorf("got %v", err)
	}
}

// TestOverlappingNames has names that are long parts of each other, all at one
// address: their sum is far larger than the file.
func TestOverlappingNames(t *testing.T) {
	const n = 20_000
	f := &File{size: 1 << 20, Functions: make([]Function, n)}
	long := strings.Repeat("_Z1A", n)
	for i := range f.Functions {
		f.Functions[i] = Function{Symbol: Symbol{Name: long[i : i+maxName]}, Addr: Addr(i)}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, total := Search([]*File{f}, "z1", 5); total != n {
		t.Errorf("%d of %d found", total, n)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<30 {
		t.Errorf("took %d MB", got>>20)
	}
}

// strippedSeeds are files whose names are elsewhere than in a symbol table.
func strippedSeeds(t testing.TB) (seeds [][]byte) {
	t.Helper()
	for _, magic := range []uint32{go12, go116, go118, go120} {
		im, _ := forged(magic, 0x1000)
		seeds = append(seeds, im.asFile())
	}
	if _, err := exec.LookPath("objcopy"); err == nil {
		p := parts{stripped: prebuilt(t), debug: prebuilt(t)}
		p.stripped = p.addMini(t, packed(t, readFile(t, p.debug), 1<<16))
		p.link(t)
		run(t, "strip", p.stripped)
		seeds = append(seeds, readFile(t, p.stripped))
	}
	return seeds
}

func FuzzOpen(f *testing.F) {
	paths, err := filepath.Glob("testdata/*.so")
	if err != nil || len(paths) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, path := range paths {
		f.Add(readFile(f, path))
	}
	f.Add([]byte(elf.ELFMAG))
	for _, seed := range strippedSeeds(f) {
		f.Add(seed)
	}
	if _, err := exec.LookPath("gcc"); err == nil {
		f.Add(readFile(f, markers(f, "-nostdlib", "-shared", "-fPIC", "-DBARE", "-s")))
	}
	f.Fuzz(func(t *testing.T, b []byte) { survive(t, b) })
}
