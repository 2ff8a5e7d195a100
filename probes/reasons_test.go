package probes

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"uprobetop/bpf/bpftest"
)

// reason is what the program reasons says of one of its calls.
type reason struct {
	number               uint64
	name                 string
	latency, cpu, waited time.Duration
	wrong                time.Duration // by which these can be
	voluntary            uint64
	minor, major         uint64
}

func slowReasons(t *testing.T, target string, rounds string) (all []reason) {
	t.Helper()
	out, err := exec.Command(target, filepath.Join(t.TempDir(), "disk"), rounds).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		var r reason
		if _, err := fmt.Sscan(line, &r.number, &r.name, &r.latency, &r.cpu, &r.waited, &r.wrong, &r.voluntary, &r.minor, &r.major); err != nil {
			t.Fatalf("the target says %q: %v", line, err)
		}
		all = append(all, r)
	}
	return all
}

// stolen is the time that a hypervisor has taken from all CPUs.
func stolen(t *testing.T) time.Duration {
	t.Helper()
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		t.Fatal(err)
	}
	stat, err := fs.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(stat.CPUTotal.Steal * float64(time.Second))
}

// What is told of a call is what the call knows of itself. It looks at itself after
// the probe at its entry and before the one at its return: no time can differ by more
// than the two latencies do, and by what either says that it may be wrong.
func TestKernelReasons(t *testing.T) {
	target := bpftest.Build(t, "reasons")
	f := open(t, target)
	c := newCollectorHere(t, Config{Slow: 1})
	place(t, c, request(t, f, Return, "act"), request(t, f, Return, "callee"))
	before := stolen(t)
	said := slowReasons(t, target, "3")
	// What a hypervisor took, the two can have taken off at different moments: the kernel
	// says so in units of 10 ms. It is rare: of a few calls alone.
	var taken time.Duration
	if after := stolen(t); after > 0 {
		taken = after - before + 10*time.Millisecond
	}
	off := 0
	s := finish(t, c)
	told := map[uint64]*Call{}
	for i := range s.Calls {
		if call := &s.Calls[i]; call.Probe == s.Probes[0].ID {
			told[call.Args[0]] = call
		}
	}
	for _, r := range said[8:] {
		call := told[r.number]
		if call == nil || call.Thread == nil {
			t.Fatalf("call %d, %s: not told: %+v", r.number, r.name, call)
		}
		ours, extra := call.Thread, call.Latency-r.latency
		t.Logf("%-10s %9v: on CPU %9v ±%v, itself %9v; waiting %9v, itself %9v; blocked %9v; %v between", r.name, call.Latency,
			ours.OnCPU, ours.OnCPUError, r.cpu, ours.Waiting, r.waited, call.Blocked(), extra)
		near := func(part string, got, itself, within time.Duration) {
			if d := (got - itself).Abs(); d > within {
				t.Errorf("%s: %s %v, itself %v: off by %v, at most by %v", r.name, part, got, itself, d, within)
			}
		}
		within := ours.OnCPUError + r.wrong + extra
		if taken > 0 && (ours.OnCPU-r.cpu).Abs() > within {
			within += taken
			off++
		}
		near("latency", call.Latency, r.latency, max(extra, 0))
		near("on CPU", ours.OnCPU, r.cpu, within)
		if ours.Voluntary > 0 {
			near("blocked", call.Blocked(), r.latency-r.cpu-r.waited, within)
		}
		if ours.Waiting >= 0 {
			near("waiting", ours.Waiting, r.waited, extra)
		}
		equal(t, r.name+": voluntary switches", ours.Voluntary, r.voluntary)
		equal(t, r.name+": minor faults", ours.MinorFaults, r.minor)
		equal(t, r.name+": major faults", ours.MajorFaults, r.major)
		equal(t, r.name+": result", call.Return, 3*r.number+1)
		r.check(t, call)
	}
	if off > 3 {
		t.Errorf("the time on CPU of %d of %d calls is off by more than what is told", off, len(said)-8)
	}
}

// check looks for the reason.
func (r *reason) check(t *testing.T, c *Call) {
	t.Helper()
	const slept = 8 * time.Millisecond
	ours, found := c.Thread, true
	switch r.name {
	case "callee":
		found = c.Blocked() >= slept-ours.OnCPUError && c.Callees >= slept && c.Callees < c.Latency
	case "sleep", "sleep+work":
		found = c.Blocked() >= slept-ours.OnCPUError && (!oneClock() || !c.Vague())
	case "lock":
		found = c.Blocked() > 0 || r.voluntary == 0 // it was free by then
	case "busy": // with two others on its CPU
		found = ours.Waiting > ours.OnCPU || ours.Waiting < 0
	case "work":
		found = ours.Voluntary == 0 && c.Blocked() == 0
	case "minor":
		found = ours.MinorFaults >= 4096 && c.Blocked() == 0
	case "major":
		if r.major == 0 {
			t.Log("the pages of the file do not leave memory here: nothing is read from disk")
			return
		}
		found = ours.MajorFaults > 0 && ours.Voluntary > 0 // some pages may have stayed in memory
	}
	if !found {
		t.Errorf("%s is not seen in a call of %v: %+v", r.name, c.Latency, *ours)
	}
}
