package symbols

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// buildGo builds testdata/golang.
func buildGo(t testing.TB, cgo bool, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("go")
	if err != nil {
		t.Skipf("no Go: %v", err)
	}
	out := filepath.Join(t.TempDir(), "golang")
	cmd := exec.Command(path, append(append([]string{"build", "-o", out}, args...), ".")...)
	cmd.Dir = filepath.Join("testdata", "golang")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if cgo {
		if _, err := exec.LookPath("gcc"); err != nil {
			t.Skipf("no C compiler: %v", err)
		}
		cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	}
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, b)
	}
	return out
}

// A stripped program has its Go functions where they were before, in whatever way it
// is linked.
func TestGoTable(t *testing.T) {
	for _, c := range []struct {
		cgo  bool
		args []string
	}{
		{false, nil},
		{true, []string{"-buildmode=pie"}},
		{true, []string{"-buildmode=c-shared"}},
	} {
		name := strings.Join(c.args, "") + map[bool]string{true: "cgo"}[c.cgo]
		t.Run(name, func(t *testing.T) {
			path := buildGo(t, c.cgo, c.args...)
			whole, stripped := mustOpen(t, path), bare(t, path)
			if stripped.Source != "Go's function table" || stripped.Stripped || !stripped.Go || len(stripped.Notes) > 0 {
				t.Fatalf("names come from %q; notes %q", stripped.Source, stripped.Notes)
			}
			if whole.Source != "symbol table" {
				t.Errorf("with a symbol table names come from %q", whole.Source)
			}
			at := map[Addr]*Function{}
			for i := range whole.Functions {
				at[whole.Functions[i].Addr] = &whole.Functions[i]
			}
			n := 0
			for i := range stripped.Functions {
				fn := &stripped.Functions[i]
				want := at[fn.Addr]
				if fn.Place >= NoCode {
					continue
				}
				n++
				if want == nil || fn.Offset != want.Offset || !hasName(want, fn.Name) {
					t.Errorf("%+v, want %+v", fn, want)
				}
			}
			for _, name := range []string{"main.work", "main.main", "main.(*pair[go.shape.string]).swap", "runtime.mallocgc", "runtime.morestack"} {
				if fn := one(t, stripped, name); fn.Size == 0 {
					t.Errorf("%s has no size", name)
				}
			}
			if n < 1000 {
				t.Errorf("only %d functions", n)
			}
			b := readFile(t, path)
			clear(b[40:48]) // where the section headers are
			none := mustOpen(t, writeFile(t, b))
			if got, want := one(t, none, "main.work"), one(t, whole, "main.work"); got.Addr != want.Addr || got.Offset != want.Offset {
				t.Errorf("without sections main.work is %+v, want %+v", got, want)
			}
		})
	}
}

func hasName(fn *Function, name string) bool {
	for _, s := range fn.symbols() {
		if strings.TrimSuffix(s.Name, ".abi0") == name { // of assembler; with cgo it is in the symbol table alone
			return true
		}
	}
	return false
}

