package probes

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"uprobetop/bpf"
)

// Status is what a look at something came to.
type Status string

const (
	OK      Status = "ok"
	Missing Status = "missing"
	Unknown Status = "unknown" // it could not be looked at
)

// Examined is one thing that was looked at.
type Examined struct {
	Name   string
	Status Status
	Found  string // what is there
	Means  string // what it is for
	Remedy string // how to get it; empty unless it is missing
}

// Diagnosis is what this kernel and this user can do.
type Diagnosis struct {
	Ready   bool
	Verdict string // one sentence, with what to do if not ready
	Checks  []Examined
}

// Diagnose looks at everything that probing depends on, mostly by trying. It
// touches no process but its own, and leaves nothing behind.
func Diagnose() Diagnosis { return diagnose(&here) }

// check is one thing to look at. A new one is one entry in checks.
type check struct {
	name   string
	needed bool // without it nothing can be probed
	means  string
	remedy string // if it is missing
	look   func(s *senses) (Status, string)
}

// checks are in the order in which a person repairs: the first that is needed and
// missing is the verdict, and the last is the proof.
var checks = []check{
	{"user", false, "root has all the rights that follow", "", user},
	{"user namespace", true, "only rights of the host count for BPF", "run uprobetop on the host, outside the container", namespace("user", 0xEFFFFFFD)},
	{"CAP_BPF", true, "loading BPF programs", "run sudo uprobetop", capability(unix.CAP_BPF)},
	{"CAP_PERFMON", true, "placing probes", "run sudo uprobetop", capability(unix.CAP_PERFMON)},
	{"CAP_SYS_ADMIN", false, "probes as perf events", "run sudo uprobetop", capability(unix.CAP_SYS_ADMIN)},
	{"CAP_SYS_PTRACE", false, "looking into processes of others, for -p", "run sudo uprobetop", capability(unix.CAP_SYS_PTRACE)},
	{"CAP_CHECKPOINT_RESTORE", false, "deleted and replaced files of a process, for -p", "run sudo uprobetop", capability(unix.CAP_CHECKPOINT_RESTORE)},
	{"pid namespace", false, "whose process ids -p takes and calls are told with", "mount -t proc proc /proc", processIDs},
	{"kernel", false, "uprobetop is tested on Linux 6.18", "", kernel},
	{"lockdown", false, "at confidentiality the kernel lets BPF read nothing", "boot with lockdown=integrity or none", lockdown},
	{"BTF", true, "fitting the programs to this kernel", "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y", file("/sys/kernel/btf/vmlinux")},
	{"uprobes", true, "breakpoints in programs", "boot a kernel built with CONFIG_UPROBE_EVENTS=y", file(bpf.UprobePMU)},
	{"ring buffer", true, "the road of all numbers", "boot Linux 5.8 or newer", trying(bpf.HaveRingBuffer)},
	{"task storage", true, "pairing a hit with its return", "boot Linux 5.11 or newer", trying(bpf.HaveTaskStorage)},
	{"attach cookie", true, "one program for all probes", "boot Linux 5.15 or newer", trying(bpf.HaveCookie)},
	{"bpf_loop", true, "sending the numbers in pieces", "boot Linux 5.17 or newer", trying(bpf.HaveLoop)},
	{"tracing hooks", true, "seeing threads and programs end", "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y", trying(bpf.HaveHooks)},
	{"uprobe_multi", false, "thousands of probes in one call", "boot Linux 6.6 or newer", trying(bpf.HaveUprobeMulti)},
	{"process filter", false, "with -p the others run without breakpoints; before 6.10 they meet them and are not counted", "boot Linux 6.10 or newer", processFilter},
	{"session cookies", false, "pairing a hit with its return in the kernel, for --inflight session", "boot Linux 6.13 or newer", trying(bpf.HaveSession)},
	{"perf_event", false, "one probe a call, for kernels before 6.6", "boot Linux 4.17 or newer", trying(tryPerfEvent)},
	{"cgroup v2", false, "narrowing to a cgroup", "mount -t cgroup2 none /sys/fs/cgroup", cgroup2},
	{"perf_event_paranoid", false, "what users without CAP_PERFMON may see by perf events", "", value("/proc/sys/kernel/perf_event_paranoid")},
	{"unprivileged_bpf_disabled", false, "whether users without CAP_BPF may load BPF; never what uprobetop needs", "", value("/proc/sys/kernel/unprivileged_bpf_disabled")},
	{"bpf_stats_enabled", false, "1: the kernel times BPF programs, which costs a little at each hit", "", value("/proc/sys/kernel/bpf_stats_enabled")},
	{"open files", false, "each probe that is placed by itself takes one or two", "ulimit -n 1024", openFiles},
	{"locked memory", false, "before Linux 5.11 it bounds BPF; uprobetop raises it by itself", "", lockedMemory},
	{"a probe on uprobetop", true, "the whole road, from a breakpoint to its number", "", trial},
}

