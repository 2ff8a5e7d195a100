package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"uprobetop/bpf/bpftest"
)

// inNamespace has a command run as process 1 of a PID namespace of its own.
func inNamespace(cmd *exec.Cmd) *exec.Cmd {
	const script = `mount --make-rprivate / && mount -t proc proc /proc && exec "$@"`
	in := exec.Command("sh", slices.Concat([]string{"-c", script, "sh"}, cmd.Args)...)
	in.Args[4] = cmd.Path
	in.Env = cmd.Env
	in.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	return in
}

// self is program by a path that is the same in every process.
func self(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := program(args...)
	cmd.Path = exe
	return cmd
}

func requireNamespace(t *testing.T) {
	t.Helper()
	requireBPF(t)
	if out, err := inNamespace(exec.Command("/bin/true")).CombinedOutput(); err != nil {
		t.Skipf("no PID namespace can be made here: %v: %s", err, out)
	}
}

type singleCall struct {
	Type     string
	Name     string
	PID, TID *int
}

// singleCalls are the calls that were reported one by one.
func singleCalls(t *testing.T, out string) (all []singleCall) {
	t.Helper()
	for line := range strings.Lines(out) {
		var c singleCall
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if c.Type == "call" {
			all = append(all, c)
		}
	}
	return all
}

// In a PID namespace -p and -t mean its ids, and calls are told with them; from
// outside the same process is probed by the ids that it has there.
func TestPIDNamespace(t *testing.T) {
	requireNamespace(t)
	slow := target(t, "slow")
	// Process 1 outlives it: with that one the whole namespace ends.
	cmd := inNamespace(exec.Command("/bin/sh", "-c", slow+" threads 2 40; cat"))
	in, out := bpftest.Start(t, cmd)
	defer in.Close()
	var tids []int
	for range 2 {
		line, err := out.ReadString('\n')
		tid, nerr := strconv.Atoi(strings.TrimSpace(line))
		if err != nil || nerr != nil {
			t.Fatalf("the target says %q: %v", line, err)
		}
		tids = append(tids, tid)
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", cmd.Process.Pid))
	if err != nil {
		t.Skipf("whose child is whose is not told: %v", err)
	}
	outside, err := strconv.Atoi(strings.TrimSpace(string(children)))
	if err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", outside))
	if err != nil {
		t.Fatal(err)
	}
	_, ids, _ := strings.Cut(string(status), "\nNSpid:")
	var inside int
	if _, err := fmt.Sscan(ids, &outside, &inside); err != nil || inside == outside {
		t.Fatalf("process %d has the ids %.20q: %v", outside, ids, err)
	}
	within := strconv.Itoa(inside)
	stat := []string{"stat", "-o", "json", "-I", "20ms", "--slow", "1ns"}
	enter := func(args ...string) *exec.Cmd {
		c := self(t, append(slices.Clone(stat), args...)...)
		n := exec.Command("nsenter", append([]string{"-t", strconv.Itoa(outside), "-p", "-m", c.Path}, c.Args[1:]...)...)
		n.Env = c.Env
		return n
	}
	runs := []struct {
		what      string
		cmd       *exec.Cmd
		pid, hits int
		tids      []int // nil: not known
		rest      io.Reader
	}{
		{"-p inside", enter("-p", within, "slow:step"), inside, 80, tids, nil},
		{"-t inside", enter("-t", strconv.Itoa(tids[1]), "slow:step"), inside, 40, tids[1:], nil},
		{"perf inside", enter("--attach", "perf", "-p", within, "slow:step"), inside, 80, tids, nil},
		{"-p outside", self(t, append(slices.Clone(stat), "-p", strconv.Itoa(outside), "slow:step")...), outside, 80, nil, nil},
	}
	for i := range runs {
		_, o := bpftest.Start(t, runs[i].cmd)
		if _, err := o.ReadString('\n'); err != nil { // the probes stand: it was told
			t.Fatalf("%s: %v", runs[i].what, err)
		}
		runs[i].rest = o
	}
	if _, err := io.WriteString(in, "\n"); err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		text, err := io.ReadAll(r.rest)
		if err != nil {
			t.Fatal(err)
		}
		p, calls := lastLine(t, string(text)).Probes[0], singleCalls(t, string(text))
		if p.Hits != uint64(r.hits) || *p.Returned != uint64(r.hits) || len(calls) != r.hits {
			t.Errorf("%s: %d hits, %d returned, %d reported, want %d", r.what, p.Hits, *p.Returned, len(calls), r.hits)
		}
		for _, c := range calls {
			if c.PID == nil || *c.PID != r.pid || r.tids != nil && !slices.Contains(r.tids, *c.TID) {
				t.Fatalf("%s: process %v, thread %v; want %d, of %v", r.what, *c.PID, *c.TID, r.pid, r.tids)
			}
		}
	}
}

