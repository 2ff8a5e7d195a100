package symbols

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// build compiles a source of testdata into a new directory.
func build(t testing.TB, compiler, source string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(compiler)
	if err != nil {
		t.Skipf("no compiler: %v", err)
	}
	out := filepath.Join(t.TempDir(), "built")
	cmd := exec.Command(path, append([]string{"-O1", "-o", out, source}, args...)...)
	cmd.Dir = "testdata"
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, b)
	}
	return out
}

// prebuilt is the library that testdata/prebuilt.sh made for this machine.
func prebuilt(t testing.TB) string {
	t.Helper()
	path := filepath.Join("testdata", "versioned-"+runtime.GOARCH+".so")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no prebuilt library for this machine: %v", err)
	}
	return path
}

func mustOpen(t testing.TB, path string) *File {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// one finds the only function of a name.
func one(t testing.TB, f *File, name string) *Function {
	t.Helper()
	fns := f.Lookup(name)
	if len(fns) != 1 {
		t.Fatalf("%s is found %d times, want once", name, len(fns))
	}
	return fns[0]
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t testing.TB, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, b, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}