// senses are the ways of looking; a test puts others in place.
type senses struct {
	user  func() int
	read  func(path string) (string, error)
	inode func(path string) (uint64, error)
	try   func(what func() error) error
	limit func(resource int) (unix.Rlimit, error)
	probe func() (Method, error)

	foreignProc func() bool
}

var here = senses{
	user: os.Geteuid,
	read: func(path string) (string, error) {
		b, err := os.ReadFile(path)
		return strings.TrimSpace(string(b)), err
	},
	inode: func(path string) (uint64, error) {
		var st unix.Stat_t
		err := unix.Stat(path, &st)
		return st.Ino, err
	},
	try: func(what func() error) error { return what() },
	limit: func(resource int) (r unix.Rlimit, err error) {
		return r, unix.Getrlimit(resource, &r)
	},
	probe: probeSelf,

	foreignProc: foreignProc,
}

func diagnose(s *senses) Diagnosis {
	d := Diagnosis{Ready: true}
	for _, c := range checks {
		e := Examined{Name: c.name, Means: c.means}
		e.Status, e.Found = c.look(s)
		if e.Status == Missing {
			e.Remedy = c.remedy
		}
		if c.needed && e.Status == Missing && d.Ready {
			d.Ready, d.Verdict = false, "not ready: "+e.Found
			if c.remedy != "" {
				d.Verdict = fmt.Sprintf("not ready: %s (%s): %s", e.Name, e.Found, e.Remedy)
			}
		}
		d.Checks = append(d.Checks, e)
	}
	if d.Ready { // the last check has tried it
		d.Verdict = "ready: a probe was placed " + d.Checks[len(d.Checks)-1].Found
	}
	return d
}

func user(s *senses) (Status, string) {
	if id := s.user(); id != 0 {
		return OK, fmt.Sprintf("number %d", id)
	}
	return OK, "root"
}

// capability is missing if this process does not have it in effect. Two of them
// are parts of CAP_SYS_ADMIN.
func capability(number int) func(*senses) (Status, string) {
	return func(s *senses) (Status, string) {
		status, err := s.read("/proc/self/status")
		_, rest, ok := strings.Cut(status, "CapEff:")
		field, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
		held, perr := strconv.ParseUint(field, 16, 64)
		if err != nil || !ok || perr != nil {
			return Unknown, "/proc/self/status does not say"
		}
		has := func(n int) bool { return held&(1<<n) != 0 }
		switch {
		case has(number):
			return OK, "held"
		case has(unix.CAP_SYS_ADMIN) && number != unix.CAP_SYS_PTRACE:
			return OK, "as part of CAP_SYS_ADMIN"
		}
		return Missing, "not held"
	}
}

// namespace looks whether this process is in the first one of a kind, which has
// a fixed inode (include/uapi/linux/nsfs.h).
func namespace(kind string, initial uint64) func(*senses) (Status, string) {
	return func(s *senses) (Status, string) {
		switch ino, err := s.inode("/proc/self/ns/" + kind); {
		case errors.Is(err, os.ErrNotExist):
			return OK, "the kernel has none"
		case err != nil:
			return Unknown, err.Error()
		case ino == initial:
			return OK, "the host's"
		}
		return Missing, "one of a container"
	}
}

