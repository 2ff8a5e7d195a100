package probes

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"uprobetop/bpf/bpftest"
)

// Everything at once, for a while: steady probes stay exact while programs
// recurse, jump, fork, exec and exit under them, many threads share two CPUs, and
// other probes come and go.
func TestStorm(t *testing.T) {
	bpftest.Long(t)
	forStores(t, storm)
}

func storm(t *testing.T, config Config) {
	calls, scenes := bpftest.Build(t, "calls"), bpftest.Build(t, "scenes")
	fc, fs := open(t, calls), open(t, scenes)
	c := newCollectorHere(t, config)
	steady := []Request{request(t, fc, Return, "work")}
	for _, name := range []string{"recurse", "outer", "inner", "leaves", "forks", "first", "second"} {
		steady = append(steady, request(t, fs, Return, name))
	}
	place(t, c, steady...)

	var mu sync.Mutex
	made := map[string]uint64{}
	add := func(said map[string]uint64) {
		mu.Lock()
		defer mu.Unlock()
		for name, n := range said {
			made[name] += n
		}
	}
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	var wg sync.WaitGroup
	again := func(f func(r *rand.Rand)) {
		r := rand.New(rand.NewPCG(1, uint64(len(made))))
		wg.Go(func() {
			for ctx.Err() == nil {
				f(r)
			}
		})
	}
	again(func(r *rand.Rand) {
		said := truth(t, calls, strconv.Itoa(1+r.IntN(64)), strconv.Itoa(r.IntN(500)))
		add(map[string]uint64{"work": said["calls"]})
	})
	again(func(r *rand.Rand) {
		n := strconv.Itoa(1 + r.IntN(500))
		switch r.IntN(5) {
		case 0:
			add(truth(t, scenes, "recurse", strconv.Itoa(1+r.IntN(100)), n))
		case 1:
			add(truth(t, scenes, "jump", n))
		case 2:
			add(truth(t, scenes, "exit", n))
		case 3:
			add(truth(t, scenes, "fork", n))
		case 4:
			said := truth(t, scenes, "tail", n)
			add(said)
		}
	})
	again(func(r *rand.Rand) { // comes and goes, mid-call
		f, name := fc, "run"
		if r.IntN(2) == 0 {
			f, name = fs, "main"
		}
		before := c.Snapshot()
		if err := c.Place(ctx, request(t, f, Kind(r.IntN(2)), name)); err != nil {
			return
		}
		s := collect(t, c)
		for i := range s.Probes {
			if p := &s.Probes[i]; p.ID >= ID(len(steady)) && before.Find(p.ID) == nil {
				if err := c.Remove(p.ID); err != nil {
					t.Error(err)
				}
			}
		}
	})
	wg.Wait()
	s := finish(t, c)
	for i := range steady {
		p := &s.Probes[i]
		name := p.Function.Name
		t.Logf("%s: %d hits, %d returned, %d in flight or not returned, unwound %+v, missed %+v, %d orphans", name, p.Hits, p.Returned, p.Pending(), p.Unwound, p.Missed, p.Orphans)
		equal(t, name, p.Hits, made[name])
		if p.Hits == 0 {
			t.Errorf("%s was never called", name)
		}
		checkBooks(t, p)
	}
	emptyStore(t, c)
}
