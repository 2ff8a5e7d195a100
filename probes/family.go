package probes

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// children are the processes that a process has started and that still run. The
// kernel keeps the list by the thread that started them (CONFIG_PROC_CHILDREN, Linux
// 4.2); without it there are none to be seen.
func children(pid int) (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list) // else the thread has ended
		for _, word := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// descendants calls each with the processes that a process has started and that
// these have, parents first. What each does has effect before the children of that
// process are looked up.
func descendants(pid int, each func(pid int) error) error {
	for next := []int{pid}; len(next) > 0; next = next[1:] {
		for _, child := range children(next[0]) {
			if err := each(child); err != nil {
				return err
			}
			next = append(next, child)
		}
	}
	return nil
}

// parentOf is the process that started a process, or 0.
func parentOf(pid int) int {
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return 0
	}
	st, err := proc.Stat()
	if err != nil {
		return 0
	}
	return st.PPID
}

// running is how many of these processes run the program of another one.
func running(program int, pids []int) (n int) {
	path := func(pid int) string { return fmt.Sprintf("/proc/%d/exe", pid) }
	of, err := os.Stat(path(program))
	if err != nil {
		return 0
	}
	for _, pid := range pids {
		if st, err := os.Stat(path(pid)); err == nil && os.SameFile(of, st) {
			n++
		}
	}
	return n
}

// Kin says how a target of one process is one of several that belong together, a
// server with its workers, of which the others do not count: one sentence without a
// full stop, or nothing.
func (t *Target) Kin() string {
	p := t.process
	if p == nil || t.filter.Follow {
		return ""
	}
	if n := running(p.PID, children(p.PID)); n > 0 {
		return fmt.Sprintf("%s %d has started %s of the same program, whose hits do not count: --children counts them, too", p.Comm, p.PID, ofProcesses(n))
	}
	parent := parentOf(p.PID)
	if siblings := children(parent); running(p.PID, []int{parent}) == 1 && slices.Contains(siblings, p.PID) {
		if n := running(p.PID, siblings); n > 1 {
			return fmt.Sprintf("%s %d is 1 of %d workers, and the others do not count: -p %d --children counts all", p.Comm, p.PID, n, parent)
		}
	}
	return ""
}

func ofProcesses(n int) string {
	if n == 1 {
		return "1 process"
	}
	return fmt.Sprintf("%d processes", n)
}
