package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"uprobetop/bpf/bpftest"
)

// Of a process that runs an older file than the one on disk, every output says so; and
// of the file on disk, that a process runs an older one.
func TestReplaced(t *testing.T) {
	requireBPF(t)
	program := target(t, "loads")
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "1", "main")
	_, out := bpftest.Start(t, cmd)
	if _, err := out.Read(make([]byte, 8)); err != nil { // it runs its own code
		t.Fatal(err)
	}
	if err := os.WriteFile(program+".new", content, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(program+".new", program); err != nil {
		t.Fatal(err)
	}
	pid := strconv.Itoa(cmd.Process.Pid)
	const since = "replaced on disk since it was mapped"
	name := filepath.Base(program)
	if r := run(t, "stat", "-p", pid, "-d", "50ms", name+":main"); !strings.Contains(r.out, name+" was "+since) {
		t.Errorf("stat says\n%s%s", r.out, r.errors)
	}
	if r := run(t, "stat", "-o", "json", "-p", pid, "-d", "50ms", name+":main"); !strings.Contains(r.out, `"replaced":"replaced"`) {
		t.Errorf("stat -o json says\n%s%s", r.out, r.errors)
	}
	if r := run(t, "list", "-p", pid, name+":main"); !strings.Contains(r.out, since) {
		t.Errorf("list says\n%s%s", r.out, r.errors)
	}
	r := run(t, "stat", "-d", "50ms", program, "main")
	if !strings.Contains(r.errors, "1 process runs an older copy of "+program) || strings.Contains(r.out, since) {
		t.Errorf("stat of the file says\n%s%s", r.out, r.errors)
	}
	x := openTerminal(t, 160, 40, program, "main")
	x.wait("1 process runs an older copy of ")
	y := openTerminal(t, 160, 40, "-p", pid, name+":main")
	y.wait(name + " replaced on disk")
}
