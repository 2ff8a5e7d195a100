package probes

import (
	"bytes"
	"fmt"
	"os"
)

// Doing is what a thread does at this moment: the letter of its state, as ps has it,
// and the function of the kernel that it sleeps in, if /proc tells. Empty: it has
// ended, or is none of this PID namespace.
func Doing(pid, tid int) string {
	if foreignProc() {
		return ""
	}
	thread := fmt.Sprintf("/proc/%d/task/%d/", pid, tid)
	stat, err := os.ReadFile(thread + "stat")
	// The name before the state is in parentheses, and can have some itself.
	at := bytes.LastIndexByte(stat, ')')
	if err != nil || at < 0 || at+2 >= len(stat) {
		return ""
	}
	state := string(stat[at+2])
	if in, err := os.ReadFile(thread + "wchan"); err == nil && len(in) > 0 && string(in) != "0" {
		state += " " + string(in)
	}
	return state
}
