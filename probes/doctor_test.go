package probes

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"uprobetop/bpf"
	"uprobetop/bpf/bpftest"
)

// healthy is a host on which all is there.
func healthy() senses {
	files := map[string]string{
		"/proc/self/status":                           "Name:\tx\nCapPrm:\t0\nCapEff:\t000001ffffffffff\nCapBnd:\t0",
		"/proc/self/mounts":                           "none /sys/kernel/security securityfs rw 0 0\nnone /sys/fs/cgroup cgroup2 rw 0 0",
		"/sys/kernel/security/lockdown":               "none [integrity] confidentiality",
		"/proc/sys/kernel/perf_event_paranoid":        "2",
		"/proc/sys/kernel/unprivileged_bpf_disabled":  "2",
		"/proc/sys/kernel/bpf_stats_enabled":          "0",
		"/sys/kernel/btf/vmlinux":                     "",
		"/sys/bus/event_source/devices/uprobe":        "",
		"/sys/bus/event_source/devices/uprobe/format": "",
	}
	return senses{
		user: func() int { return 0 },
		read: func(path string) (string, error) {
			if text, ok := files[path]; ok {
				return text, nil
			}
			return "", os.ErrNotExist
		},
		inode: func(path string) (uint64, error) {
			switch path {
			case "/proc/self/ns/user":
				return 0xEFFFFFFD, nil
			case "/proc/self/ns/pid":
				return 0xEFFFFFFC, nil
			}
			return 1, nil
		},
		try:   func(func() error) error { return nil },
		limit: func(int) (unix.Rlimit, error) { return unix.Rlimit{Cur: 1024}, nil },
		probe: func() (Method, error) { return UprobeMulti, nil },

		foreignProc: func() bool { return false },
	}
}

func find(t *testing.T, d Diagnosis, name string) Examined {
	t.Helper()
	for _, e := range d.Checks {
		if e.Name == name {
			return e
		}
	}
	t.Fatalf("nothing is said of %s", name)
	return Examined{}
}

func TestDiagnoseHealthy(t *testing.T) {
	s := healthy()
	d := diagnose(&s)
	if !d.Ready || d.Verdict != "ready: a probe was placed by uprobe_multi, and every call was counted" || len(d.Checks) != len(checks) {
		t.Errorf("%+v", d)
	}
	for _, e := range d.Checks {
		if e.Status != OK || e.Found == "" || e.Means == "" || e.Remedy != "" {
			t.Errorf("%+v", e)
		}
	}
}

// What is missing is said with what to do about it, and what is needed and
// missing is the verdict.
func TestDiagnoseMissing(t *testing.T) {
	caps := func(s *senses, held string) {
		read := s.read
		s.read = func(path string) (string, error) {
			if path == "/proc/self/status" {
				return "CapEff:\t" + held + "\nx", nil
			}
			return read(path)
		}
	}
	inode := func(s *senses, at string, ino uint64, err error) {
		old := s.inode
		s.inode = func(path string) (uint64, error) {
			if path == at {
				return ino, err
			}
			return old(path)
		}
	}
	for _, c := range []struct {
		check   string
		with    func(s *senses)
		status  Status
		found   string
		verdict string // empty: ready
	}{
		{"CAP_BPF", func(s *senses) { caps(s, "0") }, Missing, "not held", "CAP_BPF (not held): run sudo uprobetop"},
		{"CAP_BPF", func(s *senses) { caps(s, "0000000000200000") }, OK, "part of CAP_SYS_ADMIN", ""},
		{"CAP_SYS_PTRACE", func(s *senses) { caps(s, "0000000000200000") }, Missing, "not held", ""},
		{"CAP_PERFMON", func(s *senses) { caps(s, "0000008000000000") }, Missing, "not held", "CAP_PERFMON (not held): run sudo uprobetop"},
		{"CAP_BPF", func(s *senses) { caps(s, "?") }, Unknown, "does not say", ""},
		{"user namespace", func(s *senses) { inode(s, "/proc/self/ns/user", 7, nil) }, Missing, "container", "user namespace (one of a container): run uprobetop on the host"},
		{"pid namespace", func(s *senses) { inode(s, "/proc/self/ns/pid", 7, nil) }, OK, "container", ""},
		{"pid namespace", func(s *senses) { s.foreignProc = func() bool { return true } }, Missing, "another one", ""},
		{"BTF", func(s *senses) { inode(s, "/sys/kernel/btf/vmlinux", 0, os.ErrNotExist) }, Missing, "no /sys", "CONFIG_DEBUG_INFO_BTF=y"},
		{"uprobes", func(s *senses) { inode(s, "/sys/bus/event_source/devices/uprobe", 0, os.ErrNotExist) }, Missing, "no /sys", "CONFIG_UPROBE_EVENTS=y"},
		{"uprobe_multi", func(s *senses) { s.try = func(func() error) error { return ebpf.ErrNotSupported } }, Missing, "the kernel has none", "ring buffer (tried, the kernel has none): boot Linux 5.8"},
		{"uprobe_multi", func(s *senses) { s.try = func(func() error) error { return fmt.Errorf("x: %w", os.ErrPermission) } }, Unknown, "may not be tried", ""},
		{"lockdown", func(s *senses) {
			s.read = func(string) (string, error) { return "none integrity [confidentiality]", nil }
		}, Missing, "confidentiality", ""},
		{"cgroup v2", func(s *senses) { s.read = func(string) (string, error) { return "", nil } }, Missing, "not mounted", ""},
		{"open files", func(s *senses) { s.limit = func(int) (unix.Rlimit, error) { return unix.Rlimit{Cur: 64}, nil } }, Missing, "at most 64", ""},
		{"locked memory", func(s *senses) {
			s.limit = func(int) (unix.Rlimit, error) { return unix.Rlimit{Cur: unix.RLIM_INFINITY}, nil }
		}, OK, "no limit", ""},
		{"a probe on uprobetop", func(s *senses) { s.probe = func() (Method, error) { return "", errors.New("it rains: wait") } }, Missing, "it rains", "not ready: it rains: wait"},
	} {
		s := healthy()
		c.with(&s)
		d := diagnose(&s)
		e := find(t, d, c.check)
		if e.Status != c.status || !strings.Contains(e.Found, c.found) {
			t.Errorf("%+v, want %s: %s", e, c.status, c.found)
		}
		if c.verdict != "" && (d.Ready || !strings.Contains(d.Verdict, c.verdict)) || c.verdict == "" && !d.Ready {
			t.Errorf("%s: %v: %s", c.check, d.Ready, d.Verdict)
		}
	}
}

// What is said of this kernel is so: where probes can be placed, one was; where
// they cannot, the verdict says what is needed.
func TestKernelDiagnose(t *testing.T) {
	err := Supported()
	d := Diagnose()
	bpftest.Require(t, err)
	multi := find(t, d, "uprobe_multi")
	if errors.Is(bpf.HaveUprobeMulti(), ebpf.ErrNotSupported) != (multi.Status == Missing && multi.Remedy == "boot Linux 6.6 or newer") {
		t.Errorf("%+v", multi)
	}
	if !d.Ready {
		t.Errorf("%s", d.Verdict)
	}
	for _, c := range checks {
		if e := find(t, d, c.name); c.needed && e.Status != OK {
			t.Errorf("%+v", e)
		}
	}
}
