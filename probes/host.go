package probes

import (
	"fmt"
	"os"
	"strconv"
	"strings"

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

// initialPIDNamespace tells whether process ids here are those that the kernel
// counts by. The initial namespace has a fixed inode (PROC_PID_INIT_INO,
// include/uapi/linux/nsfs.h, include/linux/proc_ns.h).
func initialPIDNamespace() bool {
	var st unix.Stat_t
	return unix.Stat("/proc/self/ns/pid", &st) == nil && st.Ino == 0xEFFFFFFC
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
