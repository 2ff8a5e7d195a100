package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"uprobetop/bpf/bpftest"
	"uprobetop/probes"
)

// silent starts a process that maps a library in a way in which it is not counted, or
// not called.
func silent(t *testing.T, program, way, library string) (pid string) {
	t.Helper()
	cmd := exec.Command(program, way, library, "provided")
	_, out := bpftest.Start(t, cmd)
	if line, err := out.ReadString('\n'); line != "ready\n" {
		t.Fatalf("the target says %q: %v", line, err)
	}
	return strconv.Itoa(cmd.Process.Pid)
}

// What keeps a probe from being hit is told always, and makes the count inexact; that
// nobody called it is looked into with -v.
func TestStatWhy(t *testing.T) {
	requireBPF(t)
	program, built := target(t, "silent"), target(t, "library", "-shared", "-fPIC")
	content, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ way, plain, full, why string }{
		{
			"idle", "exact: every hit is counted\nno call reached provided: not called, inlined into the callers, or called by children of the process, which --children counts, too\n\x00",
			"which --children counts, too\nprovided: its breakpoint is in place in silent #\n",
			`"why":"no call reached this address: not called, or inlined into its callers; its breakpoint is in place in silent #"`,
		},
		{
			"shared", "not exact\nprovided: libwhy.so is mapped shared by silent #: into such mappings the kernel puts no breakpoint\n\x00",
			"not exact\nprovided: libwhy.so is mapped shared by silent #: into such mappings the kernel puts no breakpoint\n",
			`"why":"libwhy.so is mapped shared by silent #: into such mappings the kernel puts no breakpoint"`,
		},
	} {
		path := filepath.Join(t.TempDir(), "libwhy.so")
		if err := os.WriteFile(path, content, 0o755); err != nil {
			t.Fatal(err)
		}
		pid := silent(t, program, c.way, path)
		says := func(want string, args ...string) {
			t.Helper()
			r := run(t, append([]string{"stat", "-d", "50ms", "-p", pid, path, "provided"}, args...)...)
			if want = strings.ReplaceAll(want, "#", pid); !strings.Contains(r.out+"\x00", want) {
				t.Errorf("%s %v says\n%s%s", c.way, args, r.out, r.errors)
			}
		}
		says(c.plain)
		says(c.full, "-v")
		says(c.why, "-o", "json")
		gaps := `"gaps":[]`
		if c.way == "shared" {
			gaps = `"gaps":[{"probe":0,"pid":#,"why":"libwhy.so is mapped shared by silent #: `
		}
		says(gaps, "-o", "json")
		says(`"kernel_counts":{"recursions":0,"unseen_ends":0,"unseen_forks":0,"runs":`, "-o", "json")
	}
}

// A command that has ended was looked into while it ran, if it ran long enough.
func TestStatWhyOfCommand(t *testing.T) {
	requireBPF(t)
	program, library := target(t, "silent"), target(t, "library", "-shared", "-fPIC")
	r := run(t, "stat", "-v", library, "provided", "--", program, "idle", library, "provided")
	if !strings.Contains(r.out, "no call reached provided of "+library) || !strings.Contains(r.out, "exact: every hit is counted") {
		t.Errorf("%s%s", r.out, r.errors)
	}
}

// What the kernel did not show makes the numbers inexact, each kind in its words.
func TestUnseen(t *testing.T) {
	for _, c := range []struct {
		kernel probes.KernelCounts
		want   []string
	}{
		{probes.KernelCounts{}, nil},
		{probes.KernelCounts{UnseenEnds: 1500}, []string{"up to 1,500 ends of threads were not seen: calls that they ended may be counted as in flight"}},
		{probes.KernelCounts{UnseenForks: 2}, []string{"up to 2 new processes were not seen: their hits may be missing"}},
	} {
		f := &findings{kernel: &c.kernel}
		if got := f.inexact(nil); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.kernel, got, c.want)
		}
	}
}

// Hits that the kernel did not run the programs at are missing: that is told always.
// With session cookies the programs run at returns, too.
func TestKernelDoubts(t *testing.T) {
	s, runs := manyProbes(1), uint64(9)
	s.Probes[0].Hits, s.Probes[0].Returned, s.Probes[0].NoFrames = 4, 3, true
	k := &probes.KernelCounts{Recursions: 2, Runs: &runs}
	text := func(verbose bool) string {
		var b strings.Builder
		if err := table(&b, s, false, &findings{kernel: k, verbose: verbose}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	const missing = "\nnot exact\nthe kernel did not run the programs at 2 hits or returns, which are not counted: "
	if got := text(false); !strings.Contains(got, missing) || strings.Contains(got, "9 times") {
		t.Errorf("it says\n%s", got)
	}
	k.Recursions, s.InFlight = 0, probes.SessionStore
	const both = "the kernel ran the programs of entries and returns 9 times: 4 hits and 3 returns, 1 left out"
	if got := text(true); !strings.Contains(got, both) || !strings.Contains(got, "\nexact: ") {
		t.Errorf("it says\n%s", got)
	}
}

// That nobody maps the target is told: of everybody with -v and without, and of a command
// that was looked into while it ran.
func TestStatWhyNobody(t *testing.T) {
	requireBPF(t)
	library := target(t, "library", "-shared", "-fPIC")
	for _, verbose := range []string{"-v=false", "-v"} {
		r := run(t, "stat", verbose, "-a", "-d", "10ms", library, "provided")
		if !strings.Contains(r.out, "no process maps "+filepath.Base(library)+" now") {
			t.Errorf("with %s it says\n%s%s", verbose, r.out, r.errors)
		}
		r = run(t, "stat", verbose, library, "provided", "--", "sleep", "0.2")
		if !strings.Contains(r.out, "provided: no process of the command was seen to map "+filepath.Base(library)) {
			t.Errorf("with %s it says of a command\n%s%s", verbose, r.out, r.errors)
		}
	}
}
