package probes

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"uprobetop/bpf"
	"uprobetop/bpf/bpftest"
)

// hotProbes on two CPUs are 8,192 cells, each of them with 30 buckets in use.
const (
	hotProbes  = 4096
	hotBuckets = 30
)

// hotCollector has that many timed probes, all of them synthetic: nothing is
// attached, their cells are written from here.
func hotCollector(t testing.TB) *Collector {
	c := newCollectorHere(t, Config{MaxProbes: hotProbes, MaxTimed: hotProbes})
	for i := range hotProbes {
		if err := c.objs.Switch(cookieOf(ID(i), i), bpf.Switch{On: true, Timed: true, Hist: i, Slow: NoCalls}); err != nil {
			t.Fatal(err)
		}
	}
	c.slots.used = hotProbes
	return c
}

// heater writes calls into all the cells. It makes no garbage: collecting it
// would be felt, too.
type heater struct {
	keys  []uint32
	cells []bpf.Cell
	hists []bpf.Hist
}

func newHeater() *heater {
	const entries = 2 * hotProbes
	h := &heater{make([]uint32, entries), make([]bpf.Cell, entries), make([]bpf.Hist, entries)}
	for i := range h.keys {
		h.keys[i] = uint32(i)
	}
	return h
}

// heat adds a call to every bucket in use, and so to every cell.
func (h *heater) heat(t testing.TB, c *Collector) {
	for i := range h.keys {
		for _, field := range []int{int(bpf.Hits), int(bpf.Returned), int(bpf.Pushed), int(bpf.Popped)} {
			h.cells[i].Value[field] += hotBuckets
		}
		for k := range hotBuckets {
			b := 96 + 3*k // over six octaves
			h.hists[i].Count[b]++
			h.hists[i].Used[b/16] = 1
		}
	}
	if _, err := c.objs.Cells.BatchUpdate(h.keys, h.cells, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.objs.Hists.BatchUpdate(h.keys, h.hists, nil); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkWake asks whether a thread feels a full load of the flush on its CPU:
// how late a sleep of 1 ms ends, at the 99.9th percentile, with and without, in
// rounds that alternate. The goal is a difference of at most 2 ms.
func BenchmarkWake(b *testing.B) {
	cpus := ThisHost().CPUs
	if len(cpus) < 2 {
		b.Skip("needs two CPUs: one to flush on, one to heat the cells from")
	}
	sleeper := bpftest.Build(b, "sleeper")
	c := hotCollector(b)
	measure := func() time.Duration {
		return time.Duration(truth(b, sleeper, strconv.Itoa(cpus[1]), "5")["p999"])
	}
	var with, without, flush []time.Duration
	for b.Loop() {
		without = append(without, measure())
		ctx, stop := context.WithCancel(context.Background())
		stopped := make(chan time.Duration)
		go func() { stopped <- flushHot(ctx, b, c, cpus[0], cpus[1]) }()
		with = append(with, measure())
		stop()
		flush = append(flush, <-stopped)
	}
	ms := func(ds []time.Duration) float64 {
		slices.Sort(ds)
		return float64(ds[len(ds)/2]) / 1e6
	}
	b.ReportMetric(ms(with), "ms-p999-with")
	b.ReportMetric(ms(without), "ms-p999-without")
	b.ReportMetric(ms(flush), "ms-flush")
}

// flushHot heats on one CPU and flushes on the other until ctx ends; it returns
// the median time of a flush.
func flushHot(ctx context.Context, t testing.TB, c *Collector, heatOn, flushOn int) time.Duration {
	runtime.LockOSThread() // not unlocked: the thread ends with its priority
	stepBack()
	pin := func(cpu int) {
		var set unix.CPUSet
		set.Set(cpu)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			t.Error(err)
		}
	}
	var took []time.Duration
	for h := newHeater(); ctx.Err() == nil; {
		pin(heatOn)
		h.heat(t, c)
		pin(flushOn)
		start := time.Now()
		if _, err := c.Collect(); err != nil {
			t.Error(err)
			break
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// BenchmarkFlush is one tick over 8,192 cells: all of them changed, or none.
func BenchmarkFlush(b *testing.B) {
	c := hotCollector(b)
	h := newHeater()
	b.Run("changed", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			h.heat(b, c)
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
