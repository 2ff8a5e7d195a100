package probes

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// KernelCounts is what the kernel itself counted and logged of a run.
type KernelCounts struct {
	// Recursions are hits and returns at which the kernel did not run our programs, since
	// one ran on this CPU already: none since Linux 6.0.
	Recursions uint64
	// UnseenEnds are ends of threads that it did not show us, at most: their calls may
	// be counted as in flight. UnseenForks are beginnings of processes, whose hits may be
	// missing, likewise. It happens from Linux 7.0 on, and 0 says that it did not.
	UnseenEnds, UnseenForks uint64
	// Runs is how often it ran the program at entries: those that were counted, that the
	// filter left out, and of probes that were switched off. nil: it does not count,
	// unless kernel.bpf_stats_enabled is 1 or somebody else asked for it.
	// Runs is how often it ran the programs at entries: those that were counted, that the
	// filter left out, and of probes that were switched off. With SessionStore one program
	// is for both, and those at returns are in it, too. nil: it does not count, unless
	// kernel.bpf_stats_enabled is 1 or somebody else asked for it.
	Runs *uint64
	// Log is what it logged; nil: that may not be read, or not be understood: the ids in it
	// are those of the initial PID namespace.
	Log *LogCounts
}

// LogCounts are lines of the kernel's log. It limits their rate, and processes that
// have ended are known only if the filter names them: there may have been more.
type LogCounts struct {
	Depth  uint64 // returns not followed, of those whose hits count: the thread had 64 pending, of all tools together
	Killed uint64 // threads, of any process, ended by SIGILL at a return that the kernel could not find
	Left   uint64 // breakpoints that could not be taken away: they stay, and no program runs at them
}

// KernelCounts asks the kernel. Its log is that since the collector was made.
func (c *Collector) KernelCounts() (KernelCounts, error) {
	var pids []int
	if !c.config.Filter.Everybody() {
		pids = c.whom()
	}
	k := KernelCounts{Log: c.log.read(pids)}
	var runs uint64
	for _, p := range []*ebpf.Program{c.objs.Enter, c.objs.Leave, c.objs.Session} {
		if p == nil {
			continue
		}
		stats, err := p.Stats()
		if err != nil {
			return k, err
		}
		k.Recursions += stats.RecursionMisses
		if p != c.objs.Leave {
			runs += stats.RunCount
		}
	}
	var err error
	if k.UnseenEnds, k.UnseenForks, err = c.objs.HookMisses(); err != nil {
		return k, err
	}
	if enabled, _ := os.ReadFile("/proc/sys/kernel/bpf_stats_enabled"); runs > 0 || bytes.HasPrefix(enabled, []byte("1")) {
		k.Runs = &runs
	}
	return k, nil
}

// kernelLog reads what the kernel logs from now on.
type kernelLog struct{ fd int }

// openKernelLog is nil where the log may not be read, or is of other ids than ours.
func openKernelLog() *kernelLog {
	if InContainer() {
		return nil
	}
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	if _, err := unix.Seek(fd, 0, unix.SEEK_END); err != nil {
		_ = unix.Close(fd)
		return nil
	}
	return &kernelLog{fd}
}

func (l *kernelLog) close() error {
	if l == nil {
		return nil
	}
	return unix.Close(l.fd)
}

// read counts the lines that were logged since the last time, of these processes; nil:
// of all.
func (l *kernelLog) read(pids []int) *LogCounts {
	if l == nil {
		return nil
	}
	var n LogCounts
	line := make([]byte, 8192) // the kernel's own limit for one (PRINTK_MESSAGE_MAX)
	for {
		got, err := unix.Read(l.fd, line)
		switch {
		case errors.Is(err, unix.EPIPE), errors.Is(err, unix.EINTR):
			continue // some were overwritten: it goes on with the next
		case err != nil || got <= 0:
			return &n
		}
		n.add(string(line[:got]), pids)
	}
}

// add takes a line apart, as kernel/events/uprobes.c writes it (Linux 5.15 to 7.3):
//
//	uprobe: omit uretprobe due to nestedness limit pid/tgid=4122/4121
//	uprobe: mysqld:4122 failed to handle uretprobe, sending SIGILL.
//	uprobe: uprobetop:99 failed to unregister, leaking uprobe
func (n *LogCounts) add(line string, pids []int) {
	head, text, _ := strings.Cut(line, ";")
	priority, _, _ := strings.Cut(head, ",")
	const user = 8 // from here on the priorities are those of lines that programs write
	by, err := strconv.Atoi(priority)
	text, _, _ = strings.Cut(text, "\n")
	text, ok := strings.CutPrefix(text, "uprobe: ")
	if !ok || err != nil || by >= user {
		return
	}
	if _, ids, ok := strings.Cut(text, "nestedness limit pid/tgid="); ok {
		_, tgid, _ := strings.Cut(ids, "/")
		if id, err := strconv.Atoi(tgid); err == nil && (pids == nil || slices.Contains(pids, id)) {
			n.Depth++
		}
		return
	}
	who, what, ok := strings.Cut(text, " failed to ")
	tid := who[strings.LastIndexByte(who, ':')+1:]
	switch {
	case !ok:
	case strings.HasPrefix(what, "handle uretprobe"): // it has ended: of which process it was is not known
		n.Killed++
	case strings.HasPrefix(what, "unregister") && exists("/proc/self/task/"+tid):
		n.Left++
	}
}
