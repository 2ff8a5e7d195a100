package symbols

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// Process is a running process and the files whose code it has mapped, as it
// was at the time of OpenProcess.
type Process struct {
	PID      int
	Comm     string // the name that the kernel shows, fit for a terminal
	Exe      string // path of its executable in its own mount namespace; print it through Printable
	Start    uint64 // clock ticks after boot at which it started: with PID it names one process for good
	Mappings []Mapping
	Names    *Sources // where File finds the names of stripped files; nil: what every host has

	through int            // a thread by which it is looked at: its first one may have ended
	args    []string       // of its command line
	seen    *atomic.Uint64 // when it was last seen alive, in the clock of Start
	budget  *budget        // of the names of its files
}

// Mapping is one file that a process has mapped as code: the executable first,
// then the libraries in order of address.
type Mapping struct {
	Path       string // in the process's mount namespace; print it through Printable
	Dev, Ino   uint64 // as in /proc/PID/maps; on btrfs and overlayfs stat(2) may give another device
	Deleted    bool   // no directory holds the file any more, such as after an upgrade
	Start, End uint64 // the first range of addresses that is executable
}

// OpenProcess looks at a process. An error is one sentence.
func OpenProcess(pid int) (*Process, error) {
	proc, st, err := lookAt(pid)
	if err != nil {
		return nil, err
	}
	p := &Process{PID: pid, Comm: Printable(st.Comm), Start: st.Starttime, seen: new(atomic.Uint64), budget: new(budget)}
	const kernelThread = 0x00200000 // PF_KTHREAD
	if st.Flags&kernelThread != 0 {
		return nil, fmt.Errorf("process %s is a thread of the kernel: it has no user-space functions", p)
	}
	if ended(st) {
		return nil, fmt.Errorf("process %s has ended and only waits for its parent to notice", p)
	}
	if st.State == "Z" {
		p.through = livingThread(pid)
	}
	if status, err := proc.NewStatus(); err == nil && status.TGID != pid {
		return nil, fmt.Errorf("%s is a thread of process %d, not a process; name the process", p, status.TGID)
	}
	if p.Exe, err = os.Readlink(p.path("exe")); err != nil {
		return nil, p.cannot("looked into", err)
	}
	p.Exe = strings.TrimSuffix(p.Exe, deletedMark)
	if through, err := procfs.NewProc(cmp.Or(p.through, pid)); err == nil {
		p.args, _ = through.CmdLine() // it can be empty
	}
	p.seen.Store(p.Start)
	if p.Mappings, err = p.mapped(); err != nil {
		return nil, err
	}
	return p, nil
}

// lookAt reads /proc/PID/stat.
func lookAt(pid int) (procfs.Proc, procfs.ProcStat, error) {
	if pid <= 0 {
		return procfs.Proc{}, procfs.ProcStat{}, fmt.Errorf("%d is no process id: they are above 0", pid)
	}
	proc, err := procfs.NewProc(pid)
	if err == nil {
		var st procfs.ProcStat
		if st, err = proc.Stat(); err == nil {
			return proc, st, nil
		}
	}
	if gone(err) {
		err = sentence{fmt.Sprintf("process %d does not exist: it has ended, or the number is wrong", pid), err}
	} else {
		err = fmt.Errorf("process %d cannot be looked at: %w", pid, cause(err))
	}
	return procfs.Proc{}, procfs.ProcStat{}, err
}

// gone says that an error comes from a process that is not there, or from one
// that ended while it was looked at.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) }

// ended says that a process runs no more, although it still has its number. One
// whose first thread alone has ended goes on.
func ended(st procfs.ProcStat) bool {
	return (st.State == "Z" || st.State == "X") && st.NumThreads <= 1
}

// String is PID and name: 4121 (mysqld).
func (p *Process) String() string { return fmt.Sprintf("%d (%s)", p.PID, p.Comm) }

// Alive says whether the process still runs. Another process that was given
// the same PID since is not it.
func (p *Process) Alive() bool {
	now := ticksSinceBoot()
	_, st, err := lookAt(p.PID)
	if err != nil || st.Starttime != p.Start || ended(st) {
		return false
	}
	p.seen.Store(now)
	return true
}

// ticksSinceBoot is the clock by which the kernel notes the start of a process
// (fs/proc/array.c, start_boottime, in USER_HZ).
func ticksSinceBoot() uint64 {
	const userHz = 100
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return 0
	}
	return uint64(t.Nano()) / (1e9 / userHz)
}

func (p *Process) path(parts ...string) string {
	return filepath.Join(append([]string{"/proc", strconv.Itoa(cmp.Or(p.through, p.PID))}, parts...)...)
}

