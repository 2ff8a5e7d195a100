package probes

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"uprobetop/bpf"
	"uprobetop/bpf/bpftest"
)

// until collects until a snapshot is as it has to become.
func until(t testing.TB, c *Collector, what string, ok func(s *Snapshot) bool) *Snapshot {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if s := collect(t, c); ok(s) {
			return s
		}
	}
	t.Fatalf("it never came to this: %s", what)
	return nil
}

func insiders(s *Snapshot) uint64 {
	if s.Inside == nil {
		return 0
	}
	return s.Inside.Total
}

// hangs is a target that has said its threads' ids and hangs.
type hanging struct {
	cmd  *exec.Cmd
	in   io.Writer
	out  io.Reader
	tids []int
}

func hang(t testing.TB, target string, n int, args ...string) *hanging {
	t.Helper()
	h := &hanging{cmd: exec.Command(target, args...)}
	in, err := h.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = h.cmd.Process.Kill()
		_ = h.cmd.Wait()
	})
	h.in, h.out = in, out
	for range n {
		tid, err := strconv.Atoi(h.said(t))
		if err != nil {
			t.Fatal(err)
		}
		h.tids = append(h.tids, tid)
	}
	slices.Sort(h.tids)
	return h
}

// said is the next line of the target, read no further.
func (h *hanging) said(t testing.TB) string {
	t.Helper()
	var line []byte
	for b := []byte{0}; ; line = append(line, b[0]) {
		if _, err := io.ReadFull(h.out, b); err != nil {
			t.Fatalf("the target says no more: %v", err)
		}
		if b[0] == '\n' {
			return string(line)
		}
	}
}

func (h *hanging) goOn(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(h.in, "\n"); err != nil {
		t.Fatal(err)
	}
}

// A call that hangs is listed with its thread and its age, and once it has
// returned it is in the histogram instead.
func TestKernelInside(t *testing.T) {
	target := bpftest.Build(t, "hang")
	f := open(t, target)
	c := newCollectorHere(t, Config{Slow: time.Hour})
	place(t, c, request(t, f, Return, "hang"), request(t, f, Return, "outer"))
	if s := collect(t, c); s.Inside != nil {
		t.Errorf("somebody is inside already: %+v", s.Inside)
	}
	before := monotonic()
	h := hang(t, target, 1, "threads", "1")
	until(t, c, "a call hangs", func(s *Snapshot) bool { return s.Probes[0].InFlight == 1 })
	begun := monotonic()
	var looked, seen uint64
	s := until(t, c, "it is listed", func(s *Snapshot) bool {
		ok := insiders(s) == 1 && s.Inside.Calls[0].Latency >= time.Millisecond && looked != 0
		if seen = monotonic(); !ok {
			looked = seen // no later than the next enumeration
		}
		return ok
	})
	if len(s.Inside.Calls) != 1 {
		t.Fatalf("%+v", s.Inside)
	}
	call, p := s.Inside.Calls[0], &s.Probes[0]
	if call.Probe != p.ID || call.PID != h.cmd.Process.Pid || call.TID != h.tids[0] || call.Comm != "hang" {
		t.Errorf("probe %d, process %d, thread %d of %q: want %d, %d, %d of hang",
			call.Probe, call.PID, call.TID, call.Comm, p.ID, h.cmd.Process.Pid, h.tids[0])
	}
	if call.Start < before || call.Start > begun {
		t.Errorf("it began at %d, between %d and %d", call.Start, before, begun)
	}
	age := uint64(call.Latency)
	if least := looked - begun; age > seen-before || looked > begun && age < least && s.Inside.At.Equal(s.At) {
		t.Errorf("its age is %d, at least %d and at most %d", age, least, seen-before)
	}
	if p.Oldest != call.Latency || !p.Hangs() || s.Probes[1].Oldest != 0 {
		t.Errorf("the oldest is %v, of the other probe %v", p.Oldest, s.Probes[1].Oldest)
	}
	if call.Thread == nil || call.Thread.Voluntary == 0 || call.Thread.OnCPU+call.Thread.Waiting > call.Latency {
		t.Errorf("of its thread is known %+v", call.Thread)
	}
	h.goOn(t)
	if line := h.said(t); line != "done" {
		t.Fatal(line)
	}
	s = collect(t, c)
	if p := &s.Probes[0]; s.Inside != nil || p.Oldest != 0 || p.Hangs() || p.Returned != 1 || p.Latency.Max < age {
		t.Errorf("it has returned: %+v inside, the oldest %v, %d returned, the longest %d, was %d",
			s.Inside, p.Oldest, p.Returned, p.Latency.Max, age)
	}
}

