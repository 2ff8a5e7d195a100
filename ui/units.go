package ui

import (
	"math"
	"strings"
	"time"

	"uprobetop/ui/format"
)

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

// leastDigit is the smallest value that format.Table has a digit for.
const leastDigit = 0.005

// update looks at the values of the column at the time now. room is the number
// of cells before the decimal point.
func (u *columnUnit) update(values []float64, units []format.Unit, room int, now time.Duration) {
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
		fits = unitFits(low, high, units[u.at].Scale, room, 0.05)
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
func bestUnit(low, high float64, units []format.Unit, room int) int {
	for _, least := range [...]float64{0.0995, leastDigit} {
		for i := len(units) - 1; i >= 0; i-- {
			if unitFits(low, high, units[i].Scale, room, least) {
				return i
			}
		}
	}
	return len(units)
}

func unitFits(low, high, scale float64, room int, least float64) bool {
	return low/scale >= least && len(wholePart(format.Table(high/scale))) <= room
}

func wholePart(s string) string {
	whole, _, _ := strings.Cut(s, ".")
	return whole
}
