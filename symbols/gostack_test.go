package symbols

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// goProgram builds a Go program for a machine.
func goProgram(t *testing.T, source, arch string) string {
	t.Helper()
	path, err := exec.LookPath("go")
	if err != nil {
		t.Skip("there is no Go compiler")
	}
	dir := t.TempDir()
	out := filepath.Join(dir, "program")
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "build", "-o", out, filepath.Join(dir, "main.go"))
	cmd.Env = append(os.Environ(), "GOARCH="+arch)
	if strings.Contains(source, `import "C"`) {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=1")
	} else {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=0")
	}
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("%v: %v\n%s", cmd, err, msg)
	}
	return out
}

// foreign reads a program of a machine that is not this one.
func foreign(t *testing.T, path string) *File {
	t.Helper()
	e, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	all, err := e.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	b := readFile(t, path)
	f := &File{Path: path, Machine: e.Machine, Go: true, r: strings.NewReader(string(b)), size: uint64(len(b))}
	for _, s := range all {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && int(s.Section) < len(e.Sections) {
			sec := e.Sections[s.Section]
			f.Functions = append(f.Functions, Function{
				Symbol: Symbol{Name: s.Name}, Addr: Addr(s.Value), Offset: Offset(s.Value - sec.Addr + sec.Offset), Size: s.Size,
			})
		}
	}
	return f
}

const stacks = `package main

//go:noinline
func small(n int, s string) int { if n > 0 { return small(n-1, s) + 1 }; return len(s) }
//go:noinline
func big(n int) (x [200]byte) { if n > 0 { y := big(n-1); x[0] = y[1] }; return }
//go:noinline
func huge(n int) (x [70000]byte) { if n > 0 { y := huge(n-1); x[0] = y[1] }; return }
//go:noinline
func leaf(n int) int { return n + 1 }
//go:noinline
func inner(n *int) (f func() int) { return func() int { *n = small(*n, "x"); return *n } }

func main() { n := 3; println(small(3, ""), big(3)[0], huge(2)[0], leaf(2), inner(&n)()) }
`

// The stack check is found on every architecture, in each of its forms: what stands
// behind it makes the frame, or uses registers where there is none.
func TestBehindStackCheck(t *testing.T) {
	for _, c := range []struct {
		arch   string
		behind map[string]uint64 // bytes
	}{
		{"amd64", map[string]uint64{"main.small": 6, "main.big": 18, "main.huge": 18, "main.leaf": 0, "main.inner.func1": 6}},
		{"386", map[string]uint64{"main.small": 18, "main.big": 25, "main.huge": 27, "main.leaf": 18, "main.inner.func1": 18}},
		{"arm64", map[string]uint64{"main.small": 12, "main.big": 16, "main.huge": 28, "main.leaf": 0, "main.inner.func1": 12}},
	} {
		t.Run(c.arch, func(t *testing.T) {
			f := foreign(t, goProgram(t, stacks, c.arch))
			again, found := 0, 0
			for i := range f.Functions {
				fn := &f.Functions[i]
				p := f.Points(fn)[0]
				if p.Again {
					again++
				}
				if want, is := c.behind[fn.Name]; is {
					found++
					if got := uint64(p.Offset - fn.Offset); got != want || p.Again {
						t.Errorf("%s: %d bytes behind the beginning, want %d; again: %v", fn.Name, got, want, p.Again)
					}
				}
			}
			if found != len(c.behind) {
				t.Errorf("%d functions of %d are there", found, len(c.behind))
			}
			if again > len(f.Functions)/200 {
				t.Errorf("%d of %d functions are marked", again, len(f.Functions))
			}
		})
	}
}

// C functions of a Go program have no stack check: the breakpoint is at their
// beginning, and the mark only where a loop goes back to it.
func TestStackCheckOfC(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("has assembly of x86-64")
	}
	f := mustOpen(t, goProgram(t, `package main

// __attribute__((noinline)) int plain(int n) { return n * 3; }
// __asm__(".globl loops\n.type loops,@function\nloops: sub $1,%edi\njnz loops\nret\n.size loops, .-loops\n");
// void loops(int n);
import "C"

func main() { println(C.plain(2)); C.loops(3) }
`, "amd64"))
	for name, again := range map[string]bool{"plain": false, "loops": true, "main.main": false} {
		fn := one(t, f, name)
		p := f.Points(fn)[0]
		if p.Again != again || (p.Offset != fn.Offset) != (name == "main.main") {
			t.Errorf("%s at %#x: %+v", name, fn.Offset, p)
		}
	}
}
