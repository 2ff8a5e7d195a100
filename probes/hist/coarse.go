package hist

import (
	"math"
	"slices"
)

// CoarseWidth is how many buckets of a Histogram make one of a Coarse: 4 of these
// are an octave.
const CoarseWidth = 4

// Coarse is a distribution whose buckets are four times as wide as those of a
// Histogram: those in use, in order. It is never written to again.
type Coarse []CoarseBucket

// CoarseBucket is how many values one bucket of a Coarse holds.
type CoarseBucket struct {
	Index int
	Count uint64
}

// CoarseBounds returns the values that bucket i holds: low ≤ value < high, in ns.
// The open bucket's high is math.MaxUint64.
func CoarseBounds(i int) (low, high uint64) {
	low, _ = Bounds(i * CoarseWidth)
	if i*CoarseWidth >= Open {
		return low, math.MaxUint64
	}
	_, high = Bounds(i*CoarseWidth + CoarseWidth - 1)
	return low, high
}

// Count is the number of values.
func (c Coarse) Count() uint64 {
	var n uint64
	for _, b := range c {
		n += b.Count
	}
	return n
}

// Quantile returns the bounds between which the share q (0…1) of the values ends:
// low ≤ value ≤ high, in ns, given that no value is above largest. From 16 ns on,
// the middle of the two is wrong by 11 % at most. An empty distribution has 0, 0.
func (c Coarse) Quantile(q float64, largest uint64) (low, high uint64) {
	n := c.Count()
	if n == 0 {
		return 0, 0
	}
	rank := min(max(uint64(math.Ceil(q*float64(n))), 1), n)
	for _, b := range c {
		if b.Count < rank {
			rank -= b.Count
			continue
		}
		low, high = CoarseBounds(b.Index)
		high = max(min(high-1, largest), low)
		break
	}
	return low, high
}

// Largest holds a maximum against the buckets, which have counted every value: one
// that lies outside the last bucket in use becomes that bucket's bound.
func (c Coarse) Largest(claimed uint64) uint64 {
	if len(c) == 0 {
		return 0
	}
	low, high := CoarseBounds(c[len(c)-1].Index)
	if claimed < low || claimed >= high {
		return high - 1
	}
	return claimed
}

// Plus is the values of both.
func (c Coarse) Plus(o Coarse) Coarse {
	var sum Coarse
	for _, b := range slices.Concat(c, o) {
		i, found := slices.BinarySearchFunc(sum, b.Index, func(b CoarseBucket, i int) int { return b.Index - i })
		if !found {
			sum = slices.Insert(sum, i, CoarseBucket{Index: b.Index})
		}
		sum[i].Count += b.Count
	}
	return sum
}
