package bpftest

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Build compiles testdata/NAME.c and returns the program's path; with
// UPROBETOP_TARGETS set to a directory it is taken from there instead. Where
// there is no compiler the test is skipped.
func Build(t testing.TB, name string, flags ...string) string {
	t.Helper()
	if dir := os.Getenv("UPROBETOP_TARGETS"); dir != "" {
		return filepath.Join(dir, name)
	}
	return Compile(t, filepath.Join("testdata", name+".c"), flags...)
}

// Compile compiles one C source with gcc and returns the program's path.
func Compile(t testing.TB, source string, flags ...string) string {
	t.Helper()
	args := append([]string{"-O2", "-pthread", "-fno-omit-frame-pointer", source}, flags...)
	return CompileWith(t, strings.TrimSuffix(filepath.Base(source), ".c"), "gcc", args...)
}

// CompileWith runs a compiler with these arguments and -o, and returns the path of
// what it made, which has this name. The file is the test's own, to change and to
// put probes on, but what was asked for before in this run is copied.
func CompileWith(t testing.TB, name, compiler string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(compiler)
	if err != nil {
		t.Skipf("there is no %s", compiler)
	}
	out := filepath.Join(t.TempDir(), name)
	made.Lock()
	defer made.Unlock()
	key := strings.Join(append([]string{compiler}, args...), "\x00")
	if kept, ok := made.by[key]; ok {
		if err := copyFile(out, kept); err != nil {
			t.Fatal(err)
		}
		return out
	}
	cmd := exec.Command(path, append([]string{"-o", out}, args...)...)
	cmd.Env = append(os.Environ(), "RUSTC_BOOTSTRAP=1") // names of the old form are asked for by an option that is not stable
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", compiler, args, err, msg)
	}
	if made.dir != "" {
		kept := filepath.Join(made.dir, fmt.Sprint(len(made.by)))
		if err := copyFile(kept, out); err != nil {
			t.Fatal(err)
		}
		made.by[key] = kept
	}
	return out
}

// made is what this run of tests compiled, by compiler and arguments, in a directory
// that ends with Main.
var made = struct {
	sync.Mutex
	dir string
	by  map[string]string
}{by: map[string]string{}}

// copyFile copies a program. No child may be forked meanwhile: it would hold the
// copy open for writing, and the copy could not be run.
func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if closed := out.Close(); err == nil {
		err = closed
	}
	return err
}