// forged is a file with a table as a version of Go writes it, of two functions in 64
// bytes of code: one of 16 bytes, and one of 32.
func forged(magic uint32, text uint64) (*image, []byte) {
	const code, table = 0x1000, 0x2000
	b := make([]byte, 0x3000)
	t := b[table:]
	order.PutUint32(t, magic)
	t[6], t[7] = 1, 8
	word := func(i int, v uint64) { order.PutUint64(t[8+8*i:], v) }
	put := func(at int, vs ...uint32) {
		for i, v := range vs {
			order.PutUint32(t[at+4*i:], v)
		}
	}
	word(0, 2)
	copy(t[0x101:], "main.one\x00main.two\x00")
	switch magic {
	case go12:
		for i, v := range []uint64{code, 0x200, code + 16, 0x220, code + 48} {
			word(1+i, v)
		}
		order.PutUint64(t[0x200:], code)
		put(0x208, 0x101)
		order.PutUint64(t[0x220:], code+16)
		put(0x228, 0x10a)
	case go116:
		word(2, 0x100)
		word(3, 0x180)
		word(6, 0x200)
		for i, v := range []uint64{code, 0x40, code + 16, 0x60, code + 48} {
			order.PutUint64(t[0x200+8*i:], v)
		}
		order.PutUint64(t[0x240:], code)
		put(0x248, 1)
		order.PutUint64(t[0x260:], code+16)
		put(0x268, 10)
	default:
		word(2, text)
		word(3, 0x100)
		word(4, 0x180)
		word(7, 0x200)
		put(0x200, 0, 0x40, 16, 0x60, 48)
		put(0x240, 0, 1)
		put(0x260, 16, 10)
	}
	names := b[0x2f00:]
	copy(names, "\x00.gopclntab\x00.text\x00")
	return &image{
		r: bytes.NewReader(b), size: uint64(len(b)), is64: true, machine: elf.EM_X86_64, nameTable: 1,
		segments: []segment{{typ: elf.PT_LOAD, flags: elf.PF_R | elf.PF_X, addr: code, off: code, filesz: 64, memsz: 64}},
		sections: []section{
			{name: 1, typ: elf.SHT_PROGBITS, addr: table, off: table, size: 0x300},
			{typ: elf.SHT_STRTAB, off: 0x2f00, size: 0x100},
			{name: 12, typ: elf.SHT_PROGBITS, addr: code, off: code, size: 48},
		},
	}, t[:0x300]
}

// asFile writes the headers of a forged image into its first page, which is free.
func (im *image) asFile() []byte {
	b := make([]byte, im.size)
	_, _ = im.r.ReadAt(b, 0)
	copy(b, elf.ELFMAG+"\x02\x01\x01")
	order.PutUint16(b[16:], uint16(elf.ET_EXEC))
	order.PutUint16(b[18:], uint16(machines[runtime.GOARCH][0]))
	order.PutUint64(b[32:], 64)
	order.PutUint64(b[40:], 0x800)
	for i, v := range []int{56, len(im.segments), 64, len(im.sections), int(im.nameTable)} {
		order.PutUint16(b[54+2*i:], uint16(v))
	}
	for i, s := range im.segments {
		h := b[64+56*i:]
		order.PutUint32(h, uint32(s.typ))
		order.PutUint32(h[4:], uint32(s.flags))
		for j, v := range []uint64{s.off, s.addr, s.addr, s.filesz, s.memsz, 8} {
			order.PutUint64(h[8+8*j:], v)
		}
	}
	for i, s := range im.sections {
		h := b[0x800+64*i:]
		order.PutUint32(h, s.name)
		order.PutUint32(h[4:], uint32(s.typ))
		for j, v := range []uint64{0, s.addr, s.off, s.size} {
			order.PutUint64(h[8+8*j:], v)
		}
	}
	return b
}

func TestGoTableVersions(t *testing.T) {
	for _, c := range []struct {
		magic uint32
		text  uint64
	}{{go12, 0}, {go116, 0}, {go118, 0x1000}, {go120, 0x1000}, {go120, 0}} {
		im, _ := forged(c.magic, c.text)
		fns, err := im.goFunctions()
		if err != nil || len(fns) != 2 {
			t.Errorf("%#x: %v, %v", c.magic, fns, err)
			continue
		}
		if f, err := survive(t, im.asFile()); err != nil || f.Source != "Go's function table" {
			t.Errorf("as a file: %v, %v", f, err)
		}
		for i, want := range []symbol{
			{Symbol: Symbol{Name: "main.one"}, addr: 0x1000, size: 16, rank: notDynamic},
			{Symbol: Symbol{Name: "main.two"}, addr: 0x1010, size: 32, rank: notDynamic},
		} {
			if fns[i] != want {
				t.Errorf("%#x: %+v, want %+v", c.magic, fns[i], want)
			}
		}
	}
}

