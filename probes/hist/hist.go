// Package hist is the log-linear histogram in which latencies are counted:
// 16 sub-buckets an octave, from 1 ns to 2^36 ns (68.7 s), and one open bucket
// above. The bucket of a value is computed by the BPF program (bpf/layout.h
// has the same arithmetic); this package only reads.
package hist

import (
	"math"
	"math/bits"
)

const (
	// SubBuckets is the number of buckets in one octave.
	SubBuckets = 16
	// Groups is the number of runs of 16 buckets: one for the values below 16,
	// one for each octave from 2^4 to 2^35, and one whose first bucket is open.
	Groups = 34
	// Buckets is the number of buckets. The last one in use is Open.
	Buckets = Groups * SubBuckets
	// Open is the bucket of every value of 2^36 ns and above.
	Open = (Groups - 1) * SubBuckets
)

// Histogram is one distribution. The zero value is empty. A Histogram inside a
// snapshot is never written to again.
type Histogram struct {
	Counts [Buckets]uint64
	Sum    uint64 // of all values, ns
	Min    uint64 // smallest value, ns; 0 if Count is 0
	Max    uint64 // largest value, ns
}

// Index returns the bucket of a value in ns.
func Index(ns uint64) int {
	if ns < SubBuckets {
		return int(ns)
	}
	e := bits.Len64(ns) - 1
	if e >= Groups+2 {
		return Open
	}
	return (e-3)*SubBuckets + int(ns>>(e-4))&(SubBuckets-1)
}

// Bounds returns the values that bucket i holds: low ≤ value < high, in ns.
// The open bucket's high is math.MaxUint64.
func Bounds(i int) (low, high uint64) {
	if i >= Open {
		return 1 << (Groups + 2), math.MaxUint64
	}
	if i < SubBuckets {
		return uint64(i), uint64(i) + 1
	}
	e := i/SubBuckets + 3
	width := uint64(1) << (e - 4)
	low = uint64(SubBuckets+i%SubBuckets) * width
	return low, low + width
}

// Count is the number of values.
func (h *Histogram) Count() uint64 {
	var n uint64
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Mean in ns; 0 if empty.
func (h *Histogram) Mean() float64 {
	n := h.Count()
	if n == 0 {
		return 0
	}
	return float64(h.Sum) / float64(n)
}

// Quantile returns the value in ns below or at which the share q (0…1) of the
// values lies, interpolated within its bucket and never outside Min…Max. The
// error is at most one bucket: 6.25 %. An empty histogram has quantile 0.
func (h *Histogram) Quantile(q float64) uint64 {
	n := h.Count()
	if n == 0 {
		return 0
	}
	rank := uint64(math.Ceil(q * float64(n)))
	rank = min(max(rank, 1), n)
	var below uint64
	for i, c := range h.Counts {
		if c == 0 || below+c < rank {
			below += c
			continue
		}
		low, high := Bounds(i)
		if i == Open {
			return max(h.Max, low)
		}
		// The k-th of c values in a bucket stands, without knowing more, at the
		// middle of the k-th of c equal parts.
		part := (float64(rank-below) - 0.5) / float64(c)
		v := low + uint64(part*float64(high-low))
		return min(max(v, h.Min), h.Max)
	}
	return h.Max
}

// Sub returns the values that are in h and not in earlier, an older state of
// the same histogram. Min and Max are then known only to the bucket and are its
// bounds, unless the extreme of h itself falls into that bucket.
func (h *Histogram) Sub(earlier *Histogram) *Histogram {
	d := &Histogram{Sum: h.Sum - earlier.Sum}
	first, last := -1, -1
	for i := range h.Counts {
		d.Counts[i] = h.Counts[i] - earlier.Counts[i]
		if d.Counts[i] != 0 {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	if first < 0 {
		return d
	}
	low, _ := Bounds(first)
	d.Min = max(low, h.Min)
	_, high := Bounds(last)
	d.Max = min(high-1, h.Max)
	return d
}

// Add puts the values of o into h.
func (h *Histogram) Add(o *Histogram) {
	if n := o.Count(); n == 0 {
		return
	}
	if h.Count() == 0 {
		h.Min = o.Min
	}
	h.Min = min(h.Min, o.Min)
	h.Max = max(h.Max, o.Max)
	h.Sum += o.Sum
	for i, c := range o.Counts {
		h.Counts[i] += c
	}
}

// Settle holds Min and Max against the buckets, which have counted every value:
// an extreme that lies outside its outermost bucket in use (a kernel before
// 6.10 can lose an update of it to preemption) becomes that bucket's bound.
func (h *Histogram) Settle() {
	first, last := -1, -1
	for i, c := range h.Counts {
		if c == 0 {
			continue
		}
		if first < 0 {
			first = i
		}
		last = i
	}
	if first < 0 {
		h.Min, h.Max = 0, 0
		return
	}
	if low, high := Bounds(first); h.Min < low || h.Min >= high {
		h.Min = low
	}
	if low, high := Bounds(last); h.Max < low || h.Max >= high {
		h.Max = high - 1
	}
}
