package probes

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"uprobetop/bpf"
	"uprobetop/bpf/bpftest"
)

// auditHere is a collector that is audited.
func auditHere(t *testing.T, config Config) *Collector {
	t.Helper()
	config.Audit = true
	return newCollectorHere(t, config)
}

func agreesExactly(t *testing.T, s *Snapshot) {
	t.Helper()
	for i := range s.Probes {
		p := &s.Probes[i]
		seen := p.Hits + p.Filtered
		switch a := p.Audit; {
		case a == nil:
			t.Errorf("%s is not audited", p.Function.Name)
		case *a != (Audit{Min: seen, Max: seen, Agrees: true}):
			t.Errorf("%s: %d hits, the audit says %+v", p.Function.Name, seen, *a)
		}
	}
}

// onOneCPU runs what is started in it on one CPU.
func onOneCPU(t *testing.T, run func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, one unix.CPUSet
	one.Set(ThisHost().CPUs[0])
	if err := errors.Join(unix.SchedGetaffinity(0, &before), unix.SchedSetaffinity(0, &one)); err != nil {
		t.Fatal(err)
	}
	defer unix.SchedSetaffinity(0, &before)
	run()
}

// The kernel's own count is ours: of entries, returns and usdt probes, by every way of
// attaching, with more threads than CPUs. They are on one, because a thread that is moved
// in the middle of a hit can be counted by the witness of either CPU, or of none.
func TestKernelAudit(t *testing.T) {
	target := bpftest.Build(t, "calls")
	markers := bpftest.Build(t, "markers")
	f, m := open(t, target), open(t, markers)
	for _, method := range []Method{"", PerfEvent} {
		c := auditHere(t, Config{Attach: method})
		rs := []Request{request(t, f, Return, "work"), request(t, m, USDT, "demo:guarded")}
		if method == "" { // each event takes its time to go
			rs = append(rs, request(t, f, Entry, "work"))
		}
		place(t, c, rs...)
		for i := range collect(t, c).Probes {
			if c.Snapshot().Probes[i].Audit != nil {
				t.Error("it says something before the end")
			}
		}
		var made uint64
		onOneCPU(t, func() { made = truth(t, target, "32", "500")["calls"] })
		if out, err := exec.Command(markers, "300").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		s := finish(t, c)
		equal(t, "hits", s.Probes[0].Hits, made)
		if s.Probes[1].Hits == 0 {
			t.Error("nobody passed the guarded sites")
		}
		agreesExactly(t, s)
	}
}

// Of a process, hits of others are seen by both counts: ours leaves them out one by one.
func TestKernelAuditOfProcess(t *testing.T) {
	target := bpftest.Build(t, "slow")
	f := open(t, target)
	cmd := exec.Command(target, "threads", "4", "500")
	_, goOn := startThreads(t, cmd, 4)
	c := auditHere(t, Config{Filter: Filter{PIDs: []int{cmd.Process.Pid}}})
	place(t, c, request(t, f, Return, "step"))
	collect(t, c)
	truth(t, target, "slow", "50", "0")
	goOn()
	s := finish(t, c)
	equal(t, "hits", s.Probes[0].Hits, 2000)
	equal(t, "filtered", s.Probes[0].Filtered, 100)
	agreesExactly(t, s)
}

// Hits that we do not count are missed by the witness.
func TestKernelAuditDiffers(t *testing.T) {
	target := bpftest.Build(t, "calls")
	f := open(t, target)
	c := auditHere(t, Config{})
	place(t, c, request(t, f, Entry, "work"), request(t, f, Entry, "run"))
	collect(t, c)
	truth(t, target, "4", "100")
	cookie := c.probes[0].cookie
	for _, on := range []bool{false, true} {
		if err := c.objs.Switch(cookie, bpf.Switch{On: on, Slow: NoCalls}); err != nil {
			t.Fatal(err)
		}
		truth(t, target, "1", "7")
	}
	s := finish(t, c)
	equal(t, "hits", s.Probes[0].Hits, 407)
	if a := s.Probes[0].Audit; a == nil || *a != (Audit{Min: 414, Max: 414}) {
		t.Errorf("7 hits are dropped, and the audit says %+v", a)
	}
	if a := s.Probes[1].Audit; a == nil || !a.Agrees {
		t.Errorf("of the other probe it says %+v", a)
	}
}

