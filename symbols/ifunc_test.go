package symbols

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

func init() { searchTime = time.Minute }

// startReady starts a program that says ready and waits for its input to end.
func startReady(t *testing.T, path string, env ...string) *Process {
	t.Helper()
	cmd := exec.Command(path)
	cmd.Env = append(os.Environ(), env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%s says %q: %v", path, line, err)
	}
	p := mustProcess(t, cmd.Process.Pid)
	m, err := p.memory()
	if err != nil {
		t.Skipf("the memory of a process is not to be seen: %v", err)
	}
	m.Close()
	return p
}

// fileOf opens a file as a process has it.
func fileOf(t *testing.T, p *Process, path string) *File {
	t.Helper()
	i := slices.IndexFunc(p.Mappings, func(m Mapping) bool { return m.Path == path })
	if i < 0 {
		t.Fatalf("%s has %s not mapped", p, path)
	}
	f, err := p.File(p.Mappings[i])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// isChosen wants names to be those of the variant in use.
func isChosen(t *testing.T, f *File, variant string, names ...string) {
	t.Helper()
	for _, name := range names {
		fn := one(t, f, name)
		if !fn.Chosen || fn.Place != InFile || fn != one(t, f, variant) {
			t.Errorf("%s is %+v, want %s", name, fn, variant)
		}
	}
}

func isUnknown(t *testing.T, f *File, names ...string) {
	t.Helper()
	for _, name := range names {
		fn := one(t, f, name)
		if fn.Chosen || fn.Place != Resolver {
			t.Errorf("%s is %+v", name, fn)
		}
		if got, want := f.Variants(fn), []string{name + "_old", name + "_new"}; !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
			t.Errorf("the variants of %s are %q, want %q", name, got, want)
		}
	}
	if f.Untold == "" {
		t.Error("nothing says why")
	}
}

// A program's own IFUNCs: nobody runs it, then somebody does.
func TestIFUNCOfProgram(t *testing.T) {
	for name, args := range map[string][]string{
		"no-pie":           {"-no-pie"},
		"pie":              {"-pie", "-fPIE"},
		"static":           {"-static", "-no-pie"},
		"static-pie":       {"-static-pie", "-fPIE"},
		"no-separate-code": {"-pie", "-fPIE", "-Wl,-z,noseparate-code"},
		"exported":         {"-pie", "-fPIE", "-rdynamic"},
		"other base":       {"-no-pie", "-Wl,-Ttext-segment=0x40000000"},
	} {
		t.Run(name, func(t *testing.T) {
			path := build(t, "gcc", "ifunc.c", append(args, "-DPROGRAM")...)
			before := mustOpen(t, path)
			isUnknown(t, before, "turn", "called", "hidden", "never")
			p := startReady(t, path)
			for _, f := range []*File{fileOf(t, p, path), mustOpen(t, path)} {
				isChosen(t, f, "turn_new", "turn", "twist")
				isChosen(t, f, "called_new", "called")
				isChosen(t, f, "hidden_new", "hidden")
				if fn := one(t, f, "turn_choose"); fn.Place != InFile || fn.Name != "turn_choose" || len(fn.Aliases) > 0 {
					t.Errorf("the resolver is %+v", fn)
				}
				checkOrder(t, f)
			}
			if is, was := one(t, mustOpen(t, path), "turn_new").Size, one(t, before, "turn_new").Size; is != was {
				t.Errorf("the variant has %d bytes, and had %d", is, was)
			}
		})
	}
}

