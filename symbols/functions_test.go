package symbols

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func run(t testing.TB, name string, args ...string) []byte {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("no %s: %v", name, err)
	}
	cmd := exec.Command(path, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd, err)
	}
	return out
}

// TestFunctions builds one source in every way that moves code about in a file.
func TestFunctions(t *testing.T) {
	for name, args := range map[string][]string{
		"no-pie":           {"-no-pie"},
		"pie":              {"-pie", "-fPIE"},
		"static":           {"-static", "-no-pie"},
		"static-pie":       {"-static-pie", "-fPIE"},
		"library":          {"-shared", "-fPIC"},
		"no-separate-code": {"-pie", "-fPIE", "-Wl,-z,noseparate-code"},
		"large pages":      {"-no-pie", "-Wl,-z,max-page-size=0x200000"},
		"other base":       {"-no-pie", "-Wl,-Ttext-segment=0x40000000"},
	} {
		t.Run(name, func(t *testing.T) {
			f := mustOpen(t, build(t, "gcc", "plain.c", args...))

			work := one(t, f, "work")
			if got := work.String(); got != "work" {
				t.Errorf("the best name of work is %s", got)
			}
			if got := aliasesOf(work); !slices.Equal(got, []string{"work_alias", "_work_inner"}) {
				t.Errorf("aliases of work: %q", got)
			}
			if one(t, f, "work_alias") != work || work.Size == 0 || work.Place != InFile {
				t.Errorf("work is %+v", work)
			}
			one(t, f, "weak_one")
			one(t, f, "only_here")

			chosen := one(t, f, "chosen")
			if chosen.Place != Resolver || chosen.Name != "chosen" || !slices.Equal(aliasesOf(chosen), []string{"pick"}) {
				t.Errorf("the IFUNC is %+v", chosen)
			}
			for name, want := range map[string]uint64{"bare": 0x1122334455667788, "sizeless": 0x99aabbccddeeff00} {
				fn := one(t, f, name)
				code, err := f.Code(fn, 8)
				if err != nil || len(code) != 8 || binary.LittleEndian.Uint64(code) != want {
					t.Errorf("at the offset of %s is %x (%v), want %x", name, code, err, want)
				}
				if fn.Size != 0 {
					t.Errorf("%s has size %d", name, fn.Size)
				}
			}
			for _, no := range []string{"number", "in_data", "posing", "local_label", "_etext", "etext", "__executable_start", "__libc_start_main", "_end", "nothing"} {
				if fns := f.Lookup(no); len(fns) > 0 && fns[0].Place < NoCode && !(no == "__libc_start_main" && strings.HasPrefix(name, "static")) {
					t.Errorf("%s is no function of this file, and found as %+v", no, fns[0])
				}
			}
			if f.Go || f.Unwinds {
				t.Errorf("a C program: Go %v, unwinds %v", f.Go, f.Unwinds)
			}
			checkOrder(t, f)
		})
	}
}

func aliasesOf(f *Function) []string {
	var names []string
	for _, a := range f.Aliases {
		names = append(names, a.String())
	}
	return names
}

func checkOrder(t *testing.T, f *File) {
	t.Helper()
	for i := 1; i < len(f.code()); i++ {
		if f.Functions[i-1].Addr >= f.Functions[i].Addr {
			t.Fatalf("function %d is not behind the one before: %+v", i, f.Functions[i])
		}
	}
}

// TestVersions reads the same library with its section headers, and with the
// dynamic segment alone.
func TestVersions(t *testing.T) {
	files := map[string]string{"prebuilt": prebuilt(t)}
	if _, err := exec.LookPath("gcc"); err == nil {
		for _, style := range []string{"sysv", "gnu", "both"} {
			files[style] = build(t, "gcc", "versioned.c", "-shared", "-fPIC", "-nostdlib",
				"-Wl,--version-script=versioned.map", "-Wl,--hash-style="+style)
		}
	}
	if runtime.GOARCH == "amd64" {
		files["32-bit"] = filepath.Join("testdata", "versioned-386.so")
	}
	for name, path := range files {
		t.Run(name, func(t *testing.T) { checkVersions(t, mustOpen(t, path), true) })
		t.Run(name+" without sections", func(t *testing.T) {
			b := readFile(t, path)
			if elf.Class(b[elf.EI_CLASS]) == elf.ELFCLASS64 {
				clear(b[40:48]) // e_shoff
				clear(b[60:64]) // e_shnum, e_shstrndx
			} else {
				clear(b[32:36])
				clear(b[48:52])
			}
			checkVersions(t, mustOpen(t, writeFile(t, b)), false)
		})
	}
}

