package probes

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"uprobetop/bpf"
	"uprobetop/bpf/bpftest"
)

// Two functions that call each other share what the kernel keeps for a thread.
func TestKernelMutualRecursion(t *testing.T) {
	target := bpftest.Build(t, "scenes")
	f := open(t, target)
	forStores(t, func(t *testing.T, config Config) {
		c := newCollectorHere(t, config)
		place(t, c, request(t, f, Return, "even"), request(t, f, Return, "odd"))
		const times = 50
		equal(t, "shallow", truth(t, target, "mutual", "60", "50")["mutual"], times*60)
		equal(t, "deep", truth(t, target, "mutual", "100", "50")["mutual"], times*100)
		s := finish(t, c)
		for i := range s.Probes {
			p := &s.Probes[i]
			equal(t, p.Function.Name+" hits", p.Hits, times*(30+50))
			equal(t, p.Function.Name+" returned", p.Returned, times*(30+32))
			equal(t, p.Function.Name+" missed.depth", p.Missed.Depth, times*18)
			lost(t, p, 0, 0)
			checkBooks(t, p)
		}
	})
}

// The calls of one thread that were jumped out of, or not, never overlap: no return
// is taken for that of an earlier hit, nor a context for another's.
func TestKernelJumpTimes(t *testing.T) {
	target := bpftest.Build(t, "scenes")
	f := open(t, target)
	forStores(t, func(t *testing.T, config Config) {
		config.Slow = 1
		c := newCollectorHere(t, config)
		place(t, c, request(t, f, Return, "inner"))
		const jumps = 60
		truth(t, target, "jump", "60")
		s := finish(t, c)
		equal(t, "calls", uint64(len(s.Calls)), jumps/2+jumps/3)
		var end uint64
		for _, call := range s.Calls {
			if call.Thread == nil {
				t.Fatalf("nothing is known of the beginning of %+v", call)
			}
			if call.Start < end {
				t.Errorf("a call began at %d, and the one before ended at %d", call.Start, end)
			}
			end = call.Start + uint64(call.Latency)
		}
	})
}

// A call that is reported has the arguments of its own hit, however deep it was.
func TestKernelContexts(t *testing.T) {
	target := bpftest.Build(t, "scenes")
	f := open(t, target)
	forStores(t, func(t *testing.T, config Config) {
		config.Slow = 1
		c := newCollectorHere(t, config)
		place(t, c, request(t, f, Return, "main"), request(t, f, Return, "recurse"))
		truth(t, target, "recurse", "40")
		s := finish(t, c)
		var depths []uint64
		for _, call := range s.Calls {
			if call.Thread == nil {
				t.Fatalf("nothing is known of the beginning of %+v", call)
			}
			if s.Find(call.Probe).Function.Name == "recurse" {
				depths = append(depths, call.Args[0])
			}
			if (call.Callees < 0) != (config.InFlight == SessionStore) {
				t.Errorf("%s in callees", call.Callees)
			}
		}
		equal(t, "calls", uint64(len(depths)), 40)
		for i, d := range depths { // the innermost returns first
			equal(t, "depth", d, uint64(i+1))
		}
	})
}

// Threads that end in the middle of a call, by whatever way, end it, and leave
// nothing in the store.
func TestKernelEnds(t *testing.T) {
	target := bpftest.Build(t, "scenes")
	f := open(t, target)
	forStores(t, func(t *testing.T, config Config) {
		c := newCollectorHere(t, config)
		place(t, c, request(t, f, Return, "dies"), request(t, f, Return, "hangs"), request(t, f, Return, "first"),
			request(t, f, Return, "waits"), request(t, f, Return, "thread_becomes"), request(t, f, Return, "becomes"))
		equal(t, "dies", truth(t, target, "kill", "20")["dies"], 20)
		equal(t, "first", truth(t, target, "thread-exec", "300")["first"], 300)
		s := finish(t, c)
		dies, hangs, first, waits, thread, becomes := &s.Probes[0], &s.Probes[1], &s.Probes[2], &s.Probes[3], &s.Probes[4], &s.Probes[5]
		equal(t, "dies hits", dies.Hits, 20)
		lost(t, dies, dies.Unwound.Exit, 20)
		equal(t, "hangs hits", hangs.Hits, 40)
		lost(t, hangs, hangs.Unwound.Exit, 40)
		lost(t, thread, thread.Unwound.Exec, 1)
		lost(t, becomes, becomes.Unwound.Exec, 1)
		if waits.Hits > 1 { // the first thread may have been ended before it came there
			t.Errorf("waits has %d hits", waits.Hits)
		}
		lost(t, waits, waits.Unwound.Exit, waits.Hits)
		equal(t, "first returned", first.Returned, 300)
		lost(t, first, 0, 0)
		for i := range s.Probes {
			equal(t, "orphans", s.Probes[i].Orphans, 0)
			checkBooks(t, &s.Probes[i])
		}
		seenAll(t, c)
		emptyStore(t, c)
	})
}