// A library's IFUNCs are told by who calls them, once it has.
func TestIFUNCOfLibrary(t *testing.T) {
	library := build(t, "gcc", "ifunc.c", "-shared", "-fPIC", "-Wl,--build-id")
	whole := mustOpen(t, library)
	isUnknown(t, whole, "turn", "called", "uncalled", "hidden", "never")
	for name, args := range map[string][]string{
		"lazy": {"-pie", "-fPIE", "-Wl,-z,lazy"},
		"now":  {"-pie", "-fPIE", "-Wl,-z,now"},
		// Its pointer to twist is of its own table of calls.
		"no-pie": {"-no-pie", "-fno-pie", "-Wl,-z,lazy"},
	} {
		t.Run(name, func(t *testing.T) {
			program := build(t, "gcc", "ifunc.c", append(args, "-DIMPORTS", library)...)
			p := startReady(t, program)
			f := fileOf(t, p, library)
			isChosen(t, f, "turn_new", "turn", "twist")
			isChosen(t, f, "called_new", "called")
			isChosen(t, f, "hidden_new", "hidden")
			isUnknown(t, f, "never")
			if name == "now" {
				isChosen(t, f, "uncalled_new", "uncalled")
			} else {
				isUnknown(t, f, "uncalled")
				if !strings.HasPrefix(f.Untold, "process "+p.String()+" has not called it yet") {
					t.Errorf("why: %s", f.Untold)
				}
			}

			// Another file of the same build, which nobody has mapped.
			twin := mustOpen(t, writeFile(t, readFile(t, library)))
			isChosen(t, twin, "turn_new", "turn", "twist")

			// Without its symbols: where functions begin is told by the unwinder's table.
			stripped := filepath.Join(t.TempDir(), "stripped")
			run(t, "strip", "-o", stripped, library)
			bare := mustOpen(t, stripped)
			fn, want := one(t, bare, "turn"), one(t, whole, "turn_new")
			if fn.Addr != want.Addr || fn.Offset != want.Offset || fn.Size != want.Size || !fn.Chosen || fn != one(t, bare, "twist") {
				t.Errorf("stripped it is %+v, want the place of %+v", fn, want)
			}

			// Or by the resolvers alone.
			run(t, "objcopy", "--remove-section", ".eh_frame_hdr", stripped)
			b := readFile(t, stripped)
			noFrames(t, b)
			bare = mustOpen(t, writeFile(t, b))
			if fn := one(t, bare, "turn"); fn.Addr != want.Addr || !fn.Chosen {
				t.Errorf("without any table it is %+v, want the place of %+v", fn, want)
			}
		})
	}
}

// In 32-bit files the resolver's address stands in the slot itself, until a loader
// puts there what it chose.
func TestIFUNCOf32Bit(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("32-bit programs run on x86-64")
	}
	path := build(t, "gcc", "ifunc.c", "-m32", "-static", "-nostdlib", "-fno-pie", "-no-pie", "-fno-stack-protector", "-DBARE")
	if f := mustOpen(t, path); one(t, f, "turn").Place != Resolver {
		t.Errorf("turn is %+v before it runs", one(t, f, "turn"))
	}
	p := startReady(t, path)
	f := fileOf(t, p, path)
	isChosen(t, f, "turn_new", "turn", "twist")
	isChosen(t, f, "called_new", "called")
	isChosen(t, f, "hidden_new", "hidden")

	library := mustOpen(t, build(t, "gcc", "ifunc.c", "-m32", "-shared", "-nostdlib", "-fPIC"))
	isUnknown(t, library, "turn", "called", "never")
	d := library.indirect
	slots, err := d.im.slots(d, true)
	var ofHidden, ofTurn int
	for _, s := range slots {
		switch Addr(s.resolver) {
		case one(t, library, "hidden").Addr:
			ofHidden++
		case one(t, library, "turn").Addr:
			ofTurn++
		}
	}
	if err != nil || ofHidden != 1 || ofTurn != 1 {
		t.Errorf("the slots are %v (%v), want one for hidden and one for turn", slots, err)
	}
}

// Addresses in ARM64 code, as gcc makes them: of a place near by, and of a page and
// the rest.
func TestTakenARM64(t *testing.T) {
	code := []uint32{
		0x10000040, // adr x0, +8
		0x90000001, // adrp x1, this page
		0xb0000002, // adrp x2, the next page
		0x9100c021, // add x1, x1, #0x30
		0xf0ffffe3, // adrp x3, the page before
		0x913fc442, // add x2, x2, #0xff1
		0x91004063, // add x3, x3, #0x10
		0x910043ff, // add sp, sp, #0x10
		0xd65f03c0, // ret
	}
	var b []byte
	for _, insn := range code {
		b = order.AppendUint32(b, insn)
	}
	var got []uint64
	takenARM64(b, 0x45678, func(addr uint64) { got = append(got, addr) })
	if want := []uint64{0x45680, 0x45030, 0x46ff1, 0x44010}; !slices.Equal(got, want) {
		t.Errorf("taken are %#x, want %#x", got, want)
	}
}