func checkVersions(t *testing.T, f *File, static bool) {
	t.Helper()
	var got []string
	for _, fn := range f.Lookup("api") {
		got = append(got, fn.String())
	}
	if want := []string{"api@@V2"}; !slices.Equal(got, want) {
		t.Fatalf("api is %q, want %q", got, want)
	}
	now, old := f.Lookup("api")[0], one(t, f, "api@V1")
	if old == now || one(t, f, "api@@V2") != now || one(t, f, "api@V2") != now {
		t.Error("a version does not name its function")
	}
	for _, no := range []string{"api@@V1", "api@V3", "api@", "@V1", "", "V1", "steady@V2"} {
		if fns := f.Lookup(no); len(fns) > 0 {
			t.Errorf("%q names %v", no, fns[0].Symbol)
		}
	}
	if old.Demangled() != "api@V1" || now.Demangled() != "api" {
		t.Errorf("shown as %s and %s", old.Demangled(), now.Demangled())
	}
	var aliases []string
	if static {
		aliases = []string{"old_api"}
	}
	if got := aliasesOf(old); !slices.Equal(got, aliases) {
		t.Errorf("aliases of the old version: %q, want %q", got, aliases)
	}
	if got := one(t, f, "steady").String(); got != "steady@@V1" {
		t.Errorf("steady is %s", got)
	}
}

