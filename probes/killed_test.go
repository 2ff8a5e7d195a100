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

	before := programs(t)
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
	if n := len(programs(t)); n <= len(before) {
		t.Errorf("there are %d programs with probes, %d without", n, len(before))
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
	deadline := time.Now().Add(time.Second)
	for {
		code, left := codeAt(t, victim.Process.Pid, f, inner), newPrograms(t, before)
		if bytes.Equal(code, want) && left == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("a second after the kill: code % x, want % x; %d programs are left", code, want, left)
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

// programs are the ids of uprobetop's loaded programs.
func programs(t *testing.T) map[ebpf.ProgramID]bool {
	t.Helper()
	ids := map[ebpf.ProgramID]bool{}
	var id ebpf.ProgramID
	for {
		var err error
		if id, err = ebpf.ProgramGetNextID(id); errors.Is(err, os.ErrNotExist) {
			return ids
		} else if err != nil {
			t.Fatal(err)
		}
		p, err := ebpf.NewProgramFromID(id)
		if err != nil {
			continue // gone meanwhile
		}
		if info, err := p.Info(); err == nil && (info.Name == "enter" || info.Name == "leave" || info.Name == "flush") {
			ids[id] = true
		}
		p.Close()
	}
}

func newPrograms(t *testing.T, before map[ebpf.ProgramID]bool) (n int) {
	t.Helper()
	for id := range programs(t) {
		if !before[id] {
			n++
		}
	}
	return n
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
