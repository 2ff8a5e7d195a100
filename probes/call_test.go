package probes

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"uprobetop/bpf/bpftest"
	"uprobetop/probes/hist"
)

// over counts the calls of a histogram from a bucket's lower bound on.
func over(t testing.TB, h *hist.Histogram, ns uint64) (n uint64) {
	t.Helper()
	first := hist.Index(ns)
	if low, _ := hist.Bounds(first); low != ns {
		t.Fatalf("%d is no bound of a bucket", ns)
	}
	for _, c := range h.Counts[first:] {
		n += c
	}
	return n
}

// Every call over the threshold is reported, with what is true of it; none below
// is.
func TestKernelSlowCalls(t *testing.T) {
	target := bpftest.Build(t, "slow")
	f := open(t, target)
	const slow = 1 << 21 // ns, about 2 ms
	c := newCollectorHere(t, Config{Slow: slow})
	place(t, c, request(t, f, Return, "step"), request(t, f, Return, "around"))
	slept := truth(t, target, "slow", "400", "20", "4000")["slept"]
	s := finish(t, c)
	step, around := &s.Probes[0], &s.Probes[1]
	equal(t, "hits of step", step.Hits, 800)
	equal(t, "hits of around", around.Hits, 400)
	checkBooks(t, step)
	equal(t, "lost", s.Lost.Calls, 0)
	equal(t, "held back", s.HeldBack, 0)

	sleeps, awake := uint64(0), uint64(0)
	inner := map[uint64]Call{} // by number, of those that slept
	reported := map[ID]uint64{}
	for _, call := range s.Calls {
		reported[call.Probe]++
		if call.Latency < slow {
			t.Errorf("a call of %v is reported", call.Latency)
		}
		if call.Thread == nil || call.PID == 0 || call.Comm != "slow" {
			t.Fatalf("the call is not known: %+v", call)
		}
		n := call.Args[0]
		if call.Probe == around.ID {
			in, found := inner[n]
			if found && (call.Callees < in.Latency || call.Callees > call.Latency) {
				t.Errorf("call %d: %v in callees, %v in the one that slept, %v in all", n, call.Callees, in.Latency, call.Latency)
			}
			continue
		}
		if call.Args[1] != 0x7a9 || call.Return != 3*n+1 {
			t.Errorf("call %d: arguments %x, result %d", n, call.Args, call.Return)
		}
		if call.Args[2] != 0 {
			sleeps++
			inner[n] = call
			if call.Thread.Voluntary == 0 {
				awake++
			}
			if call.Thread.OnCPU+call.Thread.Waiting > call.Latency {
				t.Errorf("call %d took %v: %+v", n, call.Latency, call.Thread)
			}
		}
	}
	equal(t, "calls that slept", sleeps, slept)
	// On a CPU that is emulated, and late itself, the time can be over before the thread
	// gives way.
	if awake > 0 && (!bpftest.Emulated() || 4*awake > sleeps) {
		t.Errorf("%d of %d calls slept without a switch", awake, sleeps)
	}
	equal(t, "reported calls of step", reported[step.ID], over(t, step.Latency, slow))
	equal(t, "reported calls of around", reported[around.ID], over(t, around.Latency, slow))
}

