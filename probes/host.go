package probes

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Host is what the numbers were measured on.
type Host struct {
	Kernel string // release, as uname -r says it
	CPUs   []int  // online, ascending
}

// ThisHost asks the running kernel.
func ThisHost() Host {
	var h Host
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		h.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	list, _ := os.ReadFile("/sys/devices/system/cpu/online")
	h.CPUs = parseCPUs(string(list))
	if len(h.CPUs) == 0 {
		h.CPUs = []int{0}
	}
	return h
}

// pidNamespace is the inode of this process's PID namespace, or 0 in the initial
// one, which has a fixed inode (PROC_PID_INIT_INO, include/uapi/linux/nsfs.h,
// include/linux/proc_ns.h) and where a kernel has no other.
func pidNamespace() (uint32, error) {
	var st unix.Stat_t
	err := unix.Stat("/proc/self/ns/pid", &st)
	switch {
	case errors.Is(err, unix.ENOENT) && exists("/proc/self/stat"), err == nil && st.Ino == 0xEFFFFFFC:
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("cannot tell whose process ids these are: /proc/self/ns/pid: %w", err)
	}
	return uint32(st.Ino), nil
}

// foreignProc tells whether /proc shows processes by other ids than this process
// has them: it was mounted from outside of a container.
func foreignProc() bool {
	self, err := os.Readlink("/proc/self")
	return err == nil && self != strconv.Itoa(os.Getpid())
}

// InContainer tells whether this process sees only some of the processes of the
// host: it is in a PID namespace of its own.
func InContainer() bool {
	inode, err := pidNamespace()
	return err == nil && inode != 0
}

// tick is the longest time between two ticks of a CPU that works: the resolution of
// the coarse clocks is one tick. On a CPU without ticks another one does it, once a
// second (sched_tick_remote, kernel/sched/core.c).
func tick() time.Duration {
	if list, err := os.ReadFile("/sys/devices/system/cpu/nohz_full"); err == nil && len(parseCPUs(string(list))) > 0 {
		return time.Second
	}
	var res unix.Timespec
	if err := unix.ClockGetres(unix.CLOCK_MONOTONIC_COARSE, &res); err != nil || res.Nano() <= 0 {
		return 10 * time.Millisecond // the longest that a kernel can be built with
	}
	return time.Duration(res.Nano())
}

// raiseOpenFiles makes room for the links of many perf events, where the caller
// may. A command that waits for the probes was started before, with its own limit.
//
// Below what the programs and maps alone take, the kernel's answers are not to be
// trusted: a library takes "no more files" for "not there".
func raiseOpenFiles() error {
	const least = 64
	want := uint64(1 << 16)
	if text, err := os.ReadFile("/proc/sys/fs/nr_open"); err == nil { // no limit can be higher
		if most, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil {
			want = min(want, most)
		}
	}
	var now unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &now) != nil || now.Cur >= want {
		return nil
	}
	if unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: want, Max: max(want, now.Max)}) == nil {
		return nil
	}
	if unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: now.Max, Max: now.Max}) == nil {
		now.Cur = now.Max
	}
	if now.Cur < least {
		return fmt.Errorf("%d files may be open at once, and %d are needed: %s", now.Cur, least, raiseFiles(least))
	}
	return nil
}

// raiseFiles says how to have more files open, of which so many are needed at least.
func raiseFiles(least uint64) string {
	var now unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &now) // 0 if it cannot be told
	return fmt.Sprintf("raise the limit, with ulimit -n %d", max(least, 2*min(now.Cur, 1<<30), 256))
}

// parseCPUs reads the kernel's list format: 0-3,8,10-11.
func parseCPUs(list string) (cpus []int) {
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		from, to, ranged := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		if err != nil {
			continue
		}
		last := first
		if ranged {
			if last, err = strconv.Atoi(to); err != nil {
				continue
			}
		}
		for cpu := first; cpu <= last; cpu++ {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}