// However many hang, all are counted, and listed up to a bound.
func TestKernelManyInside(t *testing.T) {
	target := bpftest.Build(t, "hang")
	f := open(t, target)
	c := newCollectorHere(t, Config{})
	place(t, c, request(t, f, Return, "hang"), request(t, f, Return, "run"))
	const n = 200
	h := hang(t, target, n, "threads", strconv.Itoa(n))
	s := until(t, c, "all are inside", func(s *Snapshot) bool { return insiders(s) == 2*n })
	for i := range s.Probes {
		p := &s.Probes[i]
		var tids []int
		calls := s.Inside.Of(p.ID)
		for _, call := range calls {
			tids = append(tids, call.TID)
		}
		if !slices.IsSortedFunc(calls, func(a, b Call) int { return int(int64(a.Start - b.Start)) }) {
			t.Error("they are not in order")
		}
		slices.Sort(tids)
		if !slices.Equal(tids, h.tids) {
			t.Errorf("%d of %d threads are listed inside %s", len(tids), n, p.Function.Name)
		}
		if p.Oldest != calls[0].Latency || calls[0].Thread != nil {
			t.Errorf("%s: the oldest is %v and %+v", p.Function.Name, p.Oldest, calls[0])
		}
	}
	h.goOn(t)
	h.said(t)
	s = finish(t, c)
	equal(t, "inside at the end", insiders(s), 0)
	for i := range s.Probes {
		equal(t, "returned", s.Probes[i].Returned, n)
		checkBooks(t, &s.Probes[i])
	}
}