// FirstEnded tells whether a process goes on whose first thread has ended: the
// kernel then knows of it no memory that it could be probed in.
func FirstEnded(pid int) bool {
	_, st, err := lookAt(pid)
	return err == nil && st.State == "Z" && !ended(st)
}

// Runs tells whether a process has a thread that has not begun to end. A process that
// waits to be reaped has none.
func Runs(pid int) bool {
	// Twice: a thread that we came to too early can have ended, and another one,
	// that it started or that took its place by exec, be missed.
	for range 2 {
		if livingThread(pid) != 0 {
			return true
		}
	}
	return false
}

// livingThread is the id of a thread of a process that has not begun to end, or 0. The
// kernel shows a process by any of its threads.
func livingThread(pid int) int {
	const exiting = 0x4 // PF_EXITING: set before the hooks on exit run
	threads, _ := procfs.AllThreads(pid)
	for _, th := range threads {
		if st, err := th.Stat(); err == nil && st.State != "Z" && st.State != "X" && st.Flags&exiting == 0 {
			return th.PID
		}
	}
	return 0
}

// cannot makes the sentence for a failed look at the process.
func (p *Process) cannot(be string, err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission) && os.Geteuid() == 0:
		return sentence{fmt.Sprintf("process %s may not be %s, not even by root: a capability is missing, or the host forbids it; uprobetop doctor tells", p, be), err}
	case errors.Is(err, fs.ErrPermission):
		return sentence{fmt.Sprintf("process %s may not be %s by this user; run as root, or with CAP_SYS_PTRACE and CAP_CHECKPOINT_RESTORE", p, be), err}
	case gone(err) || !p.Alive():
		return sentence{fmt.Sprintf("process %s has ended", p), err}
	}
	return fmt.Errorf("process %s cannot be %s: %w", p, be, cause(err))
}

// File opens the very inode that the process has mapped, whatever stands at its
// path by now and whatever the host has there. An error is one sentence.
func (p *Process) File(m Mapping) (*File, error) {
	if !p.Alive() {
		return nil, fmt.Errorf("process %s has ended", p)
	}
	f, err := p.openMapped(m)
	if errors.Is(err, fs.ErrNotExist) {
		// The range may have been split or joined since: look again.
		if now, e := p.mapped(); e == nil {
			i := slices.IndexFunc(now, func(n Mapping) bool { return n.Dev == m.Dev && n.Ino == m.Ino })
			if i < 0 {
				return nil, fmt.Errorf("process %s has %s no longer mapped", p, Printable(m.Path))
			}
			f, err = p.openMapped(now[i])
		}
	}
	if err != nil {
		return nil, err
	}
	if !p.Alive() {
		f.Close()
		return nil, fmt.Errorf("process %s has ended", p)
	}
	f.Replaced = p.replaced(m)
	return f, nil
}

// otherRoot is the root of a process that has another one than we have, in a
// container: debug files may be there. It is empty where it is the same, or not
// to be seen.
func (p *Process) otherRoot() string {
	root := p.path("root") + "/"
	theirs, err := os.Stat(root)
	ours, ourErr := os.Stat("/")
	if err != nil || ourErr != nil || os.SameFile(theirs, ours) {
		return ""
	}
	return root
}

// replaced is what stands at the path of a mapping now.
func (p *Process) replaced(m Mapping) string {
	if !m.Deleted || m.InMemory() {
		return ""
	}
	if _, err := os.Stat(p.path("root", m.Path)); err != nil {
		return Deleted
	}
	return Overwritten
}

// openMapped tries the kernel's link to the mapped file, which needs
// CAP_CHECKPOINT_RESTORE, then the path as the process sees it.
func (p *Process) openMapped(m Mapping) (*File, error) {
	names := p.Names.in(p.otherRoot())
	f, err := names.openOf(p, m.Path, p.path("map_files", fmt.Sprintf("%x-%x", m.Start, m.End)))
	if errors.Is(err, fs.ErrPermission) {
		f, err = names.openOf(p, m.Path, p.path("root", m.Path))
		if err != nil && (m.Deleted || errors.Is(err, fs.ErrNotExist)) {
			return nil, sentence{fmt.Sprintf("%s of process %s is deleted or moved, and reached only with CAP_CHECKPOINT_RESTORE; run as root", Printable(m.Path), p), err}
		}
	}
	if err != nil {
		return nil, err
	}
	if !f.isMapped(m) {
		f.Close()
		return nil, fmt.Errorf("%s is no longer the file that process %s has mapped; run as root, which can reach the old one", Printable(m.Path), p)
	}
	return f, nil
}
