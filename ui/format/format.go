// Package format writes numbers as uprobetop shows them everywhere: three
// significant digits and a unit, or a count in full.
package format

import (
	"fmt"
	"math"
	"strconv"
	"strings"
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

// List is names as a sentence has them: a, b and c; of many, the first few.
func List(names []string) string {
	const most = 5
	switch n := len(names); {
	case n == 0:
		return ""
	case n == 1:
		return names[0]
	case n > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most-1], ", "), n-most+1)
	default:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
}
