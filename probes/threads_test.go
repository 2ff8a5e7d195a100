package probes

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"uprobetop/bpf"
	"uprobetop/bpf/bpftest"
	"uprobetop/probes/hist"
)

// checkThreads holds the rows of a probe that was watched from its first hit on
// against all its other numbers.
func checkThreads(t testing.TB, p *Stats) {
	t.Helper()
	if p.Threads == nil {
		t.Fatalf("%s has no rows", p.Function.Name)
	}
	sum, processes := Total(p.Threads.Rows), Total(ByProcess(p.Threads.Rows))
	equal(t, "hits by process", processes.Hits, sum.Hits)
	equal(t, "threads of processes", uint64(processes.Threads), uint64(len(p.Threads.Rows)))
	sum.add(&p.Threads.Others)
	equal(t, "hits by thread", sum.Hits, p.Hits)
	equal(t, "returned by thread", sum.Returned, p.Returned)
	if p.Latency == nil {
		return
	}
	equal(t, "time by thread", sum.Sum, p.Latency.Sum)
	var coarse [hist.Buckets / hist.CoarseWidth]uint64
	for i, n := range p.Latency.Counts {
		coarse[i/hist.CoarseWidth] += n
	}
	for _, b := range sum.Latency {
		equal(t, fmt.Sprintf("calls in bucket %d", b.Index), b.Count, coarse[b.Index])
	}
	if p.Threads.Others.Hits == 0 {
		equal(t, "the longest call", sum.Max, p.Latency.Max)
	}
}

// Each thread's calls are its own, and together they are all: with few threads and
// with many, with room for all rows and not, in every store.
func TestKernelThreads(t *testing.T) { forStores(t, testThreads) }

func testThreads(t *testing.T, config Config) {
	target := bpftest.Build(t, "calls")
	f := open(t, target)
	config.Watch = true
	for _, tt := range []struct{ threads, room int }{{1, 0}, {64, 0}, {64, 8}, {1000, 0}} {
		config.Threads = tt.room
		for _, kind := range []Kind{Entry, Return} {
			if config.InFlight != TaskStore && (kind == Entry || tt.threads != 64) {
				continue // no store is used, or it makes no difference
			}
			t.Run(fmt.Sprintf("%s/%d/%d", kind, tt.threads, tt.room), func(t *testing.T) {
				c := newCollectorHere(t, config)
				place(t, c, request(t, f, kind, "work"))
				each := uint64(min(500, 32000/tt.threads))
				stop := collecting(t, c)
				made := truth(t, target, strconv.Itoa(tt.threads), strconv.FormatUint(each, 10))["calls"]
				stop()
				p := &finish(t, c).Probes[0]
				equal(t, "hits", p.Hits, made)
				checkThreads(t, p)
				rows := p.Threads.Rows
				if tt.room > 0 {
					equal(t, "rows", uint64(len(rows)), uint64(tt.room))
				} else {
					equal(t, "rows", uint64(len(rows)), uint64(tt.threads))
					equal(t, "hits of others", p.Threads.Others.Hits, 0)
				}
				for _, r := range rows {
					equal(t, "hits of a thread", r.Hits, each)
					if r.Comm != "calls" || r.PID != rows[0].PID || r.TID == 0 {
						t.Errorf("a row is of thread %d of process %d, %q", r.TID, r.PID, r.Comm)
					}
				}
			})
		}
	}
}

// Threads and processes that live for a few calls are rows as well, and stay; in a
// map that is far too small they are counted with the others.
func TestKernelShortLives(t *testing.T) {
	target := bpftest.Build(t, "shorts")
	f := open(t, target)
	for _, tt := range []struct {
		what string
		n    int
		room int
	}{{"threads", 2000, 0}, {"threads", 2000, 8}, {"processes", 500, 0}, {"processes", 500, 8}} {
		t.Run(fmt.Sprintf("%s/%d", tt.what, tt.room), func(t *testing.T) {
			c := newCollectorHere(t, Config{Watch: true, Threads: tt.room})
			place(t, c, request(t, f, Return, "work"), request(t, f, Entry, "run"))
			stop := collecting(t, c)
			made := truth(t, target, tt.what, strconv.Itoa(tt.n), "3")["calls"]
			stop()
			s := finish(t, c)
			equal(t, "hits", s.Probes[0].Hits, made)
			equal(t, "threads", s.Probes[1].Hits, uint64(tt.n))
			for i := range s.Probes {
				checkThreads(t, &s.Probes[i])
			}
			rows := s.Probes[0].Threads.Rows
			if tt.room > 0 {
				both := len(rows) + len(s.Probes[1].Threads.Rows)
				equal(t, "rows", uint64(both), uint64(tt.room))
				return
			}
			if tt.what == "processes" {
				rows = ByProcess(rows)
			}
			equal(t, "rows", uint64(len(rows)), uint64(tt.n)) // as many ids: none came again so soon
		})
	}
}

