package probes

import (
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"uprobetop/bpf/bpftest"
	"uprobetop/symbols"
)

// Two processes can have chosen different variants of one IFUNC: its probe stands on
// both, as the beginnings that they are, and no other is timed at either.
func TestKernelVariants(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("GLIBC_TUNABLES has no such words for this machine")
	}
	libc := libcCopy(t)
	program := bpftest.Compile(t, "testdata/allocs.c")
	start := func(variables ...string) int {
		cmd := exec.Command(program, "1", "1")
		cmd.Env = variables
		return startAllocs(t, cmd, libc)
	}
	target := processes(t, Filter{PIDs: []int{start(), start("GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-AVX2_Usable,-AVX_Fast_Unaligned_Load")}})
	if !target.Narrow(libc) {
		t.Fatal("nobody has the copy of libc")
	}
	f := target.Files[0]
	fn := one(t, f, "strlen")
	points := f.Points(fn)
	if len(points) < 2 {
		t.Skip("this libc has one strlen for both")
	}
	further, err := f.At(fn.Addr + symbols.Addr(points[1].Offset-fn.Offset))
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range points {
		if !f.Begins(fn, at.Offset) || f.Begins(fn, at.Offset+1) {
			t.Errorf("%#x begins it: %v, and the byte behind: %v", at.Offset, f.Begins(fn, at.Offset), f.Begins(fn, at.Offset+1))
		}
	}
	c := newCollectorHere(t, Config{Filter: target.Filter()})
	all := Request{Kind: Return, File: f, Function: fn, Accepted: true}
	alone := Request{Kind: Return, File: f, Function: further, Accepted: true}
	if err := c.Place(t.Context(), all, alone); err != nil {
		t.Fatal(err)
	}
	s := finish(t, c)
	if p := s.Probes[0]; p.State != Attached {
		t.Skipf("strlen cannot be timed here: %s", p.Note)
	}
	if p := s.Probes[1]; p.State != Refused || !strings.Contains(p.Note, "measured already") {
		t.Errorf("the further variant alone is %v: %s", p.State, p.Note)
	}
}
