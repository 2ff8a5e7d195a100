package ui

import (
	"math"
	"slices"
	"time"

	"uprobetop/probes"
	"uprobetop/probes/hist"
)

// history keeps one snapshot a second, for as long as the longest window.
type history struct {
	seconds []*probes.Snapshot // ascending
}

const keepSeconds = 32

// add takes a new snapshot and says whether it begins a new second.
func (h *history) add(s *probes.Snapshot) bool {
	if n := len(h.seconds); n > 0 && s.Elapsed.Truncate(time.Second) <= h.seconds[n-1].Elapsed.Truncate(time.Second) {
		return false
	}
	h.seconds = append(h.seconds, s)
	if len(h.seconds) > keepSeconds {
		h.seconds = slices.Delete(h.seconds, 0, len(h.seconds)-keepSeconds)
	}
	return true
}

// before returns the newest snapshot that is at least d older than now, or nil
// if the history does not go back that far. d 0 means since the start.
func (h *history) before(now *probes.Snapshot, d time.Duration) *probes.Snapshot {
	if d == 0 {
		return nil
	}
	for _, s := range slices.Backward(h.seconds) {
		// Ticks are not exact: a second may come a little early.
		if now.Elapsed-s.Elapsed >= d-50*time.Millisecond {
			return s
		}
	}
	return nil
}

// lastSecond returns the two snapshots between which the last full second lies.
func (h *history) lastSecond() (from, to *probes.Snapshot) {
	n := len(h.seconds)
	if n == 0 {
		return nil, nil
	}
	if n == 1 {
		return nil, h.seconds[0]
	}
	return h.seconds[n-2], h.seconds[n-1]
}

func find(s *probes.Snapshot, id probes.ID) *probes.Stats {
	if s == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(s.Probes, id, func(st probes.Stats, id probes.ID) int {
		return int(int64(st.ID) - int64(id))
	})
	if !ok {
		return nil
	}
	return &s.Probes[i]
}

// numbers is what a row shows, over the window.
type numbers struct {
	window time.Duration // how much of it the probe was there
	rate   float64       // hits/s over the last full second
	load   float64       // over the last full second
	perCPU []float64
	lat    *hist.Histogram // nil for a uprobe
	calls  uint64
	mean   float64
	p50    float64
	p90    float64
	p99    float64
	p999   float64
	max    float64
}

// measure computes the numbers of one probe at the snapshot now.
func (h *history) measure(now *probes.Snapshot, st *probes.Stats, window time.Duration) numbers {
	var n numbers
	old := h.before(now, window)
	base := find(old, st.ID)
	n.window = now.Elapsed - st.Placed
	if base != nil {
		n.window = now.Elapsed - old.Elapsed
	} else {
		base = &probes.Stats{}
	}
	n.perCPU = perCPU(now.CPUs, st, base, n.window)
	n.rate, n.load = h.second(st)
	if st.Kind != probes.Return || st.Latency == nil {
		return n
	}
	n.lat = st.Latency
	if base.Latency != nil {
		n.lat = st.Latency.Sub(base.Latency)
	}
	n.calls = n.lat.Count()
	n.mean = n.lat.Mean()
	n.p50 = float64(n.lat.Quantile(0.5))
	n.p90 = float64(n.lat.Quantile(0.9))
	n.p99 = float64(n.lat.Quantile(0.99))
	n.p999 = float64(n.lat.Quantile(0.999))
	n.max = float64(n.lat.Max)
	return n
}

// second is rate and load over the last full second, or of the newest interval
// while there is none.
func (h *history) second(st *probes.Stats) (rate, load float64) {
	from, to := h.lastSecond()
	b := find(to, st.ID)
	if b == nil {
		return st.Rate, st.Load
	}
	a := find(from, st.ID)
	if a == nil {
		return b.Rate, b.Load
	}
	dt := (to.Elapsed - from.Elapsed).Seconds()
	rate = float64(b.Hits-a.Hits) / dt
	if a.Latency != nil && b.Latency != nil {
		load = float64(b.Latency.Sum-a.Latency.Sum) / 1e9 / dt
	}
	return rate, load
}

// perCPU is hits/s by CPU number over the window.
func perCPU(cpus int, st, base *probes.Stats, window time.Duration) []float64 {
	for _, c := range st.PerCPU {
		cpus = max(cpus, c.CPU+1)
	}
	out := make([]float64, cpus)
	if window <= 0 {
		return out
	}
	for _, c := range st.PerCPU {
		out[c.CPU] = float64(c.Hits)
	}
	for _, c := range base.PerCPU {
		if c.CPU < len(out) {
			out[c.CPU] -= float64(c.Hits)
		}
	}
	for i := range out {
		out[i] /= window.Seconds()
	}
	return out
}

// trail is the rate of a row second by second, for its sparkline. It outlives
// the probes of the row.
type trail struct {
	first int       // the second of rates[0]
	rates []float64 // NaN where the row was not probed
}

func (t *trail) add(second int, rate float64) {
	if len(t.rates) == 0 {
		t.first = second
	}
	for t.first+len(t.rates) < second {
		t.rates = append(t.rates, math.NaN())
	}
	if i := second - t.first; i >= 0 && i < len(t.rates) {
		t.rates[i] = rate
	} else if i >= 0 {
		t.rates = append(t.rates, rate)
	}
}

// forget drops what is too old to be shown.
func (t *trail) forget() {
	if n := len(t.rates) - 2*keepSeconds; n > 0 {
		t.rates = slices.Delete(t.rates, 0, n)
		t.first += n
	}
}

// cells shares the 30 seconds up to now out over n cells. The edges lie on a
// fixed grid of time, so that a cell never changes once it is past.
func (t *trail) cells(now, n int) []float64 {
	const span = 30
	out, have := make([]float64, n), make([]float64, n)
	last := now * n / span
	for i, rate := range t.rates {
		second := t.first + i
		cell := second*n/span - last + n - 1
		if second > now || cell < 0 || math.IsNaN(rate) {
			continue
		}
		out[cell] += rate
		have[cell]++
	}
	for i := range out {
		out[i] /= have[i] // NaN where there is none
	}
	return out
}
