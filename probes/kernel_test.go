package probes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"uprobetop/bpf"
	"uprobetop/bpf/bpftest"
	"uprobetop/symbols"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == HeldArg {
		os.Exit(RunHeld(os.Args[2:]))
	}
	os.Exit(bpftest.Main(m))
}

// newCollectorHere is New for a test.
func newCollectorHere(t testing.TB, config Config) *Collector {
	t.Helper()
	c, err := New(config)
	bpftest.Require(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func open(t testing.TB, path string) *symbols.File {
	t.Helper()
	f, err := symbols.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func request(t testing.TB, f *symbols.File, kind Kind, name string) Request {
	t.Helper()
	found := f.Lookup(name)
	if len(found) != 1 {
		t.Fatalf("%s: %d functions are called %s", f.Path, len(found), name)
	}
	return Request{Kind: kind, File: f, Function: found[0]}
}

func place(t testing.TB, c *Collector, rs ...Request) {
	t.Helper()
	before := len(c.probes)
	if err := c.Place(context.Background(), rs...); err != nil {
		t.Fatal(err)
	}
	for _, p := range c.probes[before:] {
		if p.state != Attached {
			t.Fatalf("%s is %s: %s", p.Function.Name, p.state, p.note)
		}
	}
}

// truth runs a target and returns what it says of itself.
func truth(t testing.TB, path string, args ...string) map[string]uint64 {
	t.Helper()
	out, err := exec.Command(path, args...).Output()
	if err != nil {
		t.Fatalf("%s %v: %v", path, args, err)
	}
	return parseTruth(t, string(out))
}

func parseTruth(t testing.TB, out string) map[string]uint64 {
	t.Helper()
	said := map[string]uint64{}
	for line := range strings.Lines(out) {
		var name string
		var n uint64
		if _, err := fmt.Sscan(line, &name, &n); err != nil {
			if n, err = strconv.ParseUint(strings.TrimSpace(line), 10, 64); err != nil {
				t.Fatalf("the target says %q", line)
			}
			name = "calls"
		}
		said[name] = n
	}
	return said
}

func finish(t testing.TB, c *Collector) *Snapshot {
	t.Helper()
	s, err := c.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// checkBooks holds a probe's ledger against itself.
func checkBooks(t testing.TB, p *Stats) {
	t.Helper()
	var perCPU uint64
	for _, c := range p.PerCPU {
		perCPU += c.Hits
	}
	if perCPU != p.Hits {
		t.Errorf("%s: %d hits, %d over the CPUs", p.Function.Name, p.Hits, perCPU)
	}
	if p.Latency == nil {
		return
	}
	if n := p.Latency.Count(); n != p.Returned {
		t.Errorf("%s: %d returned, %d in the histogram", p.Function.Name, p.Returned, n)
	}
	if b := p.Balance(); b != 0 {
		t.Errorf("%s: the books are off by %d: %d hits, %d returned, %d in flight or not returned, unwound %+v, missed %+v",
			p.Function.Name, b, p.Hits, p.Returned, p.Pending(), p.Unwound, p.Missed)
	}
}

func equal(t testing.TB, what string, got, want uint64) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %d, want %d", what, got, want)
	}
}

// forStores runs a test with each in-flight store that this kernel has. With a hash
// all but the way to a thread's stack is as with task storage: that takes its time
// only in long tests, and on other kernels.
func forStores(t *testing.T, test func(t *testing.T, config Config)) {
	for _, store := range []Store{TaskStore, HashStore, SessionStore} {
		t.Run(string(store), func(t *testing.T) {
			if store == HashStore && !bpftest.Emulated() {
				bpftest.Long(t)
			}
			if store == SessionStore && errors.Is(bpf.HaveSession(), ebpf.ErrNotSupported) {
				t.Skip("this kernel has no session cookies")
			}
			test(t, Config{InFlight: store})
		})
	}
}

// emptyStore holds that nobody who has ended is in the hash any more.
func emptyStore(t testing.TB, c *Collector) {
	t.Helper()
	if c.objs.Stacks == nil {
		return
	}
	var tid uint32
	var left int
	stack := make([]byte, c.objs.Stacks.ValueSize())
	for all := c.objs.Stacks.Iterate(); all.Next(&tid, &stack); {
		left++
	}
	equal(t, "stacks of threads that have ended", uint64(left), 0)
}

// lost holds that calls which never return are so many: unwound by this cause, or,
// where the store cannot tell, not returned.
func lost(t testing.TB, p *Stats, cause uint64, want uint64) {
	t.Helper()
	if p.NoFrames {
		equal(t, p.Function.Name+" unreturned", uint64(p.Unreturned), want)
		return
	}
	equal(t, p.Function.Name+" unwound by this cause", cause, want)
	equal(t, p.Function.Name+" unwound", p.Unwound.Total(), want)
	equal(t, p.Function.Name+" in flight", uint64(p.InFlight), 0)
}

// Calls are counted exactly: by one and by many threads, entry only and timed,
// single-stepped, emulated and optimised, by every way of attaching.
func TestKernelExact(t *testing.T) {
	target := bpftest.Build(t, "calls")
	f := open(t, target)
	for _, kind := range []Kind{Entry, Return} {
		for _, fn := range []string{"work", "work5"} {
			for _, threads := range []int{1, 64} {
				t.Run(fmt.Sprintf("%s/%s/%d", kind, fn, threads), func(t *testing.T) {
					if kind == Entry || threads < 64 { // the others are held against the most threads
						exact(t, newCollectorHere(t, Config{}), request(t, f, kind, fn), threads)
						return
					}
					forStores(t, func(t *testing.T, config Config) {
						exact(t, newCollectorHere(t, config), request(t, f, kind, fn), threads)
					})
				})
			}
			t.Run(fmt.Sprintf("%s/%s/perf", kind, fn), func(t *testing.T) {
				exact(t, newCollectorHere(t, Config{Attach: PerfEvent}), request(t, f, kind, fn), 64)
			})
		}
	}
}

// hitsHere is how many hits show in emulation what so many show else.
func hitsHere(hits int) int {
	if bpftest.Emulated() {
		return hits / 8
	}
	return hits
}

func exact(t *testing.T, c *Collector, r Request, threads int) {
	total := hitsHere(64000)
	place(t, c, r)
	args := []string{strconv.Itoa(threads), strconv.Itoa(total / threads)}
	if r.Function.Name == "work5" {
		args = append(args, "nop5")
	}
	made := truth(t, r.File.Path, args...)["calls"]
	p := &finish(t, c).Probes[0]
	equal(t, "hits", p.Hits, made)
	if r.Kind == Return {
		equal(t, "returned", p.Returned, made)
		equal(t, "missed", p.Missed.Total(), 0)
		equal(t, "orphans", p.Orphans, 0)
		lost(t, p, 0, 0)
	}
	checkBooks(t, p)
	emptyStore(t, c)
}

// Two collectors on one function do not disturb each other.
func TestKernelTwoCollectors(t *testing.T) {
	target := bpftest.Build(t, "calls")
	f := open(t, target)
	forStores(t, func(t *testing.T, config Config) {
		a, b := newCollectorHere(t, config), newCollectorHere(t, config)
		place(t, a, request(t, f, Return, "work"))
		place(t, b, request(t, f, Entry, "work"), request(t, f, Return, "run"))
		made := truth(t, target, "8", strconv.Itoa(hitsHere(4000)))["calls"]
		for _, c := range []*Collector{a, b} {
			s := finish(t, c)
			equal(t, "hits", s.Probes[0].Hits, made)
			for i := range s.Probes {
				checkBooks(t, &s.Probes[i])
			}
		}
	})
}

// The kernel keeps 64 pending returns a thread; the rest is counted as missed,
// and is not mistaken for anything else.
func TestKernelRecursion(t *testing.T) {
	target := bpftest.Build(t, "scenes")
	f := open(t, target)
	forStores(t, func(t *testing.T, config Config) {
		c := newCollectorHere(t, config)
		place(t, c, request(t, f, Return, "recurse"))
		times := uint64(hitsHere(24))
		var made, kept uint64
		for _, depth := range []uint64{1, 63, 64, 65, 5000} {
			made += truth(t, target, "recurse", strconv.FormatUint(depth, 10), strconv.FormatUint(times, 10))["recurse"]
			kept += times * min(depth, 64)
			p := &collect(t, c).Probes[0]
			equal(t, "hits", p.Hits, made)
			equal(t, "returned", p.Returned, kept)
			equal(t, "missed.depth", p.Missed.Depth, made-kept)
			lost(t, p, 0, 0)
			checkBooks(t, p)
		}
	})
}

// The 64 pending returns of a thread are those of all tracers together: a
// collector knows what another one leaves it.
func TestKernelSharedDepth(t *testing.T) {
	target := bpftest.Build(t, "scenes")
	f := open(t, target)
	forStores(t, func(t *testing.T, config Config) {
		a, b := newCollectorHere(t, config), newCollectorHere(t, config)
		place(t, a, request(t, f, Return, "main"))
		place(t, b, request(t, f, Return, "recurse"))
		const times, depth = 20, 100
		truth(t, target, "recurse", strconv.Itoa(depth), strconv.Itoa(times))
		p := &finish(t, b).Probes[0]
		equal(t, "hits", p.Hits, times*depth)
		equal(t, "returned", p.Returned, times*63) // one is main's
		equal(t, "missed.depth", p.Missed.Depth, times*(depth-63))
		checkBooks(t, p)
		checkBooks(t, &finish(t, a).Probes[0])
	})
}

// Calls that longjmp leaves behind are unwound, and later ones are right.
func TestKernelJump(t *testing.T) {
	target := bpftest.Build(t, "scenes")
	f := open(t, target)
	forStores(t, func(t *testing.T, config Config) {
		c := newCollectorHere(t, config)
		place(t, c, request(t, f, Return, "outer"), request(t, f, Return, "inner"))
		said := truth(t, target, "jump", "3000")
		s := finish(t, c)
		outer, inner := &s.Probes[0], &s.Probes[1]
		equal(t, "outer hits", outer.Hits, said["outer"])
		equal(t, "inner hits", inner.Hits, said["inner"])
		equal(t, "outer returned", outer.Returned, said["outer"]-said["jumped"])
		equal(t, "inner returned", inner.Returned, said["inner"]-said["jumped"])
		// The last jump may only have been noticed when the thread ended.
		for _, p := range []*Stats{outer, inner} {
			lost(t, p, p.Unwound.Jump+p.Unwound.Exit, said["jumped"])
			if p.Unwound.Exit > 1 || p.Unwound.Exec != 0 {
				t.Errorf("%s: unwound %+v", p.Function.Name, p.Unwound)
			}
			equal(t, p.Function.Name+" orphans", p.Orphans, 0)
			checkBooks(t, p)
		}
	})
}

// A thread, and a program, that ends in the middle of a call ends the call.
func TestKernelExit(t *testing.T) {
	target := bpftest.Build(t, "scenes")
	f := open(t, target)
	forStores(t, func(t *testing.T, config Config) {
		c := newCollectorHere(t, config)
		place(t, c, request(t, f, Return, "leaves"), request(t, f, Return, "becomes"), request(t, f, Return, "first"))
		equal(t, "leaves", truth(t, target, "exit", "200")["leaves"], 200)
		equal(t, "first", truth(t, target, "exec", "300")["first"], 300)
		s := finish(t, c)
		leaves, becomes, first := &s.Probes[0], &s.Probes[1], &s.Probes[2]
		equal(t, "leaves hits", leaves.Hits, 200)
		equal(t, "leaves returned", leaves.Returned, 100)
		lost(t, leaves, leaves.Unwound.Exit, 100)
		equal(t, "becomes hits", becomes.Hits, 1)
		lost(t, becomes, becomes.Unwound.Exec, 1)
		equal(t, "first after exec", first.Returned, 300)
		for i := range s.Probes {
			checkBooks(t, &s.Probes[i])
		}
	})
}

// A child that was forked in the middle of a call returns from it as well: an
// orphan, and no return of the parent's.
func TestKernelFork(t *testing.T) {
	target := bpftest.Build(t, "scenes")
	f := open(t, target)
	forStores(t, func(t *testing.T, config Config) {
		c := newCollectorHere(t, config)
		place(t, c, request(t, f, Return, "forks"))
		equal(t, "forks", truth(t, target, "fork", "50")["forks"], 50)
		p := &finish(t, c).Probes[0]
		equal(t, "hits", p.Hits, 50)
		equal(t, "returned", p.Returned, 50)
		equal(t, "orphans", p.Orphans, 50)
		checkBooks(t, p)
	})
}

// A function that another one ends by jumping to it has a call of its own.
func TestKernelTailCall(t *testing.T) {
	target := bpftest.Build(t, "scenes")
	f := open(t, target)
	forStores(t, func(t *testing.T, config Config) {
		c := newCollectorHere(t, config)
		place(t, c, request(t, f, Return, "first"), request(t, f, Return, "second"))
		truth(t, target, "tail", "5000")
		s := finish(t, c)
		for i := range s.Probes {
			p := &s.Probes[i]
			equal(t, p.Function.Name+" hits", p.Hits, 5000)
			equal(t, p.Function.Name+" returned", p.Returned, 5000)
			checkBooks(t, p)
		}
	})
}

// The filter lets a command and its children through, and nobody else.
func TestKernelFilter(t *testing.T) {
	target := bpftest.Build(t, "scenes")
	f := open(t, target)
	forStores(t, func(t *testing.T, config Config) {
		var out strings.Builder
		held, err := Hold([]string{target, "fork", "20"}, nil, &out, os.Stderr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(held.Cancel)
		config.Filter = Filter{PIDs: []int{held.PID()}, Follow: true}
		c := newCollectorHere(t, config)
		place(t, c, request(t, f, Return, "forks"), request(t, f, Return, "first"))
		truth(t, target, "tail", "100") // not let through
		if err := held.Release(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-held.Ended().Done():
		case <-time.After(time.Minute):
			t.Fatal("the command does not end")
		}
		s := finish(t, c)
		p := &s.Probes[0]
		equal(t, "status", uint64(held.Status()), 0)
		equal(t, "forks", parseTruth(t, out.String())["forks"], 20)
		equal(t, "hits", p.Hits, 20)
		equal(t, "returned", p.Returned, 20)
		equal(t, "the children's returns", p.Orphans, 20)
		equal(t, "hits of another process", s.Probes[1].Hits, 0)
		equal(t, "filtered", s.Probes[1].Filtered, 100)
		checkBooks(t, p)
		checkBooks(t, &s.Probes[1])
	})
}
