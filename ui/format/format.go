// Package format writes numbers as uprobetop shows them everywhere: three
// significant digits and a unit, or a count in full.
package format

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// Unit is one step of a scale.
type Unit struct {
	Scale float64
	Name  string
}

// Scales, from small to large. They are tables to read.
var (
	RateUnits = []Unit{{1, "/s"}, {1e3, "k/s"}, {1e6, "M/s"}, {1e9, "G/s"}}
	TimeUnits = []Unit{{1, "ns"}, {1e3, "µs"}, {1e6, "ms"}, {1e9, "s"}}
	NoUnit    = []Unit{{1, ""}}
	siUnits   = []Unit{{1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "G"}, {1e12, "T"}}
)

// Count is n in full, with a comma every three digits.
func Count(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Things is n of a thing: 1 probe, 8 probes.
func Things(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return Count(uint64(n)) + " " + thing
}

// Table is v with three significant digits and at most two decimals.
func Table(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 0.005:
		return "<0.01"
	case v < 9.995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v < 99.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	p := math.Pow(10, math.Max(math.Floor(math.Log10(v))-2, 0))
	return Count(uint64(math.Round(v/p) * p))
}

// Three is v with three significant digits and no unit: 640, 1.12, 96.4.
func Three(v float64) string {
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
func scaled(v float64, units []Unit) string {
	i := 0
	for i+1 < len(units) && v/units[i].Scale >= 999.5 {
		i++
	}
	v /= units[i].Scale
	if i > 0 && v < 99.95 {
		// 1.00ms, not 1ms: the digits say how exact it is.
		decimals := 2
		if v >= 9.995 {
			decimals = 1
		}
		return strconv.FormatFloat(v, 'f', decimals, 64) + units[i].Name
	}
	return Three(v) + units[i].Name
}

// SI is a count or rate as people say it: 6.85M.
func SI(v float64) string { return scaled(v, siUnits) }

// Latency is a time in ns as people say it: 96.4µs.
func Latency(ns float64) string { return scaled(ns, TimeUnits) }

// RoundLatency is a 1-2-5 number of ns without decimals: 100µs.
func RoundLatency(ns float64) string { return round125(ns, TimeUnits) }

// RoundCount is a 1-2-5 count without decimals: 100k.
func RoundCount(n float64) string { return round125(n, siUnits) }

func round125(v float64, units []Unit) string {
	i := 0
	for i+1 < len(units) && v/units[i].Scale >= 999.5 {
		i++
	}
	return strconv.FormatFloat(v/units[i].Scale, 'g', 4, 64) + units[i].Name
}

// Span is a duration of the clock: 4m 12s.
func Span(d time.Duration) string {
	d = d.Round(time.Second)
	switch {
	case d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + "s"
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + "m " + strconv.Itoa(int(d%time.Minute/time.Second)) + "s"
	}
	return strconv.Itoa(int(d/time.Hour)) + "h " + strconv.Itoa(int(d%time.Hour/time.Minute)) + "m"
}

// Seconds is a short duration with one decimal: 2.1s.
func Seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + "s"
}

// Percent is a share as a percentage: 4.59%.
func Percent(share float64) string {
	if share > 0 && share < 0.0001 {
		return "<0.01%"
	}
	return Table(share*100) + "%"
}

// List is names as a sentence has them: a, b and c; of many, the first few, and of
// a long one, as C++ has them, how it begins.
func List(names []string) string {
	const most, widest = 5, 60
	all := names
	names = make([]string, min(len(all), most))
	for i := range names {
		names[i] = ansi.Truncate(all[i], widest, "…")
	}
	switch n := len(all); {
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
