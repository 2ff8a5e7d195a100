package symbols

import (
	"os"
	"slices"
	"strings"

	"github.com/prometheus/procfs"
)

// Successor finds the process that a program runs as now, whose process has ended:
// the oldest with the same executable and the same command line that began since
// Alive last saw this one. Its siblings, the other workers of a server, began
// before. ok is false if there is none. It looks at every process of the host.
func (p *Process) Successor() (pid int, ok bool) {
	all, err := procfs.AllProcs()
	if err != nil {
		return 0, false
	}
	var oldest uint64
	for _, proc := range all {
		start, same := p.runsAs(proc)
		if same && (!ok || start < oldest) {
			pid, oldest, ok = proc.PID, start, true
		}
	}
	return pid, ok
}

// runsAs tells whether another process runs the same program, and its start.
func (p *Process) runsAs(proc procfs.Proc) (start uint64, same bool) {
	exe, err := os.Readlink((&Process{PID: proc.PID}).path("exe"))
	if err != nil || strings.TrimSuffix(exe, deletedMark) != p.Exe {
		return 0, false
	}
	st, err := proc.Stat()
	if err != nil || proc.PID == p.PID && st.Starttime == p.Start || st.Starttime < p.seen.Load() || ended(st) {
		return 0, false
	}
	args, err := proc.CmdLine()
	return st.Starttime, err == nil && slices.Equal(args, p.args)
}