// TestDynamicSegment takes the section headers from a large library: the length
// of its symbol table then comes from the hash table alone.
func TestDynamicSegment(t *testing.T) {
	path := libcPath(t)
	b := readFile(t, path)
	im, _, err := readImage(bytes.NewReader(b), uint64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	want, err := im.sectionTable(elf.SHT_DYNSYM)
	if err != nil {
		t.Fatal(err)
	}
	got, err := im.dynamicTable()
	if err != nil {
		t.Fatal(err)
	}
	if got.n != want.n || got.off != want.off || got.strings != want.strings ||
		!bytes.Equal(got.versions, want.versions) || !maps.Equal(got.defined, want.defined) {
		t.Errorf("%d symbols and %d versions, by sections %d and %d", got.n, len(got.defined), want.n, len(want.defined))
	}
}

// TestAgainstNM compares a file with what nm finds in it, and offsets with the
// sections, which play no part in how they are computed.
func TestAgainstNM(t *testing.T) {
	path := build(t, "gcc", "plain.c", "-static", "-no-pie")
	f := mustOpen(t, path)
	want := make(map[string]bool)
	for lines := bufio.NewScanner(bytes.NewReader(run(t, "nm", path))); lines.Scan(); {
		part := strings.Fields(lines.Text())
		if len(part) == 3 && strings.Contains("tTWi", part[1]) {
			addr, err := strconv.ParseUint(part[0], 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			want[part[2]+" "+strconv.FormatUint(addr, 16)] = true
		}
	}
	raw, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	have := make(map[string]bool)
	for i := range f.code() {
		fn := &f.Functions[i]
		for _, s := range append([]Symbol{fn.Symbol}, fn.Aliases...) {
			key := s.Name + " " + strconv.FormatUint(uint64(fn.Addr), 16)
			if have[key] = true; !want[key] {
				t.Errorf("nm does not have %s", key)
			}
		}
		in := slices.IndexFunc(raw.Sections, func(s *elf.Section) bool {
			return s.Flags&elf.SHF_EXECINSTR != 0 && s.Addr <= uint64(fn.Addr) && uint64(fn.Addr) < s.Addr+s.Size
		})
		if in < 0 {
			t.Errorf("%s is in no section with code", fn)
		} else if s := raw.Sections[in]; uint64(fn.Offset) != uint64(fn.Addr)-s.Addr+s.Offset {
			t.Errorf("%s has offset %#x, and by its section %#x", fn, fn.Offset, uint64(fn.Addr)-s.Addr+s.Offset)
		}
	}
	syms, err := raw.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range syms {
		typ := elf.ST_TYPE(s.Info)
		key := s.Name + " " + strconv.FormatUint(s.Value, 16)
		if (typ == elf.STT_FUNC || typ == elf.STT_GNU_IFUNC) && s.Section != elf.SHN_UNDEF && s.Name != "posing" && !have[key] {
			t.Errorf("debug/elf has %s and we do not", key)
		}
	}
	if len(have) < 500 {
		t.Errorf("only %d names in a static program", len(have))
	}
}

// TestLibc holds the facts about the C library that a wrong table reader gets
// wrong: versions, IFUNCs, and an unwinder that is only loaded by name.
func TestLibc(t *testing.T) {
	path := libcPath(t)
	f := mustOpen(t, path)
	if f.Unwinds || f.Go || f.BuildID == "" {
		t.Errorf("unwinds %v, Go %v, build id %q", f.Unwinds, f.Go, f.BuildID)
	}
	if m := one(t, f, "memcpy@@GLIBC_2.14"); runtime.GOARCH == "amd64" && m.Place != Resolver && !m.Chosen {
		t.Errorf("memcpy is %+v", m)
	}
	conds := f.Lookup("pthread_cond_wait")
	if len(conds) == 0 || !conds[0].Default || conds[0].Name != "pthread_cond_wait" {
		t.Errorf("pthread_cond_wait is %+v", conds)
	}
	if m := one(t, f, "malloc"); m.Name != "malloc" || !strings.HasPrefix(m.String(), "malloc@@GLIBC_") {
		t.Errorf("malloc is %v", m)
	}
	checkOrder(t, f)
}

func libcPath(t testing.TB) string {
	t.Helper()
	for _, pattern := range []string{"/lib/*-linux-gnu/libc.so.6", "/lib64/libc.so.6"} {
		if paths, _ := filepath.Glob(pattern); len(paths) > 0 {
			for _, p := range paths {
				if f, err := Open(p); err == nil {
					f.Close()
					return p
				}
			}
		}
	}
	t.Skip("no glibc on this host")
	return ""
}

// TestUnwinds has programs of languages with and without exceptions.
func TestUnwinds(t *testing.T) {
	shop := build(t, "g++", "shop.cc")
	stripped := build(t, "g++", "shop.cc", "-s")
	static := build(t, "g++", "shop.cc", "-static")
	for name, c := range map[string]struct {
		path string
		want bool
	}{
		"C++":                {shop, true},
		"C++ stripped":       {stripped, true},
		"C++ static":         {static, true},
		"C":                  {build(t, "gcc", "plain.c"), false},
		"C static":           {build(t, "gcc", "plain.c", "-static"), false},
		"C with exceptions":  {build(t, "gcc", "plain.c", "-fexceptions"), false},
		"library without it": {prebuilt(t), false},
	} {
		if f := mustOpen(t, c.path); f.Unwinds != c.want {
			t.Errorf("%s: unwinds %v, want %v", name, f.Unwinds, c.want)
		}
	}
	for name, want := range map[string]bool{
		"_Unwind_Backtrace": false, "_Unwind_GetIP": false, "_Unwind_Resume": true,
		"_RNvCsfLfy6EI15iL_7___rustc18___rust_start_panic": true, "__rust_start_panic": true, "malloc": false,
	} {
		if importsUnwinder(name) != want {
			t.Errorf("import of %s: %v", name, !want)
		}
	}
	if !definesThrow("__cxa_throw") || !importsUnwinder("__cxa_throw") {
		t.Error("a throw is not seen")
	}
	if definesThrow("_Unwind_RaiseException") {
		t.Error("every static C program has a definition of _Unwind_RaiseException")
	}
}

// TestGo reads this test's own program, whole and stripped.
func TestGo(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f := mustOpen(t, self)
	if !f.Go {
		t.Error("the test program is not seen as made by Go")
	}
	stripped := filepath.Join(t.TempDir(), "stripped")
	run(t, "strip", "-o", stripped, self)
	if f := mustOpen(t, stripped); !f.Go {
		t.Error("stripped, it is not seen as made by Go")
	}
}

// Who switches stacks is known; the C library, which offers it, does not.
func TestSwitches(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("there is no gcc")
	}
	source := filepath.Join(t.TempDir(), "switches.c")
	code := "#include <ucontext.h>\nucontext_t a, b;\nint main(void) { return swapcontext(&a, &b); }\n"
	if err := os.WriteFile(source, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	out := source + ".out"
	if msg, err := exec.Command("gcc", "-o", out, source).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %s", msg)
	}
	if !mustOpen(t, out).Switches {
		t.Error("a program that calls swapcontext does not count as one")
	}
	for _, path := range []string{"/lib/x86_64-linux-gnu/libc.so.6", "/usr/bin/perl"} {
		if _, err := os.Stat(path); err == nil && mustOpen(t, path).Switches {
			t.Errorf("%s counts as switching stacks", path)
		}
	}
}
