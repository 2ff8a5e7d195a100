package hist

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The buckets of a Coarse lie side by side, and each is four of a Histogram.
func TestCoarseBounds(t *testing.T) {
	var from uint64
	for i := range Open/CoarseWidth + 1 {
		low, high := CoarseBounds(i)
		if low != from || high <= low || Index(low)/CoarseWidth != i || Index(high-1)/CoarseWidth != i {
			t.Errorf("bucket %d is [%d, %d), and the one before ends at %d", i, low, high, from)
		}
		from = high
	}
}

// What is said of a quantile holds for the values themselves.
func TestCoarseQuantile(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		values := make([]uint64, 1+random.IntN(300))
		counts := [2]map[int]uint64{{}, {}}
		for i := range values {
			values[i] = 1 << random.IntN(40)
			values[i] += random.Uint64N(values[i])
			counts[i%2][Index(values[i])/CoarseWidth]++
		}
		slices.Sort(values)
		c := coarse(counts[0]).Plus(coarse(counts[1]))
		largest := values[len(values)-1]
		if c.Count() != uint64(len(values)) || c.Largest(largest) != largest {
			t.Fatalf("%d values up to %d, want %d up to %d", c.Count(), c.Largest(largest), len(values), largest)
		}
		for _, percent := range []int{1, 50, 90, 99, 100} {
			want := values[(percent*len(values)+99)/100-1]
			low, high := c.Quantile(float64(percent)/100, largest)
			if want < low || want > high {
				t.Errorf("p%d of %d values is %d, and was said to be %d to %d", percent, len(values), want, low, high)
			}
			middle := float64(low+high) / 2
			if off := max(float64(high)-middle, middle-float64(low)) / middle; low >= 16 && high < 1<<36 && off > 0.112 {
				t.Errorf("%d to %d is more than 11 %% around its middle", low, high)
			}
		}
	}
	if low, high := Coarse(nil).Quantile(0.5, 7); low != 0 || high != 0 || Coarse(nil).Largest(7) != 0 {
		t.Errorf("nothing has a median of %d to %d", low, high)
	}
}

func coarse(counts map[int]uint64) (c Coarse) {
	for i := range Open/CoarseWidth + 1 {
		if counts[i] > 0 {
			c = append(c, CoarseBucket{i, counts[i]})
		}
	}
	return c
}
