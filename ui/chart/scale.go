package chart

import "math"

// Floor125 is the largest 1, 2 or 5 times a power of ten that is at most v.
// v must be over 0.
func Floor125(v float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(v)*(1+1e-12)))
	for _, m := range [...]float64{5, 2, 1} {
		if m*p <= v*(1+1e-9) {
			return m * p
		}
	}
	return p
}

// Ceil125 is the smallest 1, 2 or 5 times a power of ten that is at least v.
// v must be over 0.
func Ceil125(v float64) float64 {
	f := Floor125(v)
	if f >= v*(1-1e-9) {
		return f
	}
	return Next125(f)
}

// Next125 is the next larger 1, 2 or 5 times a power of ten after such a one.
func Next125(v float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(v*1.0001)))
	switch m := math.Round(v / p); m {
	case 1:
		return 2 * p
	case 2:
		return 5 * p
	default:
		return 10 * p
	}
}
