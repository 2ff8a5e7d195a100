package probes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"uprobetop/bpf/bpftest"
	"uprobetop/symbols"
)

// stressTime is how long TestStress lasts: UPROBETOP_STRESS, such as 5m, or 30 s.
func stressTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("UPROBETOP_STRESS")
	if text == "" {
		return 30 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("UPROBETOP_STRESS: %v", err)
	}
	return d
}

// In the manner of the kernel's uprobe-stress: a program recurses through a hundred
// functions, deeper than 64, maps itself again and again, forks and execs. Probes on
// some of them stay and are exact; on the others they come and go, from this
// collector and from a second one. Nobody dies, and nothing grows.
func TestStress(t *testing.T) {
	bpftest.Long(t)
	length := stressTime(t)
	f := open(t, bpftest.Build(t, "stress"))
	c := newCollectorHere(t, Config{})
	const fixed, all = 20, 100
	var steady []Request
	for i := range fixed {
		steady = append(steady, request(t, f, []Kind{Entry, Return}[i%2], fmt.Sprintf("f%d", i)))
	}
	place(t, c, steady...)

	var out bytes.Buffer
	cmd := exec.Command(f.Path, strconv.Itoa(int(length.Seconds())))
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	for seed := range uint64(2) {
		other := c
		if seed == 1 {
			other = newCollectorHere(t, Config{})
		}
		wg.Go(func() { comeAndGo(ctx, t, other, f, fixed, all, rand.New(rand.NewPCG(1, seed))) })
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	early, late := time.After(length/4), time.After(length*9/10)
	var before, after usage
	var err error
	for running := true; running; {
		select {
		case err = <-ended:
			running = false
		case <-early:
			before = measure(t, cmd.Process.Pid)
		case <-late:
			after = measure(t, cmd.Process.Pid)
		}
	}
	stop()
	wg.Wait()
	if err != nil {
		t.Fatalf("the target: %v", err)
	}
	s := finish(t, c)
	said := parseTruth(t, out.String())
	equal(t, "children that died", said["failed"], 0)
	var hits, missed uint64
	for i := range fixed {
		p := &s.Probes[i]
		equal(t, p.Function.Name, p.Hits, said[p.Function.Name])
		if p.Kind == Return {
			equal(t, p.Function.Name+" returned and missed", p.Returned+p.Missed.Depth, said[p.Function.Name])
		}
		checkBooks(t, p)
		hits, missed = hits+p.Hits, missed+p.Missed.Depth
	}
	t.Logf("%d hits of the steady probes, %d of them too deep, %d mappings, %d forks, %d probes came and went here",
		hits, missed, said["maps"], said["forks"], c.nextID-fixed)
	t.Logf("after a quarter: %+v", before)
	t.Logf("at the end:      %+v", after)
	before.holds(t, after)
}

// comeAndGo places probes on functions that are not fixed, and takes them away.
func comeAndGo(ctx context.Context, t *testing.T, c *Collector, f *symbols.File, fixed, all int, r *rand.Rand) {
	var mine []ID
	for round := 0; ctx.Err() == nil; round++ {
		var rs []Request
		for range 1 + r.IntN(10) {
			fn := f.Lookup(fmt.Sprintf("f%d", fixed+r.IntN(all-fixed)))[0]
			rs = append(rs, Request{Kind: Kind(r.IntN(2)), File: f, Function: fn})
		}
		c.mu.Lock()
		from := c.nextID
		c.mu.Unlock()
		if err := c.Place(ctx, rs...); err != nil && ctx.Err() == nil {
			t.Error(err)
			return
		}
		for i := range rs {
			mine = append(mine, from+ID(i))
		}
		if _, err := c.Collect(); err != nil {
			t.Error(err)
			return
		}
		for len(mine) > r.IntN(30) {
			if err := c.Remove(mine[0]); err != nil {
				t.Error(err)
			}
			mine = mine[1:]
		}
	}
}

// usage is what must not grow.
type usage struct {
	Target, Ours int // resident memory, kB
	Heap         int // of Go, in use, kB
	Files        int // that we have open
	Programs     int // that this process holds
	Maps         int // in the kernel, of everybody
	MapBytes     int // of our maps
}

func measure(t *testing.T, pid int) (u usage) {
	t.Helper()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u.Heap = int(m.HeapInuse >> 10)
	u.Target, u.Ours = resident(t, pid), resident(t, os.Getpid())
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	u.Files = len(fds)
	for _, fd := range fds {
		info, _ := os.ReadFile("/proc/self/fdinfo/" + fd.Name())
		for line := range strings.Lines(string(info)) {
			var n int
			if k, _ := fmt.Sscanf(line, "memlock: %d", &n); k == 1 {
				u.MapBytes += n
			}
		}
	}
	u.Programs = len(programs(t, os.Getpid()))
	var id ebpf.MapID
	for {
		next, err := ebpf.MapGetNextID(id)
		if errors.Is(err, os.ErrNotExist) {
			return u
		} else if err != nil {
			t.Fatal(err)
		}
		id = next
		u.Maps++
	}
}

func resident(t *testing.T, pid int) (kB int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kB); n == 1 {
			break
		}
	}
	return kB
}

// holds tells where more is used later than before. Links that are on their way out
// have files and probed pages, and the number of them varies.
func (u usage) holds(t *testing.T, later usage) {
	t.Helper()
	for _, x := range []struct {
		what               string
		before, after, may int
	}{
		{"memory of the target, kB", u.Target, later.Target, 4096},
		{"our memory, kB", u.Ours, later.Ours, 64 << 10},
		{"our heap, kB", u.Heap, later.Heap, 32 << 10},
		{"bytes of maps", u.MapBytes, later.MapBytes, 0},
		{"open files", u.Files, later.Files, 200},
	} {
		if x.after > x.before+x.may {
			t.Errorf("%s: %d, were %d", x.what, x.after, x.before)
		}
	}
}