// processIDs looks whether the ids that people see are those that hits go by.
func processIDs(s *senses) (Status, string) {
	status, found := namespace("pid", 0xEFFFFFFC)(s)
	switch {
	case s.foreignProc():
		return Missing, "/proc shows ids of another one"
	case status == Missing:
		return OK, "the container's: what is outside has no id here"
	}
	return status, found
}

func kernel(*senses) (Status, string) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return Unknown, err.Error()
	}
	return OK, unix.ByteSliceToString(u.Release[:]) + " on " + unix.ByteSliceToString(u.Machine[:])
}

func lockdown(s *senses) (Status, string) {
	modes, err := s.read("/sys/kernel/security/lockdown")
	if err != nil {
		return notThere(s, err)
	}
	_, mode, _ := strings.Cut(modes, "[")
	mode, _, _ = strings.Cut(mode, "]")
	if mode == "confidentiality" {
		return Missing, mode
	}
	return OK, mode
}

// notThere tells a kernel without lockdown from a security file system that is
// not mounted.
func notThere(s *senses, err error) (Status, string) {
	mounts, _ := s.read("/proc/self/mounts")
	switch {
	case !errors.Is(err, os.ErrNotExist):
		return Unknown, cause(err)
	case strings.Contains(mounts, " securityfs "):
		return OK, "the kernel has none"
	}
	return Unknown, "no securityfs is mounted"
}

func cause(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return err.Error()
}

func file(path string) func(*senses) (Status, string) {
	return func(s *senses) (Status, string) {
		switch _, err := s.inode(path); {
		case errors.Is(err, os.ErrNotExist):
			return Missing, "no " + path
		case err != nil:
			return Unknown, cause(err)
		}
		return OK, path
	}
}

func value(path string) func(*senses) (Status, string) {
	return func(s *senses) (Status, string) {
		v, err := s.read(path)
		if err != nil {
			return Unknown, cause(err)
		}
		return OK, v
	}
}

// trying asks the kernel for a thing itself.
func trying(have func() error) func(*senses) (Status, string) {
	return func(s *senses) (Status, string) {
		switch err := s.try(have); {
		case err == nil:
			return OK, "tried, works"
		case errors.Is(err, ebpf.ErrNotSupported):
			return Missing, "tried, the kernel has none"
		case errors.Is(err, os.ErrPermission):
			return Unknown, "may not be tried by this user"
		default:
			return Unknown, cause(err)
		}
	}
}

func processFilter(s *senses) (Status, string) {
	// The question presumes links that can have one.
	if status, found := trying(bpf.HaveUprobeMulti)(s); status != OK {
		return status, found
	}
	return trying(func() error {
		if !bpf.ProcessFilter() {
			return ebpf.ErrNotSupported
		}
		return nil
	})(s)
}

func cgroup2(s *senses) (Status, string) {
	mounts, err := s.read("/proc/self/mounts")
	if err != nil {
		return Unknown, cause(err)
	}
	for line := range strings.Lines(mounts) {
		if field := strings.Fields(line); len(field) > 2 && field[2] == "cgroup2" {
			return OK, field[1]
		}
	}
	return Missing, "not mounted"
}

func openFiles(s *senses) (Status, string) {
	r, err := s.limit(unix.RLIMIT_NOFILE)
	if err != nil {
		return Unknown, cause(err)
	}
	if r.Cur < 256 {
		return Missing, bound(r.Cur)
	}
	return OK, bound(r.Cur)
}

func lockedMemory(s *senses) (Status, string) {
	r, err := s.limit(unix.RLIMIT_MEMLOCK)
	if err != nil {
		return Unknown, cause(err)
	}
	return OK, bound(r.Cur)
}

func bound(n uint64) string {
	if n == unix.RLIM_INFINITY {
		return "no limit"
	}
	return fmt.Sprintf("at most %d", n)
}

func trial(s *senses) (Status, string) {
	method, err := s.probe()
	if err != nil {
		return Missing, err.Error()
	}
	return OK, fmt.Sprintf("by %s, and every call was counted", method)
}
