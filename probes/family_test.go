package probes

import (
	"os"
	"os/exec"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// unreaped starts a program and waits for its end, which nobody has noticed then.
func unreaped(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

// A process that has ended is not admitted, be it named or a child of one that is: the
// hook on exit, which would take it off the list, has run.
func TestEndedAreNotAdmitted(t *testing.T) {
	ended := unreaped(t)
	over := func() bool { return true }
	admitted := func(c *Collector) []int {
		t.Helper()
		pids, err := c.objs.Admitted()
		if err != nil {
			t.Fatal(err)
		}
		return pids
	}
	named := newCollectorHere(t, Config{Filter: Filter{PIDs: []int{ended}, Follow: true}, Ended: over})
	if pids := admitted(named); len(pids) != 0 {
		t.Errorf("%v are admitted of %d, which has ended", pids, ended)
	}
	family := newCollectorHere(t, Config{Filter: Filter{PIDs: []int{os.Getpid()}, Follow: true}, Ended: over})
	if pids := admitted(family); slices.Contains(pids, ended) || !slices.Contains(pids, os.Getpid()) {
		t.Errorf("%v are admitted; %d has ended, %d has not", pids, ended, os.Getpid())
	}
	if collect(t, family).Gone {
		t.Error("gone, while an admitted process runs")
	}
	// As when the hook was skipped.
	if err := named.objs.Admit(ended); err != nil {
		t.Fatal(err)
	}
	if !collect(t, named).Gone {
		t.Error("not gone, although all that are admitted have ended")
	}
}
