package chart

import (
	"cmp"
	"math"
	"slices"
)

// Sparkline draws values from left to right in one row, one cell each, from 0
// to the largest. The last one is the newest and stands out. A NaN is a time
// at which nothing was measured: blank.
func Sparkline(c *Canvas, values []float64, th *Theme) {
	values = values[max(0, len(values)-c.W):]
	top := 0.0
	for _, v := range values {
		if v > top {
			top = v
		}
	}
	x := c.W - len(values)
	for i, v := range values {
		st := th.fadeLevel(th.Spark, level(v, top, len(th.Ramp)), len(th.Ramp))
		if i == len(values)-1 {
			st = Style{Fg: th.Accent.Fg}
		}
		rampCell(c, x+i, v, top, st, th)
	}
}

func rampCell(c *Canvas, x int, v, top float64, st Style, th *Theme) {
	switch {
	case math.IsNaN(v):
	case v <= 0:
		c.Put(x, 0, th.Empty, Style{Fg: th.Line.Fg, Attr: th.Line.Attr})
	default:
		c.Put(x, 0, th.Ramp[level(v, top, len(th.Ramp))], st)
	}
}

// level is the step, 0 to n-1, of v on a scale from 0 to top.
func level(v, top float64, n int) int {
	if top <= 0 || math.IsNaN(v) {
		return 0
	}
	return min(max(int(math.Ceil(v/top*float64(n)))-1, 0), n-1)
}

// fadeLevel takes a low step of a one-row chart towards the background.
func (th *Theme) fadeLevel(st Style, step, n int) Style {
	if th.Fade && n > 1 {
		st.Fg = st.Fg.Mix(th.Bg, 0.42*(1-float64(step)/float64(n-1)))
	}
	return st
}

// Strip draws one cell a CPU from 0 to the largest of them. With more CPUs
// than cells, a cell is a group of equal size and shows its busiest CPU. It
// returns the cells used. The hottest CPU stands out if it is over 1.5 times
// the mean, and only then.
func Strip(c *Canvas, perCPU []float64, th *Theme) int {
	if len(perCPU) == 0 || c.W == 0 {
		return 0
	}
	if len(perCPU) == 1 {
		Bar(c, 1, th.CPU, th)
		return c.W
	}
	group := (len(perCPU) + c.W - 1) / c.W
	top, hot := Hottest(perCPU)
	x := 0
	for g := range slices.Chunk(perCPU, group) {
		v := slices.Max(g)
		st := th.fadeLevel(th.CPU, level(v, top, len(th.Ramp)), len(th.Ramp))
		if hot >= 0 && hot/group == x {
			st = th.Hot
		}
		rampCell(c, x, v, top, st, th)
		x++
	}
	return x
}

// Hottest returns the largest value and the CPU that has it, or -1 if it is
// not over 1.5 times the mean of all.
func Hottest(perCPU []float64) (top float64, cpu int) {
	sum, cpu := 0.0, -1
	for i, v := range perCPU {
		sum += v
		if v > top {
			top, cpu = v, i
		}
	}
	if cpu < 0 || top <= 1.5*sum/float64(len(perCPU)) {
		return top, -1
	}
	return top, cpu
}

// Part is one part of a bar, as a share (0…1) of the width.
type Part struct {
	Share float64
	Glyph rune
	Style Style
}

// Parts draws a thin horizontal bar of several parts, one behind the other, on a
// track. The whole has as many cells as its share says, and at least one.
func Parts(c *Canvas, parts []Part, th *Theme) {
	sum, from := 0.0, 0
	for x := range c.W {
		c.Put(x, 0, th.Track, th.Grid)
	}
	for _, p := range parts {
		if math.IsNaN(p.Share) || p.Share <= 0 {
			continue
		}
		sum += p.Share
		to := int(math.Round(min(sum, 1) * float64(c.W)))
		for x := from; x < to; x++ {
			c.Put(x, 0, p.Glyph, p.Style)
		}
		from = max(from, to)
	}
	if from > 0 || sum == 0 {
		return
	}
	most := slices.MaxFunc(parts, func(a, b Part) int { return cmp.Compare(a.Share, b.Share) })
	c.Put(0, 0, most.Glyph, most.Style)
}

// Bar draws a thin horizontal bar over the share (0…1) of the width, on a
// track.
func Bar(c *Canvas, share float64, st Style, th *Theme) {
	if math.IsNaN(share) || share < 0 {
		share = 0
	}
	halves := int(math.Round(min(share, 1) * float64(2*c.W)))
	if share > 0 && halves == 0 {
		halves = 1
	}
	for x := range c.W {
		switch {
		case 2*x+2 <= halves:
			c.Put(x, 0, th.Bar, st)
		case 2*x+1 == halves:
			c.Put(x, 0, th.Half, st)
		default:
			c.Put(x, 0, th.Track, th.Grid)
		}
	}
}
