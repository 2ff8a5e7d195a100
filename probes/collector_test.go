package probes

import (
	"context"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"uprobetop/bpf"
	"uprobetop/bpf/bpftest"
	"uprobetop/symbols"
)

// A ring that is far too small, and read by nobody for many flushes, delays
// numbers, says so, and falsifies none.
func TestFullRing(t *testing.T) {
	target := bpftest.Build(t, "calls")
	f := open(t, target)
	c := newCollectorHere(t, Config{RingBytes: os.Getpagesize()})
	rs := []Request{request(t, f, Return, "work"), request(t, f, Return, "run"), request(t, f, Return, "main")}
	for range 24 { // more records than a page holds
		rs = append(rs, request(t, f, Entry, "work"))
	}
	place(t, c, rs...)
	made := truth(t, target, "4", "5000")["calls"]
	const flushes = 50
	for range flushes {
		if _, err := c.objs.Flush(0, c.slots.used, time.Second); err != nil {
			t.Fatal(err)
		}
	}
	s := finish(t, c)
	if s.Lost.Cells < flushes {
		t.Errorf("%d flushes found the ring full, %d records are said to have been lost", flushes, s.Lost.Cells)
	}
	for i := range s.Probes {
		p := &s.Probes[i]
		if p.Function.Name == "work" {
			equal(t, "hits", p.Hits, made)
		}
		checkBooks(t, p)
	}
	equal(t, "returned", s.Probes[0].Returned, made)
}

// One function is timed once: the frames of two probes on it would be mistaken
// for each other.
func TestTimedTwice(t *testing.T) {
	target := bpftest.Build(t, "calls")
	f := open(t, target)
	c := newCollectorHere(t, Config{})
	r := request(t, f, Return, "work")
	place(t, c, r)
	if err := c.Place(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	made := truth(t, target, "2", "500")["calls"]
	s := finish(t, c)
	equal(t, "returned", s.Probes[0].Returned, made)
	if s.Probes[1].State != Refused {
		t.Errorf("the second one is %s", s.Probes[1].State)
	}
}

// The terms of the ledger are counted, not inferred: a pop that is lost shows.
func TestBooksCanFail(t *testing.T) {
	target := bpftest.Build(t, "calls")
	f := open(t, target)
	c := newCollectorHere(t, Config{})
	place(t, c, request(t, f, Return, "work"))
	truth(t, target, "2", "1000")
	checkBooks(t, &collect(t, c).Probes[0])
	var cell bpf.Cell
	slot := uint32(c.probes[0].slot) // on CPU 0
	if err := c.objs.Cells.Lookup(slot, &cell); err != nil {
		t.Fatal(err)
	}
	cell.Value[bpf.Popped]-- // as if the kernel side had not taken one frame off
	if err := c.objs.Cells.Put(slot, cell); err != nil {
		t.Fatal(err)
	}
	p := &collect(t, c).Probes[0]
	if p.InFlight != 1 || p.Balance() != -1 {
		t.Errorf("a pop is lost: %d in flight, the books are off by %d", p.InFlight, p.Balance())
	}
}

// Probes come and go while another one counts on, undisturbed and exact; slots
// are used again and their old numbers are gone.
func TestToggle(t *testing.T) {
	target := bpftest.Build(t, "calls")
	f := open(t, target)
	c := newCollectorHere(t, Config{MaxProbes: 3})
	place(t, c, request(t, f, Return, "work"))
	var made uint64
	var wg sync.WaitGroup
	wg.Go(func() { made = truth(t, target, "4", "20000")["calls"] })
	for i := range 20 {
		kind := Kind(i % 2)
		err := c.Place(context.Background(), request(t, f, kind, "run"))
		if err != nil { // both spare slots wait for their links to close
			c.closing.Wait()
			collect(t, c) // sends their last numbers
			collect(t, c) // frees them
			place(t, c, request(t, f, kind, "run"))
		}
		s := collect(t, c)
		p := &s.Probes[len(s.Probes)-1]
		if p.Hits > 4 {
			t.Errorf("probe %d of run starts with %d hits", p.ID, p.Hits)
		}
		if err := c.Remove(p.ID); err != nil {
			t.Fatal(err)
		}
		if collect(t, c).Find(p.ID) != nil {
			t.Error("a removed probe is still listed")
		}
	}
	wg.Wait()
	p := &finish(t, c).Probes[0]
	equal(t, "hits", p.Hits, made)
	equal(t, "returned", p.Returned, made)
	checkBooks(t, p)
}

func collect(t testing.TB, c *Collector) *Snapshot {
	t.Helper()
	s, err := c.Collect()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A slot that is used again, of a probe or of a histogram alone, starts from
// nothing and takes nothing from the row that had it before.
func TestSlotsAreReused(t *testing.T) {
	target := bpftest.Build(t, "calls")
	f := open(t, target)
	c := newCollectorHere(t, Config{MaxProbes: 4, MaxTimed: 1})
	var rows []ID
	for range 12 {
		place(t, c, request(t, f, Return, "work"))
		id := c.probes[len(c.probes)-1].ID
		made := truth(t, target, "2", "500")["calls"]
		if err := c.Stop(id); err != nil {
			t.Fatal(err)
		}
		c.closing.Wait()
		collect(t, c)
		s := collect(t, c)
		rows = append(rows, id)
		for _, old := range rows { // rows keep their numbers
			p := s.Find(old)
			equal(t, "hits", p.Hits, made)
			equal(t, "returned", p.Returned, made)
			checkBooks(t, p)
		}
	}
}

// A stopped probe keeps its numbers and counts no more.
func TestStop(t *testing.T) {
	target := bpftest.Build(t, "calls")
	f := open(t, target)
	c := newCollectorHere(t, Config{})
	place(t, c, request(t, f, Return, "work"))
	made := truth(t, target, "2", "1000")["calls"]
	if err := c.Stop(0); err != nil {
		t.Fatal(err)
	}
	truth(t, target, "2", "1000")
	p := &finish(t, c).Probes[0]
	equal(t, "hits", p.Hits, made)
	if p.State != Stopped {
		t.Errorf("the state is %s", p.State)
	}
	if err := c.Stop(7); err == nil {
		t.Error("there is no probe 7 to stop")
	}
}

// There is room for so many probes, and one too many is told.
func TestNoRoom(t *testing.T) {
	target := bpftest.Build(t, "calls")
	f := open(t, target)
	c := newCollectorHere(t, Config{MaxProbes: 2})
	place(t, c, request(t, f, Entry, "work"), request(t, f, Entry, "run"))
	err := c.Place(context.Background(), request(t, f, Entry, "main"))
	if err == nil || !strings.Contains(err.Error(), "room for 2 probes") {
		t.Errorf("the third of two probes: %v", err)
	}
}

// One point that the kernel refuses does not end the rest.
func TestBadPointAmongGood(t *testing.T) {
	target := bpftest.Build(t, "calls")
	f := open(t, target)
	c := newCollectorHere(t, Config{})
	bad := &symbols.Function{Symbol: symbols.Symbol{Name: "behind_the_end"}, Offset: 1 << 40}
	rs := []Request{request(t, f, Entry, "work"), request(t, f, Entry, "main"), request(t, f, Return, "run")}
	for _, r := range rs {
		if _, err := c.enlist(r); err != nil {
			t.Fatal(err)
		}
	}
	p := &probe{Probe: Probe{ID: c.nextID, File: f, Function: bad, Points: f.Points(bad)}, hist: -1}
	if err := c.reserve(p); err != nil {
		t.Fatal(err)
	}
	c.list(p)
	all := slices.Clone(c.probes)
	c.attachAll(context.Background(), f, all)
	c.begin([]*symbols.File{f}, map[*symbols.File][]*probe{f: all}, nil)
	s := collect(t, c)
	for i := range s.Probes {
		st := &s.Probes[i]
		want := Attached
		if st.Function == bad {
			want = Failed
		}
		if st.State != want {
			t.Errorf("%s is %s: %s", st.Function.Name, st.State, st.Note)
		}
	}
	made := truth(t, target, "2", "500")["calls"]
	equal(t, "hits of work", finish(t, c).Probes[0].Hits, made)
}

// A user who leaves while probes are being placed and taken away leaves nothing
// behind.
func TestCloseWhilePlacing(t *testing.T) {
	target := bpftest.Build(t, "calls")
	f := open(t, target)
	before := programs(t, os.Getpid())
	c := newCollectorHere(t, Config{})
	loaded := programs(t, os.Getpid())
	maps.DeleteFunc(loaded, func(id ebpf.ProgramID, _ bool) bool { return before[id] })
	if len(loaded) == 0 {
		t.Fatal("a collector holds no programs")
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5 {
				if c.Place(context.Background(), request(t, f, Entry, "work"), request(t, f, Entry, "run")) != nil {
					return
				}
			}
		})
	}
	collect(t, c)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if err := c.Place(context.Background(), request(t, f, Entry, "work")); err == nil {
		t.Error("a closed collector places a probe")
	}
	// The kernel frees programs some time after their last user.
	for deadline := time.Now().Add(30 * time.Second); len(remaining(t, loaded)) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("programs %v are left", remaining(t, loaded))
		}
	}
}