// A command that is started in a PID namespace counts with what it starts, be that
// in a namespace of its own, and nobody else does.
func TestCommandInPIDNamespace(t *testing.T) {
	requireNamespace(t)
	slow := target(t, "slow")
	script := "for i in 1 2 3; do " + slow + " slow 5 0; done >/dev/null; unshare --pid --fork " + slow + " slow 2 0 >/dev/null; true"
	cmd := inNamespace(self(t, "stat", "-o", "json", "--slow", "1ns", slow, "around", "--", "sh", "-c", script))
	r := finish(t, cmd, nil)
	if r.status != 0 {
		t.Fatalf("status %d: %s", r.status, r.errors)
	}
	p, calls := lastLine(t, r.out).Probes[0], singleCalls(t, r.out)
	if p.Hits != 17 || len(calls) != 17 {
		t.Errorf("%d hits, %d reported of 17 calls", p.Hits, len(calls))
	}
	pids := map[int]bool{}
	for _, c := range calls {
		if c.PID == nil || *c.PID != *c.TID || *c.PID < 2 || *c.PID > 40 {
			t.Fatalf("process %v, thread %v", *c.PID, *c.TID)
		}
		pids[*c.PID] = true
	}
	if len(pids) != 4 {
		t.Errorf("processes %v", pids)
	}
}

// Without anybody named who is outside counts, too, has no ids, and it is said.
func TestOutsideOfPIDNamespace(t *testing.T) {
	requireNamespace(t)
	slow := target(t, "slow")
	cmd := inNamespace(self(t, "stat", "-o", "json", "-I", "20ms", "--slow", "1ns", slow, "around"))
	var errs strings.Builder
	cmd.Stderr = &errs
	_, out := bpftest.Start(t, cmd)
	if _, err := out.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(slow, "slow", "20", "0").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	p, calls := lastLine(t, string(text)).Probes[0], singleCalls(t, string(text))
	if p.Hits != 20 || len(calls) != 20 || !strings.Contains(errs.String(), "outside of this container") {
		t.Errorf("%d hits, %d reported of 20 calls: %s", p.Hits, len(calls), errs.String())
	}
	for _, c := range calls {
		if c.PID != nil || c.TID != nil {
			t.Fatalf("process %d, thread %d", *c.PID, *c.TID)
		}
	}
}

// Of threads outside it is not known who they are, which are in flight, and what the
// kernel logged of them: null, and no 0.
func TestInFlightOutsideOfPIDNamespace(t *testing.T) {
	requireNamespace(t)
	hang := target(t, "hang", "-pthread")
	cmd := inNamespace(self(t, "stat", "-o", "json", "-r", "--by", "thread", "-I", "20ms", hang, "hang"))
	_, out := bpftest.Start(t, cmd)
	next := func() (line string, n float64) {
		line, err := out.ReadString('\n')
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		var o struct {
			Probes []map[string]any
		}
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		n, _ = o.Probes[0]["in_flight"].(float64)
		return line, n
	}
	next() // the probe stands
	bpftest.Start(t, exec.Command(hang, "threads", "2"))
	line, n := next()
	for ; n < 2 || !strings.Contains(line, `"comm":null,"hits":2,`); line, n = next() {
	}
	for _, want := range []string{
		`"in_flight_calls":null`, `"oldest_in_flight_ns":null`, `"threads":[{"pid":null,"tid":null,"comm":null,"hits":2,`,
	} {
		if !strings.Contains(line, want) {
			t.Errorf("it does not say %s:\n%s", want, line)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for ; !strings.Contains(line, `"final":true`); line, _ = next() {
	}
	if !strings.Contains(line, `"log_depth":null`) {
		t.Errorf("it says what the kernel logged:\n%s", line)
	}
}

// Where /proc shows the ids of another namespace, -p would mean another process than
// the kernel takes it for.
func TestForeignProc(t *testing.T) {
	requireNamespace(t)
	slow := target(t, "slow")
	cmd := self(t, "stat", slow, "step", "--", slow, "slow", "1", "0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if r := finish(t, cmd, nil); r.status != 1 || !strings.Contains(r.errors, "mount -t proc") {
		t.Errorf("status %d: %s%s", r.status, r.out, r.errors)
	}
}
