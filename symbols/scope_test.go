package symbols

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The provider of a name is the one from which the loader takes it: the program
// itself says which that was.
func TestProvider(t *testing.T) {
	dir := t.TempDir()
	compile := func(out string, args ...string) string {
		t.Helper()
		out = filepath.Join(dir, out)
		if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(build(t, "gcc", "who.c", args...), out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	lib := func(out, soname string) string {
		return compile(out, "-shared", "-fPIC", `-DNAME="`+out+`"`, "-Wl,-soname,"+soname)
	}
	one, two := lib("one/liba.so", "liba.so"), lib("two/liba.so", "liba.so")
	other, preloaded := lib("other/libb.so", "libb.so"), lib("pre/libpre.so", "libpre.so")
	pathlike := lib("at/libpath.so", filepath.Join(dir, "at/libpath.so"))
	middle := compile("mid/libmid.so", "-shared", "-fPIC", "-DMIDDLE", "-Wl,-soname,libmid.so", "-Wl,--no-as-needed", one)
	const first = "-Wl,--no-as-needed"
	for _, c := range []struct {
		name string
		args []string
		env  Environment
		want string
	}{
		{"RUNPATH", []string{one, "-Wl,--enable-new-dtags,-rpath," + dir + "/one"}, Environment{}, one},
		{"RPATH", []string{one, "-Wl,--disable-new-dtags,-rpath," + dir + "/two:" + dir + "/one"}, Environment{}, two},
		{"ORIGIN", []string{one, "-Wl,-rpath,$ORIGIN/../two"}, Environment{}, two},
		{"LD_LIBRARY_PATH before RUNPATH", []string{one, "-Wl,--enable-new-dtags,-rpath," + dir + "/one"}, Environment{LibraryPath: dir + "/none:" + dir + "/two"}, two},
		{"RPATH before LD_LIBRARY_PATH", []string{one, "-Wl,--disable-new-dtags,-rpath," + dir + "/one"}, Environment{LibraryPath: dir + "/two"}, one},
		{"the first of two", []string{first, other, one, "-Wl,-rpath," + dir + "/one:" + dir + "/other"}, Environment{}, other},
		{"the nearer", []string{first, middle, other, "-Wl,--disable-new-dtags,-rpath," + dir + "/one:" + dir + "/other:" + dir + "/mid"}, Environment{}, other},
		{"by a RPATH that is inherited", []string{first, middle, "-Wl,--unresolved-symbols=ignore-all,--disable-new-dtags,-rpath," + dir + "/one:" + dir + "/mid"}, Environment{}, one},
		{"preloaded", []string{one, "-Wl,-rpath," + dir + "/one"}, Environment{Preload: preloaded}, preloaded},
		{"by a path", []string{pathlike}, Environment{}, pathlike},
	} {
		program := compile("bin/program", c.args...)
		cmd := exec.Command(program)
		cmd.Env = []string{"LD_LIBRARY_PATH=" + c.env.LibraryPath, "LD_PRELOAD=" + c.env.Preload}
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		f := mustOpen(t, program)
		got := f.Provider(anImport(t, f, "who"), c.env)
		if did := strings.TrimSpace(string(out)); !same(got, did) || !same(got, c.want) {
			t.Errorf("%s: %q, and the loader took %s", c.name, got, did)
		}
	}
	// Nobody has it.
	f := mustOpen(t, compile("bin/alone", one))
	if got := f.Provider(anImport(t, f, "who"), Environment{}); got != "" {
		t.Errorf("without a directory: %s", got)
	}
}

func same(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

// anImport is a name that the file has from elsewhere.
func anImport(t *testing.T, f *File, name string) *Function {
	t.Helper()
	fn := one(t, f, name)
	if fn.Place != Imported {
		t.Fatalf("%s is not imported", name)
	}
	return fn
}

// An import knows its version and library; the version that it asks for counts.
func TestImportVersions(t *testing.T) {
	f := mustOpen(t, build(t, "gcc", "who.c", `-DNAME="x"`, "-Wl,-e,who", "-nostartfiles", "-shared", "-fPIC"))
	if fns := f.Lookup("who"); len(fns) != 1 || f.Import(fns[0]) != (Import{}) {
		t.Errorf("a name without version: %+v", f.Import(fns[0]))
	}
	sh := mustOpen(t, "/bin/sh")
	found := sh.Lookup("malloc")
	if len(found) != 1 || found[0].Place != Imported || found[0].Addr != 0 {
		t.Skip("sh does not import malloc here")
	}
	im := sh.Import(found[0])
	if !strings.HasPrefix(im.Version, "GLIBC_") || !strings.HasPrefix(im.Library, "libc.so") {
		t.Skipf("no glibc here: %+v", im)
	}
	libc := mustOpen(t, sh.Provider(found[0], Environment{}))
	for version, want := range map[string]bool{im.Version: true, "": true, "GLIBC_0.1": false} {
		o := mustObject(t, libc)
		if got := o.has("malloc", version); got != want {
			t.Errorf("malloc of version %q: %v", version, got)
		}
	}
	if o := mustObject(t, libc); o.has("no_such_function", "") || o.has("environ", "") {
		t.Error("libc has what it has not, or data")
	}
}

func mustObject(t *testing.T, f *File) *object {
	t.Helper()
	im, _, err := readImage(f.r, f.size)
	if err != nil {
		t.Fatal(err)
	}
	o, err := newObject(f.Path, im)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// The addresses of its PLT stubs, which a program at a fixed address has for what it
// imports, are not those of functions.
func TestStubAddresses(t *testing.T) {
	const path = "/usr/bin/python3"
	f, err := Open(path)
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	for i := range f.Functions {
		if fn := &f.Functions[i]; fn.Place == Imported && (fn.Addr != 0 || fn.Offset != 0) {
			t.Fatalf("%s has the address %#x", fn.Name, fn.Addr)
		}
	}
}

func TestStub(t *testing.T) {
	for name, want := range map[string]bool{"pthread": true, "dl": true, "c": false, "m": false} {
		for _, path := range Libraries(name) {
			f := mustOpen(t, path)
			if name != "c" && name != "m" && len(f.Lookup("__lib"+name+"_version_placeholder")) == 0 {
				continue // before glibc 2.34, or another libc
			}
			if f.Stub() != want {
				t.Errorf("%s is a stub: %v", path, !want)
			}
			if needs := f.Needs(Environment{}); want && (len(needs) == 0 || !strings.Contains(needs[0], "libc.so")) {
				t.Errorf("%s needs %q", path, needs)
			}
		}
	}
}

// A damaged list of versions ends the reading, and nothing else.
func TestAskedIsBounded(t *testing.T) {
	b := make([]byte, 64)
	order.PutUint32(b[8:], 16)  // versions
	order.PutUint32(b[12:], 48) // next file
	order.PutUint32(b[28:], 1)  // next version, one byte on
	for n := range len(b) {
		askedIn(b[:n], &table{strings: "x\x00"})
	}
	for i := range b {
		b[i] = 0xff
	}
	if got := askedIn(b, &table{}); len(got) != 0 {
		t.Errorf("of garbage: %v", got)
	}
}

// What has code comes before what is only imported, however well the name fits.
func TestSearchRanksImportsLast(t *testing.T) {
	f := mustOpen(t, "/bin/sh")
	matches, total := Search([]*File{f}, "malloc", 100)
	if total == 0 || matches[0].Function.Place != Imported {
		t.Skip("sh does not import malloc alone")
	}
	libc := Libraries("c")
	if len(libc) == 0 {
		t.Skip("no libc")
	}
	matches, _ = Search([]*File{f, mustOpen(t, libc[0])}, "malloc", 100)
	seen := false
	for _, m := range matches {
		if m.Function.Place == Imported {
			seen = true
		} else if seen && m.Function.Place < NoCode {
			t.Fatalf("%s comes behind an import", m.Name)
		}
	}
	if !seen {
		t.Error("the import is not found at all")
	}
}
