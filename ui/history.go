package ui

import (
	"iter"
	"math"
	"slices"
	"time"

	"uprobetop/probes"
	"uprobetop/probes/hist"
)

// history keeps one snapshot a second, for as long as the longest window, and
// the calls that were reported one by one.
type history struct {
	seconds []*probes.Snapshot // ascending
	zero    *probes.Snapshot   // what is counted from; nil: from the start
	calls   map[probes.ID]*callLog
	skipped uint64 // snapshots whose calls were not seen
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

// before returns the newest snapshot that is at least d older than now, or the
// one from which everything counts, if that is newer; nil is the start. d 0
// means since then.
func (h *history) before(now *probes.Snapshot, d time.Duration) *probes.Snapshot {
	if d == 0 {
		return h.zero
	}
	for _, s := range slices.Backward(h.seconds) {
		// Ticks are not exact: a second may come a little early.
		if now.Elapsed-s.Elapsed < d-50*time.Millisecond {
			continue
		}
		if h.zero != nil && s.Elapsed < h.zero.Elapsed {
			break
		}
		return s
	}
	return h.zero
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

// nothing is what a probe had counted before it was there.
var nothing probes.Stats

// numbers is what a row shows, over the window.
type numbers struct {
	window time.Duration   // how much of it the probe counted
	rate   float64         // hits/s over the last full second
	load   float64         // over the last full second
	lat    *hist.Histogram // nil for a uprobe
	calls  uint64
	mean   float64
	p50    float64
	p90    float64
	p99    float64
	p999   float64
	max    float64
	self   float64 // mean of what a call takes itself
	oldest float64 // age of a call in flight that is older than max; 0: there is none
	// What the numbers by CPU are of: they are computed when they are asked for.
	st, base *probes.Stats
	cpus     int
	byCPU    []float64

	bound bool // the largest was no larger than max: extremes cannot be subtracted
}

// measure computes the numbers of one probe at the snapshot now.
func (h *history) measure(now *probes.Snapshot, st *probes.Stats, window time.Duration) numbers {
	var n numbers
	old := h.before(now, window)
	base := old.Find(st.ID)
	if base == nil {
		base = &nothing
	}
	n.window = st.Counted - base.Counted
	n.st, n.base, n.cpus = st, base, now.CPUs
	n.rate, n.load = h.second(st)
	if st.Kind != probes.Return || st.Latency == nil {
		return n
	}
	n.lat = st.Latency
	if base.Latency != nil {
		n.lat = st.Latency.Sub(base.Latency)
		n.bound = st.Latency.Max == base.Latency.Max
	}
	n.calls = n.lat.Count()
	n.mean = n.lat.Mean()
	n.p50 = float64(n.lat.Quantile(0.5))
	n.p90 = float64(n.lat.Quantile(0.9))
	n.p99 = float64(n.lat.Quantile(0.99))
	n.p999 = float64(n.lat.Quantile(0.999))
	n.max = float64(n.lat.Max)
	if n.calls > 0 {
		n.self = max(float64(n.lat.Sum)-float64(st.Callees-base.Callees), 0) / float64(n.calls)
	}
	if age := float64(st.Oldest); age > n.max {
		n.oldest = age
	}
	return n
}

// second is rate and load over the last full second, or of the newest interval
// while there is none.
func (h *history) second(st *probes.Stats) (rate, load float64) {
	from, to := h.lastSecond()
	b := to.Find(st.ID)
	if b == nil {
		return st.Rate, st.Load
	}
	a := from.Find(st.ID)
	if a == nil {
		return b.Rate, b.Load
	}
	dt := (b.Counted - a.Counted).Seconds()
	if dt <= 0 {
		return 0, 0
	}
	rate = float64(b.Hits-a.Hits) / dt
	if a.Latency != nil && b.Latency != nil {
		load = float64(b.Latency.Sum-a.Latency.Sum) / 1e9 / dt
	}
	return rate, load
}

// perCPU is hits/s by CPU number over the window.
func (n *numbers) perCPU() []float64 {
	if n.byCPU == nil {
		n.byCPU = n.addTo(make([]float64, n.cpus))
	}
	return n.byCPU
}

// since goes over the hits of each CPU that are not in an older state. Both are
// in order of CPU.
func since(now, old []probes.CPUStats) iter.Seq2[int, uint64] {
	return func(yield func(i int, hits uint64) bool) {
		for i, c := range now {
			for len(old) > 0 && old[0].CPU < c.CPU {
				old = old[1:]
			}
			if len(old) > 0 && old[0].CPU == c.CPU {
				c.Hits -= old[0].Hits
			}
			if !yield(i, c.Hits) {
				return
			}
		}
	}
}

// addTo adds the hits/s of each CPU, and makes room for those that are missing.
func (n *numbers) addTo(out []float64) []float64 {
	if n.window <= 0 {
		return out
	}
	seconds := n.window.Seconds()
	for i, hits := range since(n.st.PerCPU, n.base.PerCPU) {
		cpu := n.st.PerCPU[i].CPU
		for cpu >= len(out) {
			out = append(out, 0)
		}
		out[cpu] += float64(hits) / seconds
	}
	return out
}

// trail is the rate of a row second by second, for its sparkline. It outlives
// the probes of the row.
type trail struct {
	first int       // the second of rates[0]
	rates []float64 // NaN where the row was not probed
}

// add takes the mean rate of the seconds after since up to second. They are one, or
// more where ticks were late: what was not seen second by second is neither a hole
// nor a spike.
func (t *trail) add(since, second int, rate float64) {
	if len(t.rates) == 0 {
		t.first = second
	}
	for next := t.first + len(t.rates); next < second; next++ {
		if next > since {
			t.rates = append(t.rates, rate)
		} else {
			t.rates = append(t.rates, math.NaN())
		}
	}
	if i := second - t.first; i >= 0 && i < len(t.rates) {
		t.rates[i] = rate
	} else if i >= 0 {
		t.rates = append(t.rates, rate)
	}
}

// mean is the mean rate of the newest n seconds; 0 while there is none.
func (t *trail) mean(n int) float64 {
	sum, have := 0.0, 0.0
	for _, rate := range t.rates[max(len(t.rates)-n, 0):] {
		if !math.IsNaN(rate) {
			sum += rate
			have++
		}
	}
	return sum / max(have, 1)
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
