package probes

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"uprobetop/bpf/bpftest"
	"uprobetop/symbols"
)

// TestHelperProcess is no test: it is the uprobetop that TestKilled kills.
func TestHelperProcess(t *testing.T) {
	path := os.Getenv("UPROBETOP_TEST_PROBE")
	if path == "" {
		t.Skip("runs only as a helper of TestKilled")
	}
	f := open(t, path)
	c := newCollectorHere(t, Config{})
	place(t, c, request(t, f, Return, "inner"), request(t, f, Entry, "outer"))
	fmt.Println("standing")
	time.Sleep(time.Hour)
}

// Killed in the middle, the program leaves nothing behind: no programs, no links,
// and the target's code is what the file says.
func TestKilled(t *testing.T) {
	bpftest.Require(t, canProbe())
	path := bpftest.Build(t, "scenes")
	f := open(t, path)
	inner := f.Lookup("inner")[0]
	victim := exec.Command(path, "sleep")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { victim.Process.Kill(); victim.Wait() })

	tool := exec.Command(os.Args[0], "-test.run=^TestHelperProcess$", "-test.v")
	tool.Env = append(os.Environ(), "UPROBETOP_TEST_PROBE="+path, "UPROBETOP_TEST_CHILD=1")
	out, err := tool.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := tool.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "standing") {
	}
	if code := codeAt(t, victim.Process.Pid, f, inner); code[0] != 0xcc {
		t.Errorf("there is no breakpoint at inner: % x", code)
	}
	loaded := programs(t, tool.Process.Pid)
	if len(remaining(t, loaded)) == 0 {
		t.Error("the uprobetop with probes holds no programs")
	}
	if err := tool.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, out)
	_ = tool.Wait()
	want, err := f.Code(inner, 8)
	if err != nil {
		t.Fatal(err)
	}
	// The kernel frees programs some time after their last user.
	deadline := time.Now().Add(30 * time.Second)
	for {
		code, left := codeAt(t, victim.Process.Pid, f, inner), remaining(t, loaded)
		if bytes.Equal(code, want) && len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after the kill: code % x, want % x; programs %v are left", code, want, left)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func canProbe() error {
	c, err := New(Config{})
	if err == nil {
		return c.Close()
	}
	return err
}

// programs are the ids of the BPF programs that a process holds, itself or by a
// link. Those of every other process on this host are nobody's business here.
func programs(t *testing.T, pid int) map[ebpf.ProgramID]bool {
	t.Helper()
	infos, err := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	ids := map[ebpf.ProgramID]bool{}
	for _, path := range infos {
		info, err := os.ReadFile(path)
		if err != nil {
			continue // closed meanwhile
		}
		for line := range strings.Lines(string(info)) {
			var id ebpf.ProgramID
			if n, _ := fmt.Sscanf(line, "prog_id: %d", &id); n == 1 {
				ids[id] = true
			}
		}
	}
	return ids
}

// remaining are those of the programs that the kernel still has.
func remaining(t *testing.T, ids map[ebpf.ProgramID]bool) (left []ebpf.ProgramID) {
	t.Helper()
	for id := range ids {
		p, err := ebpf.NewProgramFromID(id)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		p.Close()
		left = append(left, id)
	}
	return left
}

// codeAt reads a function's first bytes from a process's memory.
func codeAt(t *testing.T, pid int, f *symbols.File, fn *symbols.Function) []byte {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		var start, end, offset uint64
		var perms, dev, path string
		var inode uint64
		if n, _ := fmt.Sscanf(line, "%x-%x %s %x %s %d %s", &start, &end, &perms, &offset, &dev, &inode, &path); n < 7 {
			continue
		}
		at := uint64(fn.Offset)
		if inode != f.Ino || !strings.Contains(perms, "x") || at < offset || at >= offset+end-start {
			continue
		}
		mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
		if err != nil {
			t.Fatal(err)
		}
		defer mem.Close()
		code := make([]byte, 8)
		if _, err := mem.ReadAt(code, int64(start+at-offset)); err != nil {
			t.Fatal(err)
		}
		return code
	}
	t.Fatalf("process %d does not map %s", pid, filepath.Base(f.Path))
	return nil
}