// noFrames takes the unwinder's table out of a file's program headers.
func noFrames(t *testing.T, b []byte) {
	t.Helper()
	const tableOfFunctions = 0x6474e550 // PT_GNU_EH_FRAME
	at := binary.LittleEndian.Uint64(b[32:])
	for n := binary.LittleEndian.Uint16(b[56:]); n > 0; n-- {
		if binary.LittleEndian.Uint32(b[at:]) == tableOfFunctions {
			binary.LittleEndian.PutUint32(b[at:], 0)
			return
		}
		at += 56
	}
	t.Fatal("there is no table to take away")
}

// What a process has in its slots is believed only if a function begins there.
func TestIFUNCOfLiar(t *testing.T) {
	library := build(t, "gcc", "ifunc.c", "-shared", "-fPIC")
	f := mustOpen(t, library)
	d := f.indirect
	if d == nil || len(d.told) > 0 {
		t.Fatalf("%+v", d)
	}
	const bias = 0x7f0000000000
	turn, variant, other := one(t, f, "turn"), one(t, f, "turn_new"), one(t, f, "within")
	var data uint64 // in the file, and no code
	for _, s := range d.im.segments {
		if s.filesz > 0 && !s.isCode() && s.addr > 0 {
			data = s.addr
		}
	}
	vdso := region{Mapping: Mapping{Start: 0x7fff0000, End: 0x7fff2000}}
	for name, c := range map[string]struct {
		value uint64
		want  bool
	}{
		"the variant":             {bias + uint64(variant.Addr), true},
		"another function":        {bias + uint64(other.Addr), true},
		"inside an instruction":   {bias + uint64(variant.Addr) + 1, false},
		"a later instruction":     {bias + uint64(variant.Addr) + 3, false},
		"before the file's data":  {bias + data, false},
		"the resolver":            {bias + uint64(turn.Addr), false},
		"another resolver":        {bias + uint64(one(t, f, "never").Addr), false},
		"not loaded there":        {uint64(variant.Addr), false},
		"nothing":                 {0, false},
		"everything":              {^uint64(0), false},
		"below the file":          {bias - 1, false},
		"far behind it":           {bias + 1<<40, false},
		"behind the kernel's own": {vdso.End, false},
	} {
		t.Run(name, func(t *testing.T) {
			d.told = map[uint64]choice{}
			m := &memory{ReaderAt: bytes.NewReader(binary.LittleEndian.AppendUint64(nil, c.value)), vdso: vdso}
			d.read(m, &relocated{im: d.im, slots: []slot{{0, uint64(turn.Addr)}}}, 0, []uint64{bias})
			if got, ok := d.told[uint64(turn.Addr)]; ok != c.want || ok && got.addr != c.value-bias {
				t.Errorf("%#x is taken for %+v, %v", c.value, got, ok)
			}
		})
	}
	d.told = map[uint64]choice{}
	if c, ok := d.judge(uint64(turn.Addr), vdso.Start+8, vdso, []uint64{bias}); !ok || !c.vdso {
		t.Errorf("an address of the vDSO is %+v, %v", c, ok)
	}
	// A slot can be where nothing is mapped.
	d.read(&memory{ReaderAt: bytes.NewReader(nil)}, &relocated{im: d.im, slots: []slot{{1 << 62, uint64(turn.Addr)}, {^uint64(0), uint64(turn.Addr)}}}, 5, nil)
	if len(d.told) > 0 {
		t.Errorf("of nothing is told %v", d.told)
	}
}