// Points that the kernel refuses neither cost the others hits nor shift the time
// in which they count: all begin together, when the last one is settled.
func TestAllBeginTogether(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("x86-64 only")
	}
	f := open(t, bpftest.Compile(t, "testdata/first.c"))
	calls := open(t, bpftest.Build(t, "calls"))
	c := newCollectorHere(t, Config{})
	place(t, c) // nothing
	if err := c.Place(context.Background(), request(t, calls, Return, "work"), request(t, f, Entry, "plain"),
		request(t, f, Entry, "ports"), request(t, f, Entry, "main"), request(t, calls, Entry, "run")); err != nil {
		t.Fatal(err)
	}
	s := collect(t, c)
	for i := range s.Probes {
		p := &s.Probes[i]
		if p.Function.Name == "ports" {
			continue
		}
		if p.State != Attached || p.Placed != 0 {
			t.Errorf("%s is %s, from %v on", p.Function.Name, p.State, p.Placed)
		}
	}
}

// What is asked for after the end switches nothing on again.
func TestReportAfterQuiet(t *testing.T) {
	target := bpftest.Build(t, "calls")
	f := open(t, target)
	c := newCollectorHere(t, Config{})
	place(t, c, request(t, f, Return, "work"))
	c.Quiet()
	if err := c.Report(0, 0); err != nil {
		t.Fatal(err)
	}
	truth(t, target, "1", "10")
	equal(t, "hits after the end", finish(t, c).Probes[0].Hits, 0)
}