// While hits go on at the borders, each thread may be in the middle of one, and no
// more than were seen there.
func TestAuditBounds(t *testing.T) {
	w := &witness{
		threads: 10,
		start:   border{long: 70, before: 100, after: 103, later: 107},
		end:     border{long: 1000, before: 1001, after: 1002, later: 5000},
	}
	least, most := uint64(1001-103-4-1), uint64(1002-100+10+10)
	for seen, agrees := range map[uint64]bool{least - 1: false, least: true, most: true, most + 1: false} {
		if a := w.audit(seen); *a != (Audit{Min: least, Max: most, Agrees: agrees}) {
			t.Errorf("of %d it says %+v", seen, *a)
		}
	}
	w = &witness{threads: 10, start: border{after: 3}, end: border{before: 2, after: 2, later: 2}}
	if a := w.audit(0); a.Min != 0 || !a.Agrees {
		t.Errorf("less than nothing: %+v", *a)
	}
}

// More files than it is sensible to hold are refused in a sentence, before any probe
// stands.
func TestAuditTooMany(t *testing.T) {
	f := open(t, bpftest.Build(t, "calls"))
	c := auditHere(t, Config{})
	c.host.CPUs = make([]int, mostWitnesses/2)
	r := request(t, f, Entry, "work")
	err := c.Place(t.Context(), r, r, r)
	if err == nil || !strings.Contains(err.Error(), "room for 2 points, and 3 are asked for") {
		t.Errorf("it says %v", err)
	}
	for i := range c.probes {
		if c.probes[i].state != Failed {
			t.Errorf("a probe is %s", c.probes[i].state)
		}
	}
}

// Where the witness of one probe cannot be had, none of that Place counts, and nothing
// of it stays.
func TestAuditFailsHalfway(t *testing.T) {
	target := bpftest.Build(t, "calls")
	f := open(t, target)
	c := auditHere(t, Config{})
	cpus := c.host.CPUs
	place(t, c, request(t, f, Entry, "work"))
	c.host.CPUs = []int{0, 1 << 20} // of the second there is no event
	if err := c.Place(t.Context(), request(t, f, Entry, "work"), request(t, f, Return, "run")); err == nil {
		t.Fatal("it has a witness on a CPU that is not there")
	}
	c.host.CPUs = cpus
	made := truth(t, target, "1", "20")["calls"]
	s := finish(t, c)
	equal(t, "hits of the one before", s.Probes[0].Hits, made)
	for _, p := range s.Probes[1:] {
		if p.State != Failed || p.Note == "" || p.Hits != 0 {
			t.Errorf("%s is %s (%s) with %d hits", p.Function.Name, p.State, p.Note, p.Hits)
		}
	}
	agreesExactly(t, &Snapshot{Probes: s.Probes[:1]})
	equal(t, "witnesses", uint64(len(c.witnesses)), 1)
}

// The witness of a probe that is taken away goes with it.
func TestAuditOfARemovedProbe(t *testing.T) {
	f := open(t, bpftest.Build(t, "calls"))
	c := auditHere(t, Config{})
	place(t, c, request(t, f, Entry, "work"), request(t, f, Entry, "run"))
	w := c.probes[0].witness
	if err := c.Remove(0); err != nil {
		t.Fatal(err)
	}
	agreesExactly(t, finish(t, c))
	if _, err := w.events[0].Stat(); !errors.Is(err, os.ErrClosed) || len(c.witnesses) != 1 {
		t.Errorf("its file: %v; there are %d witnesses", err, len(c.witnesses))
	}
}