// Every byte of a table is made wrong, and every number: an error or fewer functions,
// no panic, and no memory.
func TestGoTableFalse(t *testing.T) {
	for _, magic := range []uint32{go12, go116, go118, go120} {
		_, whole := forged(magic, 0x1000)
		for at := 0; at < len(whole); at += 4 {
			for _, v := range []uint64{0, 1, 0x7fffffff, 0xffffffff, 1 << 40, 1 << 63, ^uint64(0)} {
				im, b := forged(magic, 0x1000)
				if binary.LittleEndian.PutUint32(b[at:], uint32(v)); at+8 <= len(b) && v>>32 != 0 {
					binary.LittleEndian.PutUint64(b[at:], v)
				}
				var fns []symbol
				got := allocatedBy(func() { fns, _ = im.goFunctions() })
				if got > 64<<10 {
					t.Errorf("%#x with %#x at %#x took %d bytes", magic, v, at, got)
				}
				for _, fn := range fns {
					if _, ok := im.fileOffset(fn.addr, elf.PF_X); !ok || fn.Name == "" {
						t.Errorf("%#x with %#x at %#x gives %+v", magic, v, at, fn)
					}
				}
			}
		}
		for n := range len(whole) {
			im, _ := forged(magic, 0x1000)
			im.sections[0].size = uint64(n)
			if fns, err := im.goFunctions(); err == nil && len(fns) > 2 {
				t.Errorf("%#x cut to %d bytes gives %v", magic, n, fns)
			}
		}
	}
}

// Where a linker leaves zeros in the file, the addresses are in the relocations.
func TestGoTextRelocated(t *testing.T) {
	im, _ := forged(go120, 0)
	b := make([]byte, im.size+0x200)
	if _, err := im.r.ReadAt(b[:im.size], 0); err != nil {
		t.Fatal(err)
	}
	const module, rela, dynamic = 0x3000, 0x3100, 0x31a0
	put := func(at int, vs ...uint64) {
		for i, v := range vs {
			order.PutUint64(b[at+8*i:], v)
		}
	}
	relative := uint64(elf.R_X86_64_RELATIVE)
	put(rela, module, relative, 0x2000, module+20*8, relative, 0x1000, module+21*8, relative, 0x1030, module+22*8, relative, 0x1000)
	put(dynamic, uint64(elf.DT_RELA), rela, uint64(elf.DT_RELASZ), 96, 0, 0)
	copy(b[0x2f20:], ".go.module\x00")
	im.r, im.size = bytes.NewReader(b), uint64(len(b))
	im.sections[2] = section{name: 0x20, typ: elf.SHT_PROGBITS, addr: module, off: module, size: 0x100}
	im.segments = append(im.segments,
		segment{typ: elf.PT_LOAD, flags: elf.PF_R, addr: 0x2000, off: 0x2000, filesz: 0x1200},
		segment{typ: elf.PT_DYNAMIC, addr: dynamic, off: dynamic, filesz: 0x60})
	fns, err := im.goFunctions()
	if err != nil || len(fns) != 2 || fns[0].addr != 0x1000 {
		t.Errorf("%v, %v", fns, err)
	}
}

// endless is a file of one word again and again, which counts what is read of it.
type endless struct {
	word        uint64
	reads, read int
}

func (e *endless) ReadAt(b []byte, _ int64) (int, error) {
	e.reads, e.read = e.reads+1, e.read+len(b)
	for i := 0; i+8 <= len(b); i += 8 {
		order.PutUint64(b[i:], e.word)
	}
	return len(b), nil
}

// What a file with holes claims to load is not all searched, nor every place of one
// that looks everywhere like what is looked for.
func TestGoSearchIsBounded(t *testing.T) {
	const claimed = 1 << 40
	over := func(e *endless) *image {
		return &image{r: e, size: claimed, is64: true, machine: elf.EM_X86_64, segments: []segment{
			{typ: elf.PT_LOAD, filesz: claimed / 2},
			{typ: elf.PT_LOAD, filesz: claimed / 2},
		}}
	}
	holes := &endless{}
	if over(holes).lostGoTable(); holes.read > goSearch {
		t.Errorf("%d MB are read", holes.read>>20)
	}
	const table = 0x2000
	same := &endless{word: table}
	goes := &goTable{im: over(same), word: 8, section: section{addr: table}}
	if text, err := goes.textStart(0, 48); err == nil || same.reads > 20*goTries {
		t.Errorf("%d reads: %#x, %v", same.reads, text, err)
	}
}
