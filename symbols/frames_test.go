package symbols

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// bare takes the symbols of a program away, all of them.
func bare(t testing.TB, path string) *File {
	t.Helper()
	out := filepath.Join(t.TempDir(), "bare")
	run(t, "strip", "-o", out, path)
	return openWith(t, &Sources{Root: t.TempDir()}, out)
}

// Without any name an address is probed where, in the whole program, an instruction
// of a function begins; and nowhere else.
func TestUnnamed(t *testing.T) {
	for _, args := range [][]string{nil, {"-no-pie"}, {"-static"}, {"-m32"}, {"-fno-asynchronous-unwind-tables"}} {
		t.Run(strings.Join(args, ""), func(t *testing.T) {
			if len(args) > 0 && args[0] == "-m32" && exec.Command("gcc", "-m32", "-o", filepath.Join(t.TempDir(), "x"), "testdata/plain.c").Run() != nil {
				t.Skip("gcc makes no 32-bit programs here")
			}
			path := build(t, "gcc", "plain.c", append([]string{"-g"}, args...)...)
			whole, without := mustOpen(t, path), bare(t, path)
			if n := len(without.code()); n > 0 {
				t.Fatalf("%d functions are left", n)
			}
			for _, name := range []string{"work", "weak_one", "only_here", "main"} {
				fn := one(t, whole, name)
				for n := range fn.Size {
					want, wantErr := whole.Inside(fn, n)
					got, err := without.At(fn.Addr + Addr(n))
					switch {
					case len(args) > 0 && strings.HasPrefix(args[0], "-fno-async"):
						if err == nil || !strings.Contains(err.Error(), "unwind entry") {
							t.Errorf("without an unwind table %s+%d is %v, %v", name, n, got, err)
						}
					case (err == nil) != (wantErr == nil):
						t.Errorf("%s+%d: %v, want %v", name, n, err, wantErr)
					case err == nil && (got.Offset != want.Offset || got.Addr != want.Addr || got.Into != n || !got.Unnamed):
						t.Errorf("%s+%d is %+v, want %+v", name, n, got, want)
					}
				}
			}
			if fn, err := without.At(one(t, whole, "bare").Addr); err == nil {
				t.Errorf("bare, which has no unwind entry, is %+v", fn)
			}
		})
	}
}