// Each call of a thread is listed, also in the last snapshot and in a recording;
// a killed one is in none.
func TestKernelNestedInside(t *testing.T) {
	target := bpftest.Build(t, "hang")
	f := open(t, target)
	var kept bytes.Buffer
	rec, err := newRecorder(&kept, "hang")
	if err != nil {
		t.Fatal(err)
	}
	c := newCollectorHere(t, Config{Tap: rec})
	place(t, c, request(t, f, Return, "outer"), request(t, f, Return, "inner"), request(t, f, Return, "hang"))
	killed := hang(t, target, 1, "nested")
	live := []*Snapshot{until(t, c, "it hangs", func(s *Snapshot) bool { return insiders(s) == 3 })}
	if err := killed.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.cmd.Wait()
	live = append(live, collect(t, c))
	if s := live[1]; s.Inside != nil || s.Probes[0].Unwound.Exit != 1 {
		t.Errorf("it is killed: %+v, %+v", s.Inside, s.Probes[0].Unwound)
	}
	h := hang(t, target, 1, "nested")
	until(t, c, "it hangs again", func(s *Snapshot) bool { return s.Probes[2].InFlight == 1 })
	live = append(live, finish(t, c))
	s := live[2]
	if insiders(s) != 3 || len(s.Inside.Calls) != 3 {
		t.Fatalf("in the end are inside %+v", s.Inside)
	}
	for i, call := range s.Inside.Calls {
		if call.Probe != s.Probes[i].ID || call.TID != h.tids[0] || s.Probes[i].Oldest != call.Latency {
			t.Errorf("number %d: %+v, the oldest %v", i, call, s.Probes[i].Oldest)
		}
	}
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := NewReplay(bytes.NewReader(kept.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	for _, was := range live {
		is, err := again.Next()
		for ; err == nil && is.Seq < was.Seq; is, err = again.Next() {
		}
		if err != nil {
			t.Fatal(err)
		}
		sameSnapshot(t, was, is)
	}
}

// A call that its thread has jumped out of does not hang, even while nobody has
// noticed, if the thread sleeps above it.
func TestKernelLeftInside(t *testing.T) {
	target := bpftest.Build(t, "hang")
	f := open(t, target)
	c := newCollectorHere(t, Config{})
	place(t, c, request(t, f, Return, "outer"), request(t, f, Return, "inner"))
	hang(t, target, 1, "jump")
	s := until(t, c, "the thread sleeps", func(s *Snapshot) bool { return s.Inside != nil && insiders(s) == 0 })
	for i := range s.Probes {
		if p := &s.Probes[i]; p.InFlight != 1 || p.Oldest != 0 {
			t.Errorf("%s: %d in flight, the oldest %v", p.Function.Name, p.InFlight, p.Oldest)
		}
	}
}

// A call is listed as it is, also where it begins or ends while it is read: its
// start is no other's, nor are its arguments.
func TestKernelInsideIsWhole(t *testing.T) {
	target := bpftest.Build(t, "hang")
	f := open(t, target)
	c := newCollectorHere(t, Config{Slow: time.Hour})
	place(t, c, request(t, f, Return, "even"), request(t, f, Return, "odd"))
	h := hang(t, target, 0, "race", "3")
	seen, known, enough := 0, 0, 1000
	if os.Getenv("UPROBETOP_LONG") == "1" {
		enough *= 60
	}
	for end := time.Now().Add(time.Minute); seen < enough && time.Now().Before(end); {
		c.tick.Lock()
		if err := c.enumerate(); err != nil {
			t.Fatal(err)
		}
		for cookie, calls := range c.decoder.inside.of {
			for _, call := range calls {
				seen++
				if call.Known&bpf.KnownEntry == 0 {
					continue
				}
				known++
				if at := call.Args[0]; at > call.Start || uint64(idOf(cookie)-c.probes[0].ID) != at&1 {
					t.Errorf("probe %d, called at %d, began at %d", idOf(cookie), at, call.Start)
				}
			}
		}
		c.tick.Unlock()
	}
	if h.goOn(t); known == 0 {
		t.Errorf("%d calls were seen, of %d the beginning", seen, known)
	}
	t.Logf("%d calls were seen, of %d the beginning", seen, known)
}

// What a thread does is told while it is there.
func TestDoing(t *testing.T) {
	target := bpftest.Build(t, "hang")
	h := hang(t, target, 1, "threads", "1")
	for end := time.Now().Add(time.Minute); !strings.HasPrefix(Doing(h.cmd.Process.Pid, h.tids[0]), "S"); {
		if time.Now().After(end) {
			t.Fatalf("it does %q", Doing(h.cmd.Process.Pid, h.tids[0]))
		}
	}
	if got := Doing(1<<30, 1); got != "" {
		t.Errorf("nobody does %q", got)
	}
}

// What a function takes itself and what it calls add up to what it takes.
func TestKernelSelf(t *testing.T) {
	target := bpftest.Build(t, "hang")
	f := open(t, target)
	c := newCollectorHere(t, Config{})
	place(t, c, request(t, f, Return, "outer"), request(t, f, Return, "inner"), request(t, f, Return, "recurse"))
	truth(t, target, "self", "300")
	truth(t, target, "recurse", "40")
	s := finish(t, c)
	outer, inner, recurse := &s.Probes[0], &s.Probes[1], &s.Probes[2]
	equal(t, "returned", outer.Returned, 300)
	equal(t, "outer's own and inner's", uint64(outer.Self())+inner.Latency.Sum, outer.Latency.Sum)
	if own := uint64(outer.Self()); own < 300*10_000 || inner.Callees != 0 || outer.Callees < 600*20*time.Microsecond {
		t.Errorf("outer took %d itself, inner %v in others, outer %v", own, inner.Callees, outer.Callees)
	}
	// The outermost call of a recursion is its longest.
	equal(t, "what all of a recursion take themselves", uint64(recurse.Self()), recurse.Latency.Max)
}

// Of very many the oldest are kept, and the oldest of each probe is known.
func TestEnumerationIsBounded(t *testing.T) {
	var e enumeration
	const n = 10_000
	for i := range n {
		start := uint64(1 + (i*7919)%n) // every number once
		e.add(&bpf.Call{Cookie: 1, Start: start})
	}
	e.add(&bpf.Call{Cookie: 2, Start: n})
	if e.total != n+1 || e.kept > 2*keepInside+1 {
		t.Errorf("%d in all, %d kept", e.total, e.kept)
	}
	for i, c := range oldest(e.of[1]) {
		equal(t, "start", c.Start, uint64(i+1))
	}
	if len(oldest(e.of[1])) != keepInside || len(e.of[2]) != 1 {
		t.Errorf("%d and %d are listed", len(oldest(e.of[1])), len(e.of[2]))
	}
}

// What was in flight when counting ended is as old as it was then.
func TestKernelInsideAtTheEnd(t *testing.T) {
	target := bpftest.Build(t, "hang")
	f := open(t, target)
	c := newCollectorHere(t, Config{})
	place(t, c, request(t, f, Return, "hang"))
	hang(t, target, 1, "threads", "1")
	until(t, c, "it hangs", func(s *Snapshot) bool { return s.Probes[0].InFlight == 1 })
	c.Halt()
	stopped := monotonic()
	finish(t, c)
	s := finish(t, c) // later
	if insiders(s) != 1 || s.Inside.Calls[0].Start+uint64(s.Inside.Calls[0].Latency) > stopped {
		t.Errorf("counting ended at %d, inside are %+v", stopped, s.Inside)
	}
}

// While the last numbers wait for a Place that is under way hits count: a call that
// begins then has its age in the end, although a probe was taken away meanwhile.
func TestInsideOfTheLastMoment(t *testing.T) {
	target := bpftest.Build(t, "hang")
	f := open(t, target)
	c := newCollectorHere(t, Config{})
	place(t, c, request(t, f, Return, "hang"))
	place(t, c, request(t, f, Entry, "outer"))
	c.placing.Add(1) // as Place does
	quiet := make(chan struct{})
	go func() {
		defer close(quiet)
		c.Quiet()
	}()
	until(t, c, "it is asked to be quiet", func(*Snapshot) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.final
	})
	if err := c.Stop(1); err != nil {
		t.Fatal(err)
	}
	c.closing.Wait()
	began := monotonic()
	hang(t, target, 1, "threads", "1")
	s := until(t, c, "a call hangs", func(s *Snapshot) bool { return s.Probes[0].InFlight == 1 })
	if s.Final {
		t.Error("a snapshot is the last one, and hits count")
	}
	c.placing.Done()
	<-quiet
	s = finish(t, c)
	if insiders(s) != 1 || s.Inside.Calls[0].Latency <= 0 {
		t.Fatalf("inside are %+v", s.Inside)
	}
	if call := s.Inside.Calls[0]; call.Start < began || call.Start+uint64(call.Latency) != c.stopped {
		t.Errorf("it began at %d and is %d old, counting ended at %d", call.Start, call.Latency, c.stopped)
	}
	if !s.Final {
		t.Error("the last snapshot is none")
	}
}
