package ui

import (
	"math"
	"strconv"
	"strings"
	"time"

	"uprobetop/ui/format"
)

// unit is one step of a scale.
type unit struct {
	scale float64
	name  string
}

var (
	rateUnits = []unit{{1, "/s"}, {1e3, "k/s"}, {1e6, "M/s"}, {1e9, "G/s"}}
	timeUnits = []unit{{1, "ns"}, {1e3, "µs"}, {1e6, "ms"}, {1e9, "s"}}
	noUnit    = []unit{{1, ""}}
)

// tableNumber is v with three significant digits and at most two decimals.
func tableNumber(v float64) string {
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
	return commas(uint64(math.Round(v/p) * p))
}

// commas is n in full, with a comma every three digits.
func commas(n uint64) string { return format.Count(n) }

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

// si is a count or rate as people say it: 6.85M.
func si(v float64) string { return format.SI(v) }

// latency is a time in ns as people say it: 96.4µs.
func latency(ns float64) string { return format.Latency(ns) }

var siUnits = []unit{{1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "G"}, {1e12, "T"}}

// roundLatency is a 1-2-5 number of ns without decimals: 100µs.
func roundLatency(ns float64) string { return round125(ns, timeUnits) }

// roundCount is a 1-2-5 count without decimals: 100k.
func roundCount(n float64) string { return round125(n, siUnits) }

func round125(v float64, units []unit) string {
	i := 0
	for i+1 < len(units) && v/units[i].scale >= 999.5 {
		i++
	}
	return strconv.FormatFloat(v/units[i].scale, 'g', 4, 64) + units[i].name
}

// span is a duration of the clock: 4m 12s.
func span(d time.Duration) string {
	d = d.Round(time.Second)
	switch {
	case d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + "s"
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + "m " + strconv.Itoa(int(d%time.Minute/time.Second)) + "s"
	}
	return strconv.Itoa(int(d/time.Hour)) + "h " + strconv.Itoa(int(d%time.Hour/time.Minute)) + "m"
}

// seconds is a short duration with one decimal: 2.1s.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + "s"
}

func percent(share float64) string {
	if share > 0 && share < 0.0001 {
		return "<0.01%"
	}
	return tableNumber(share*100) + "%"
}

// count is n of a thing: 1 probe, 8 probes.
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return commas(uint64(n)) + " " + thing
}

// columnUnit chooses the one unit of a column and holds on to it: it changes
// only when a value has not fitted for 2 s, or a larger unit has been possible
// for 30 s. A unit for each value is what fits worst of all.
type columnUnit struct {
	at       int // in the units; their number: each value brings its own
	chosen   bool
	tight    time.Duration // since when a value does not fit; 0: all fit
	possible time.Duration // since when a larger unit would do; 0: none
}

const (
	unitPatience   = 2 * time.Second
	shrinkPatience = 30 * time.Second
)

// update looks at the values of the column at the time now. room is the number
// of cells before the decimal point.
func (u *columnUnit) update(values []float64, units []unit, room int, now time.Duration) {
	low, high := math.Inf(1), 0.0
	for _, v := range values {
		if v > 0 {
			low, high = math.Min(low, v), math.Max(high, v)
		}
	}
	if high == 0 {
		return
	}
	best := bestUnit(low, high, units, room)
	now = max(now, 1)
	if !u.chosen {
		u.at, u.chosen = best, true
		return
	}
	fits := best == u.at
	if u.at < len(units) {
		fits = unitFits(low, high, units[u.at].scale, room, 0.05)
	}
	if fits {
		u.tight = 0
	} else if u.tight == 0 {
		u.tight = now
	}
	if larger := best > u.at && best < len(units); !larger {
		u.possible = 0
	} else if u.possible == 0 {
		u.possible = now
	}
	if u.tight != 0 && now-u.tight >= unitPatience || u.possible != 0 && now-u.possible >= shrinkPatience {
		u.at, u.tight, u.possible = best, 0, 0
	}
}

// bestUnit is the largest unit in which the smallest value keeps a digit that
// counts and the largest fits. If there is none it is len(units): each value
// brings its own.
func bestUnit(low, high float64, units []unit, room int) int {
	for _, least := range [...]float64{0.0995, 0.005} {
		for i := len(units) - 1; i >= 0; i-- {
			if unitFits(low, high, units[i].scale, room, least) {
				return i
			}
		}
	}
	return len(units)
}

func unitFits(low, high, scale float64, room int, least float64) bool {
	return low/scale >= least && len(wholePart(tableNumber(high/scale))) <= room
}

func wholePart(s string) string {
	whole, _, _ := strings.Cut(s, ".")
	return whole
}

func hex(n uint64) string { return strconv.FormatUint(n, 16) }

func containsFold(s, part string) bool {
	return strings.Contains(strings.ToLower(s), strings.ToLower(part))
}