// What others import is the version that they name.
func TestResolverOf(t *testing.T) {
	d := newIndirect(&image{}, []symbol{
		{Symbol: Symbol{Name: "f", Version: "V2", Default: true}, addr: 2, indirect: true},
		{Symbol: Symbol{Name: "f", Version: "V1"}, addr: 1, indirect: true},
		{Symbol: Symbol{Name: "g"}, addr: 3, indirect: true},
		{Symbol: Symbol{Name: "h"}, addr: 4},
	})
	for want, s := range map[uint64]Symbol{
		1: {Name: "f", Version: "V1"}, 2: {Name: "f", Version: "V2"}, 3: {Name: "g", Version: "V9"}, 0: {Name: "h"},
	} {
		if got := d.resolverOf(s); got != want {
			t.Errorf("%s leads to %d, want %d", s, got, want)
		}
	}
	if got := d.resolverOf(Symbol{Name: "f"}); got != 2 {
		t.Errorf("f leads to %d, want the default version", got)
	}
	if got := d.resolverOf(Symbol{Name: "f", Version: "V3"}); got != 0 {
		t.Errorf("f@V3 leads to %d, and there is none", got)
	}
}

// The C library's IFUNCs are known from whoever runs here, and GLIBC_TUNABLES lets
// a process choose otherwise: of two such processes, both variants are meant.
func TestIFUNCOfLibc(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("GLIBC_TUNABLES has no such words for this machine")
	}
	const less = tunablesVariable + "=glibc.cpu.hwcaps=-AVX2,-AVX2_Usable,-AVX_Fast_Unaligned_Load"
	program := build(t, "gcc", "ifunc.c", "-DPROGRAM")
	a, b := startReady(t, program), startReady(t, program, less)
	libc := libcPath(t)
	same := slices.IndexFunc(a.Mappings, func(m Mapping) bool { return filepath.Base(m.Path) == filepath.Base(libc) })
	if same < 0 {
		t.Skip("the program has no such libc")
	}
	path := a.Mappings[same].Path
	here, there := fileOf(t, a, path), fileOf(t, b, path)
	first, second := one(t, here, "strlen"), one(t, there, "strlen")
	if !first.Chosen || !second.Chosen {
		t.Fatalf("strlen is %+v, and %+v", first, second)
	}
	if second.Addr == first.Addr {
		t.Skip("this libc has one strlen for both")
	}
	want := []Point{{Offset: first.Offset}}
	here.Also(a)
	if got := here.Points(first); !slices.Equal(got, want) {
		t.Errorf("the points of one process are %v, want %v", got, want)
	}
	here.Also(b)
	here.Also(b)
	if got := here.Points(first); !slices.Equal(got, append(want, Point{Offset: second.Offset})) {
		t.Errorf("the points of both are %v, want those of %v and %v", got, first, second)
	}
	if got := here.Points(one(t, here, "malloc")); len(got) != 1 {
		t.Errorf("malloc has the points %v", got)
	}
	for _, name := range []string{"memcpy", "memmove"} {
		if fn := one(t, here, name); !fn.Chosen || fn != one(t, here, "memmove") || !slices.Contains(fn.versionsOf("memcpy"), "GLIBC_2.14") {
			t.Errorf("%s is %+v", name, fn)
		}
	}
	// time is the kernel's, where that offers it.
	if m, err := a.memory(); err == nil && m.vdso.Start > 0 {
		m.Close()
		if fn := one(t, mustOpen(t, path), "gettimeofday"); fn.Place != InVDSO && fn.Place != Resolver {
			t.Errorf("gettimeofday is %+v", fn)
		}
	}

	// A command inherits what is set here, and the others are no example for it.
	nobodys := writeFile(t, readFile(t, path))
	t.Setenv(tunablesVariable, "glibc.cpu.hwcaps=-AVX2")
	f := mustOpen(t, nobodys)
	if fn := one(t, f, "strlen"); fn.Place != Resolver || !strings.Contains(f.Untold, tunablesVariable) {
		t.Errorf("with %s set strlen is %+v: %q", tunablesVariable, fn, f.Untold)
	}
}

// versionsOf is the versions of a name that a function has.
func (f *Function) versionsOf(name string) (versions []string) {
	for _, s := range f.symbols() {
		if s.Name == name {
			versions = append(versions, s.Version)
		}
	}
	return versions
}
