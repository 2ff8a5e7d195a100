package hist

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Every value falls into the bucket whose bounds hold it, buckets touch, and
// none is wider than a sixteenth of its values.
func TestBounds(t *testing.T) {
	var next uint64
	for i := range Open + 1 {
		low, high := Bounds(i)
		if low != next {
			t.Fatalf("bucket %d begins at %d, the one before ends at %d", i, low, next)
		}
		if Index(low) != i || Index(high-1) != i {
			t.Fatalf("bucket %d: %d is in %d, %d in %d", i, low, Index(low), high-1, Index(high-1))
		}
		if i < Open && low >= SubBuckets && (high-low)*SubBuckets > low {
			t.Fatalf("bucket %d, %d to %d, is too wide", i, low, high)
		}
		next = high
	}
	if next != math.MaxUint64 {
		t.Errorf("the last bucket ends at %d", next)
	}
	if low, _ := Bounds(Open); low < 60e9 {
		t.Errorf("a minute is in the open bucket, from %d ns", low)
	}
}

func fill(values []uint64) *Histogram {
	h := &Histogram{Min: slices.Min(values), Max: slices.Max(values)}
	for _, v := range values {
		h.Counts[Index(v)]++
		h.Sum += v
	}
	return h
}

// A quantile is within one bucket of the true one.
func TestQuantile(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	values := make([]uint64, 10000)
	for i := range values {
		values[i] = uint64(math.Exp(r.NormFloat64()*3 + 8))
	}
	h := fill(values)
	slices.Sort(values)
	for _, q := range []float64{0, 0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1} {
		got := float64(h.Quantile(q))
		want := float64(values[min(max(int(math.Ceil(q*10000)), 1), 10000)-1])
		if math.Abs(got-want) > want/SubBuckets+1 {
			t.Errorf("quantile %v is %v, truly %v", q, got, want)
		}
	}
	if h.Count() != 10000 || h.Mean() != float64(h.Sum)/10000 {
		t.Errorf("count %d, mean %v", h.Count(), h.Mean())
	}
}

func TestEmpty(t *testing.T) {
	var h Histogram
	h.Settle()
	if h.Count() != 0 || h.Mean() != 0 || h.Quantile(0.5) != 0 || h.Min != 0 || h.Max != 0 {
		t.Errorf("an empty histogram is not 0 throughout: %v %v", h.Min, h.Max)
	}
}

func TestOneValue(t *testing.T) {
	for _, v := range []uint64{0, 1, 15, 16, 12345, 1 << 36, 1 << 50} {
		h := fill([]uint64{v})
		for _, q := range []float64{0, 0.5, 1} {
			if got := h.Quantile(q); got != v {
				t.Errorf("quantile %v of %d alone is %d", q, v, got)
			}
		}
	}
}

func TestSubAdd(t *testing.T) {
	early, late := []uint64{5, 100, 3000}, []uint64{200, 2000}
	before, after := fill(early), fill(append(early, late...))
	d := after.Sub(before)
	if d.Count() != 2 || d.Sum != 2200 {
		t.Errorf("the difference has %d values, sum %d", d.Count(), d.Sum)
	}
	if Index(d.Min) != Index(200) || Index(d.Max) != Index(2000) {
		t.Errorf("its extremes are %d and %d", d.Min, d.Max)
	}
	d.Add(before)
	if d.Counts != after.Counts || d.Sum != after.Sum || d.Min != 5 || d.Max != 3000 {
		t.Errorf("sum of parts: min %d, max %d", d.Min, d.Max)
	}
	if again := after.Sub(after); again.Count() != 0 || again.Max != 0 {
		t.Error("a histogram less itself is not empty")
	}
}

// Extremes that lost an update are pulled into the buckets that counted it.
func TestSettle(t *testing.T) {
	h := fill([]uint64{100, 5000})
	h.Min, h.Max = 3000, 4000
	h.Settle()
	if Index(h.Min) != Index(100) || Index(h.Max) != Index(5000) {
		t.Errorf("min %d, max %d", h.Min, h.Max)
	}
	h = fill([]uint64{100, 5000})
	h.Settle()
	if h.Min != 100 || h.Max != 5000 {
		t.Errorf("right extremes became %d and %d", h.Min, h.Max)
	}
}
