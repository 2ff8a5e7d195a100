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
		if err := c.objs.Switch(uint64(i+1)<<32|uint64(i), true, true, i); err != nil {
			t.Fatal(err)
		}
	}
	c.slots.used = hotProbes
	return c
}

// heat adds a call to every cell and to its histogram, round after round.
func heat(t testing.TB, c *Collector, round uint64) {
	var cell bpf.Cell
	var h bpf.Hist
	for _, i := range []int{int(bpf.Hits), int(bpf.Returned), int(bpf.Pushed), int(bpf.Popped)} {
		cell.Value[i] = round * hotBuckets
	}
	for i := range hotBuckets {
		b := 96 + 3*i // over six octaves
		h.Count[b], h.Used[b/16] = round, 1
	}
	for cpu := range min(2, c.objs.CPUs) {
		for p := range hotProbes {
			if err := c.objs.Cells.Put(uint32(cpu*hotProbes+p), cell); err != nil {
				t.Fatal(err)
			}
			if err := c.objs.Hists.Put(uint32(cpu*hotProbes+p), h); err != nil {
				t.Fatal(err)
			}
		}
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
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), flushNice)
	pin := func(cpu int) {
		var set unix.CPUSet
		set.Set(cpu)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			t.Error(err)
		}
	}
	var took []time.Duration
	for round := uint64(1); ctx.Err() == nil; round++ {
		pin(heatOn)
		heat(t, c, round)
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
	round := uint64(0)
	b.Run("changed", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			round++
			heat(b, c, round)
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