// What the rate limit holds back, and what does not fit, is counted: with what
// was reported it is every call. A reader that stands still changes no total.
func TestKernelCallsOfAStoppedReader(t *testing.T) {
	target := bpftest.Build(t, "calls")
	f := open(t, target)
	c := newCollectorHere(t, Config{RingBytes: 4096, Slow: 1})
	all := []Request{request(t, f, Return, "work"), request(t, f, Return, "run"), request(t, f, Return, "main")}
	for range 25 { // with these the cells of one CPU alone do not fit
		all = append(all, request(t, f, Entry, "main"))
	}
	place(t, c, all...)
	if _, err := c.Collect(); err != nil {
		t.Fatal(err)
	}
	made := uint64(0)
	for start := time.Now(); ; {
		made += truth(t, target, "64", "600")["calls"]
		if os.Getenv("UPROBETOP_LONG") != "1" || time.Since(start) > 3*time.Second {
			break
		}
	}
	reported := uint64(0)
	s := finish(t, c)
	for _, call := range s.Calls {
		if call.Probe == s.Probes[0].ID {
			reported++
		}
	}
	p := &s.Probes[0]
	equal(t, "hits", p.Hits, made)
	equal(t, "returned", p.Returned, made)
	equal(t, "calls in the histogram", p.Latency.Count(), made)
	equal(t, "reported, held back and lost", reported+p.HeldBack+p.CallsLost, made)
	var lost, busy, onCPUs, busyOnCPUs uint64
	for i := range s.Probes {
		lost, busy = lost+s.Probes[i].CallsLost, busy+s.Probes[i].CallsBusy
	}
	for _, on := range s.Lost.ByCPU {
		onCPUs, busyOnCPUs = onCPUs+on.Full+on.Busy, busyOnCPUs+on.Busy
	}
	equal(t, "lost", s.Lost.Calls, lost)
	equal(t, "lost by busy rings", s.Lost.Busy, busy)
	equal(t, "lost over the CPUs", onCPUs, lost)
	equal(t, "lost by busy rings over the CPUs", busyOnCPUs, busy)
	const fit = uint64(4096 / (callBytes + 8))
	if made < 10*fit || reported > 2*fit {
		t.Errorf("%d calls for a ring of %d, %d reported: it was not full", made, fit, reported)
	}
	if reported == 0 || p.HeldBack == 0 || p.CallsLost == 0 || s.Lost.Cells == 0 {
		t.Errorf("%d reported, %d held back, %d lost, %d cells delayed: each should have been", reported, p.HeldBack, p.CallsLost, s.Lost.Cells)
	}
	for i := range s.Probes {
		checkBooks(t, &s.Probes[i])
	}
}

// Reports can be asked for and ended while a probe stands.
func TestKernelReport(t *testing.T) {
	target := bpftest.Build(t, "slow")
	f := open(t, target)
	c := newCollectorHere(t, Config{})
	place(t, c, request(t, f, Return, "step"))
	for i, want := range []struct {
		slower time.Duration
		calls  int
	}{{NoCalls, 0}, {0, 40}, {time.Hour, 0}, {0, 40}, {NoCalls, 0}} {
		if err := c.Report(c.probes[0].ID, want.slower); err != nil {
			t.Fatal(err)
		}
		truth(t, target, "slow", "20", "0")
		s, err := c.Collect()
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Calls) != want.calls {
			t.Errorf("%d: %d calls over %v, want %d", i, len(s.Calls), want.slower, want.calls)
		}
	}
	if err := c.Report(99, 0); err == nil {
		t.Error("a probe that is not there can be reported")
	}
}

// startThreads starts threads that wait, and returns their ids and what lets them
// go on to their end.
func startThreads(t *testing.T, cmd *exec.Cmd, n int) (tids []int, goOn func()) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for len(tids) < n && lines.Scan() {
		tid, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		tids = append(tids, tid)
	}
	return tids, func() {
		if _, err := io.WriteString(in, "\n"); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// What was held back stays counted when its probe is taken away.
func TestKernelHeldBackStays(t *testing.T) {
	target := bpftest.Build(t, "calls")
	f := open(t, target)
	c := newCollectorHere(t, Config{Slow: 1})
	place(t, c, request(t, f, Return, "work"), request(t, f, Return, "main"))
	truth(t, target, "4", "5000")
	s := collect(t, c)
	held := s.HeldBack
	if held == 0 || held != s.Probes[0].HeldBack {
		t.Fatalf("%d held back, %d of the one probe", held, s.Probes[0].HeldBack)
	}
	if err := c.Remove(s.Probes[0].ID); err != nil {
		t.Fatal(err)
	}
	for range 4 { // until the probe is forgotten
		if s = collect(t, c); s.HeldBack != held {
			t.Errorf("%d held back, were %d", s.HeldBack, held)
		}
	}
}