// A probe is watched while somebody wants it: what it counts then is in the rows,
// and they make room when they go, also while it is hit by many.
func TestKernelWatch(t *testing.T) {
	target := bpftest.Build(t, "calls")
	f := open(t, target)
	c := newCollectorHere(t, Config{Threads: 8})
	place(t, c, request(t, f, Return, "work"), request(t, f, Entry, "run"))
	watch := func(id ID, on bool) {
		t.Helper()
		if err := c.Watch(id, on); err != nil {
			t.Fatal(err)
		}
	}
	truth(t, target, "4", "100")
	if s := collect(t, c); s.Probes[0].Threads != nil {
		t.Errorf("nobody watches, and there are rows: %+v", s.Probes[0].Threads)
	}
	for range 3 {
		watch(0, true)
		watch(1, true)
		before := collect(t, c)
		made := truth(t, target, "4", "500")["calls"]
		s := collect(t, c)
		for i, want := range []uint64{made, 4} {
			equal(t, "hits by thread", Total(s.Probes[i].Threads.Rows).Hits, want)
			equal(t, "hits", s.Probes[i].Hits-before.Probes[i].Hits, want)
			equal(t, "rows", uint64(len(s.Probes[i].Threads.Rows)), 4)
			equal(t, "hits of others", s.Probes[i].Threads.Others.Hits, 0)
		}
		for i := range s.Probes {
			// All that was hit in this interval has a row, and in the next nothing is hit.
			if sum := Total(s.Probes[i].Threads.Rows); math.Abs(sum.Rate/s.Probes[i].Rate-1) > 1e-9 {
				t.Errorf("%v hits/s by thread, %v in all", sum.Rate, s.Probes[i].Rate)
			}
			if sum := Total(collect(t, c).Probes[i].Threads.Rows); sum.Rate != 0 {
				t.Errorf("%v hits/s of what is at rest", sum.Rate)
			}
		}
		made += truth(t, target, "64", "10")["calls"]
		equal(t, "hits of more threads than there are rows", all(collect(t, c).Probes[0].Threads), made)
		watch(1, false)
		done := make(chan struct{})
		go func() {
			defer close(done)
			truth(t, target, "64", "300")
		}()
		for i := range 21 {
			on := i%2 == 1
			watch(0, on)
			s := collect(t, c)
			if th := s.Probes[0].Threads; on && th == nil {
				t.Error("it is watched and there are no rows")
			}
		}
		<-done
		c.closing.Wait()
		if s := collect(t, c); s.Probes[0].Threads != nil || s.Probes[1].Threads != nil {
			t.Error("nobody watches any more, and there are rows")
		}
		equal(t, "entries that are left", entries(t, c), 0)
	}
	watch(0, true)
	if err := c.Watch(99, true); err == nil {
		t.Error("a probe that is not there can be watched")
	}
	if err := c.Remove(0); err != nil {
		t.Fatal(err)
	}
	c.closing.Wait()
	collect(t, c)
	equal(t, "entries of a probe that was taken away", entries(t, c), 0)
	equal(t, "probes with entries", uint64(c.entries), 0)
}

// A recording has the rows of the run.
func TestReplayThreads(t *testing.T) {
	target := bpftest.Build(t, "calls")
	f := open(t, target)
	path := filepath.Join(t.TempDir(), "run")
	rec, err := Record(path, "calls")
	if err != nil {
		t.Fatal(err)
	}
	c := newCollectorHere(t, Config{Tap: rec, Threads: 16})
	place(t, c, request(t, f, Return, "work"), request(t, f, Entry, "run"))
	live := []*Snapshot{collect(t, c)}
	for i := range 12 {
		id, on := ID(i%2), i%4 < 2
		if err := c.Watch(id, on); err != nil {
			t.Fatal(err)
		}
		truth(t, target, "12", "50")
		live = append(live, collect(t, c), collect(t, c))
	}
	if err := c.Stop(0); err != nil {
		t.Fatal(err)
	}
	live = append(live, collect(t, c), finish(t, c))
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := NewReplay(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rows := 0
	for _, want := range live {
		s, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		sameSnapshot(t, want, s)
		for i := range s.Probes {
			if th := s.Probes[i].Threads; th != nil {
				rows += len(th.Rows)
			}
		}
	}
	if rows == 0 {
		t.Error("no snapshot has rows")
	}
}

// all is what the rows and the others have together.
func all(th *Threads) uint64 { return Total(th.Rows).Hits + th.Others.Hits }

// entries is how many threads have one in the kernel.
func entries(t testing.TB, c *Collector) (n uint64) {
	var key bpf.ShareKey
	var s bpf.Share
	it := c.objs.Shares.Iterate()
	for it.Next(&key, &s) {
		n++
	}
	if err := it.Err(); err != nil {
		t.Fatal(err)
	}
	return n
}

// BenchmarkFlushThreads is one tick with 4,096 rows: all of them changed, or none.
func BenchmarkFlushThreads(b *testing.B) {
	c := newCollectorHere(b, Config{})
	if err := c.objs.Watch(cookieOf(0, 0)); err != nil {
		b.Fatal(err)
	}
	c.entries = 1
	keys, values := make([]bpf.ShareKey, bpf.DefaultThreads), make([]bpf.Share, bpf.DefaultThreads)
	heat := func() {
		for i := range keys {
			keys[i] = bpf.ShareKey{Cookie: cookieOf(0, 0), Tgid: 1, Tid: uint32(i + 1)}
			values[i].Hits++
			for k := range 20 {
				values[i].Count[40+k]++
			}
		}
		if _, err := c.objs.Shares.BatchUpdate(keys, values, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("changed", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			heat()
			b.StartTimer()
			if _, err := c.Collect(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("still", func(b *testing.B) {
		for b.Loop() {
			if _, err := c.Collect(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// collecting takes snapshots until it is told to stop: rows are read while they are
// made.
func collecting(t testing.TB, c *Collector) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error)
	go func() { ran <- c.Run(ctx, 5*time.Millisecond, nil) }()
	return func() {
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	}
}
