package symbols

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// start runs sleep with an argument that is its own.
func startSleep(t *testing.T, seconds string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", seconds)
	if err := cmd.Start(); err != nil {
		t.Skipf("no sleep: %v", err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	// Start returns in the midst of exec: the command line stands a moment later.
	for {
		if args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", cmd.Process.Pid)); err != nil || len(args) > 0 {
			return cmd
		}
	}
}

// A program that is started again is found by its command line, once its process
// has ended and not before; one with other arguments is another.
func TestSuccessor(t *testing.T) {
	first := startSleep(t, "1234.5")
	p, err := OpenProcess(first.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	sibling := startSleep(t, "1234.5")
	for ticksSinceBoot() < p.Start+5 || !p.Alive() { // seen a little after both began
		if sibling.ProcessState != nil {
			t.Fatal("sleep has ended")
		}
	}
	_ = first.Process.Kill()
	_ = first.Wait()
	startSleep(t, "1234.6")
	if pid, ok := p.Successor(); ok {
		t.Errorf("process %d has other arguments", pid)
	}
	second := startSleep(t, "1234.5")
	third := startSleep(t, "1234.5")
	pid, ok := p.Successor()
	for !ok { // it runs the program a moment after it was started
		pid, ok = p.Successor()
	}
	if pid != second.Process.Pid && pid != third.Process.Pid { // both in one tick of the clock
		t.Errorf("process %d is found, want %d; the sibling is %d", pid, second.Process.Pid, sibling.Process.Pid)
	}
}