// A hash that is full misses hits, counts them, and has room again when threads end.
func TestKernelHashFull(t *testing.T) {
	target := bpftest.Build(t, "scenes")
	f := open(t, target)
	c := newCollectorHere(t, Config{InFlight: HashStore, Stacks: 4})
	place(t, c, request(t, f, Return, "waits"))
	const times, crowd = 3, 16
	for range times {
		equal(t, "waits", truth(t, target, "crowd", "16")["waits"], crowd)
	}
	p := &finish(t, c).Probes[0]
	equal(t, "hits", p.Hits, times*crowd)
	equal(t, "returned", p.Returned, times*4)
	equal(t, "missed.no_slot", p.Missed.NoSlot, times*(crowd-4))
	equal(t, "orphans", p.Orphans, times*(crowd-4)) // the kernel reports their returns
	checkBooks(t, p)
	emptyStore(t, c)
}

// A store that cannot be had is refused in one sentence; task storage always can.
func TestKernelChooseStore(t *testing.T) {
	for _, method := range []Method{"", PerfEvent} {
		want := "not with perf events"
		if errors.Is(bpf.HaveSession(), ebpf.ErrNotSupported) {
			want = "Linux 6.13"
		} else if method == "" {
			continue
		}
		if _, err := New(Config{InFlight: SessionStore, Attach: method}); err == nil || !strings.Contains(err.Error(), want) {
			bpftest.Require(t, bpf.HavePerfUprobes())
			t.Errorf("session cookies, attached by %q: %v", method, err)
		}
	}
	if c := newCollectorHere(t, Config{}); c.Snapshot().InFlight != TaskStore {
		t.Errorf("the default is %q", c.Snapshot().InFlight)
	}
}

// Of the processes that a filter names each has a link of its own.
func TestKernelSessionsOfProcesses(t *testing.T) {
	if errors.Is(bpf.HaveSession(), ebpf.ErrNotSupported) {
		t.Skip("this kernel has no session cookies")
	}
	target := bpftest.Build(t, "slow")
	f := open(t, target)
	var pids []int
	var goOn []func()
	for range 3 {
		cmd := exec.Command(target, "threads", "2", "300")
		_, next := startThreads(t, cmd, 2)
		pids, goOn = append(pids, cmd.Process.Pid), append(goOn, next)
	}
	c := newCollectorHere(t, Config{InFlight: SessionStore, Filter: Filter{PIDs: pids[:2]}})
	place(t, c, request(t, f, Return, "step"))
	for _, next := range goOn {
		next()
	}
	p := &finish(t, c).Probes[0]
	equal(t, "hits", p.Hits, 2*2*300)
	equal(t, "returned", p.Returned, 2*2*300)
	equal(t, "orphans", p.Orphans, 0)
	lost(t, p, 0, 0)
	checkBooks(t, p)
}

// A recording shows what its store knew, and a store that nobody knows is no recording.
func TestReplayOfStores(t *testing.T) {
	target := bpftest.Build(t, "scenes")
	f := open(t, target)
	forStores(t, func(t *testing.T, config Config) {
		var kept bytes.Buffer
		rec, err := newRecorder(&kept, "scenes")
		if err != nil {
			t.Fatal(err)
		}
		config.Tap, config.Slow = rec, 1
		c := newCollectorHere(t, config)
		place(t, c, request(t, f, Return, "outer"), request(t, f, Entry, "inner"))
		truth(t, target, "jump", "20")
		live := finish(t, c)
		if err := rec.Close(); err != nil {
			t.Fatal(err)
		}
		again, err := replay(t, kept.Bytes()).Next()
		if err != nil {
			t.Fatal(err)
		}
		sameSnapshot(t, live, again)
		if again.InFlight != config.InFlight {
			t.Errorf("asked for %s, got %s", config.InFlight, again.InFlight)
		}
		if p := &again.Probes[0]; p.NoFrames != (config.InFlight == SessionStore) || again.Probes[1].NoFrames {
			t.Errorf("of a run with store %s nothing is known but %+v", config.InFlight, p)
		}
		checkBooks(t, &again.Probes[0])
	})
	var kept bytes.Buffer
	rec, err := newRecorder(&kept, "x")
	if err != nil {
		t.Fatal(err)
	}
	rec.Begin(&Snapshot{CPUs: 1, InFlight: "\x1b[2Jno store"}, []int{0}, 1)
	rec.Tick(&Snapshot{})
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := NewReplay(bytes.NewReader(kept.Bytes())); err == nil || !strings.Contains(err.Error(), "not known here") {
		t.Errorf("a store that nobody knows: %v", err)
	}
}
