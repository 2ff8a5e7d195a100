// Package format writes numbers as uprobetop shows them everywhere: three
// significant digits and a unit, or a count in full.
package format

import (
	"math"
	"strconv"
)

type unit struct {
	scale float64
	name  string
}

var (
	timeUnits = []unit{{1, "ns"}, {1e3, "µs"}, {1e6, "ms"}, {1e9, "s"}}
	siUnits   = []unit{{1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "G"}, {1e12, "T"}}
)

// Count is n in full, with a comma every three digits.
func Count(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// three is v with three significant digits and no unit: 640, 1.12, 96.4.
func three(v float64) string {
	switch {
	case v == math.Trunc(v) && v < 999.5:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v < 9.995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v < 99.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// scaled is v in the largest unit in which it is at least 1.
func scaled(v float64, units []unit) string {
	i := 0
	for i+1 < len(units) && v/units[i].scale >= 999.5 {
		i++
	}
	v /= units[i].scale
	if i > 0 && v < 99.95 {
		// 1.00ms, not 1ms: the digits say how exact it is.
		decimals := 2
		if v >= 9.995 {
			decimals = 1
		}
		return strconv.FormatFloat(v, 'f', decimals, 64) + units[i].name
	}
	return three(v) + units[i].name
}

// SI is a count or rate as people say it: 6.85M.
func SI(v float64) string { return scaled(v, siUnits) }

// Latency is a time in ns as people say it: 96.4µs.
func Latency(ns float64) string { return scaled(ns, timeUnits) }
