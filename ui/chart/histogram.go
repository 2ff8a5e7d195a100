package chart

import (
	"cmp"
	"math"
	"slices"
)

// Bucket is a range of values, Low ≤ value < High, with their number.
type Bucket struct {
	Low, High float64
	Count     uint64
}

// Flag marks a value over the histogram.
type Flag struct {
	At    float64
	Name  string // p99
	Value string // 96.4µs
	Style Style
	Left  bool // the text prefers to stand left of its line
}

// Histogram is what to draw. Flags are in the order in which they get room.
type Histogram struct {
	Buckets       []Bucket // ascending; empty ones may be left out
	Low, High     float64  // the x axis, both over 0
	Top           float64  // the y axis: the largest count to have room for
	Linear        bool     // y axis
	P50, P90, P99 float64  // where the steps of colour are
	Flags         []Flag
	Floor         float64              // what a value has of the measuring itself; 0: not known
	Cursor        int                  // the column that is read, or -1
	Empty         string               // what to say when there are no calls
	XLabel        func(float64) string // 100000 → 100µs
	YLabel        func(float64) string // 100000 → 100k
}

// Gutter is the width of the y axis' labels, with the blank cell behind them.
const Gutter = 6

// PlotWidth is the number of columns of a histogram that is w cells wide.
func PlotWidth(w int) int { return max(w-Gutter, 0) }

// Columns shares the buckets out over n columns of equal width on the
// logarithmic x axis, each count by overlap. The sum stays that of the buckets;
// what lies outside the axis goes into its first and last column.
func (h *Histogram) Columns(n int) []float64 {
	cols := make([]float64, n)
	if n == 0 {
		return cols
	}
	for _, b := range h.Buckets {
		if b.Count == 0 {
			continue
		}
		low, high := h.column(b.Low, n), h.column(b.High, n)
		low, high = min(max(low, 0), float64(n)), min(max(high, 0), float64(n))
		if high-low < 1e-9 {
			cols[min(int(low), n-1)] += float64(b.Count)
			continue
		}
		for i := int(low); i < n && float64(i) < high; i++ {
			part := min(high, float64(i+1)) - max(low, float64(i))
			cols[i] += float64(b.Count) * part / (high - low)
		}
	}
	return cols
}

// Bounds returns the values between which column i of n lies.
func (h *Histogram) Bounds(i, n int) (low, high float64) {
	step := math.Log(h.High/h.Low) / float64(n)
	return h.Low * math.Exp(step*float64(i)), h.Low * math.Exp(step*float64(i+1))
}

// Column is the column of n in which v lies, or the nearest.
func (h *Histogram) Column(v float64, n int) int {
	return min(max(int(h.column(v, n)), 0), n-1)
}

// column is where v lies on an axis of n columns, in columns.
func (h *Histogram) column(v float64, n int) float64 {
	if v <= 0 {
		return 0
	}
	return math.Log(v/h.Low) / math.Log(h.High/h.Low) * float64(n)
}

// Draw draws the histogram with flags, axes and cursor.
func (h *Histogram) Draw(c *Canvas, th *Theme) {
	flags := 1
	if c.H >= 10 {
		flags = 2
	}
	if c.H >= 16 {
		flags = 3
	}
	rows := c.H - flags - 2
	n := PlotWidth(c.W)
	if rows < 1 || n < 1 || !(h.High > h.Low) {
		return
	}
	plot := c.Sub(Gutter, flags, n, rows)
	y := h.yScale(rows)
	h.grid(c, flags, rows, y, th)
	cols := h.Columns(n)
	h.bars(plot, cols, y, th)
	h.flags(c.Sub(Gutter, 0, n, flags+rows), flags, cols, y, th)
	h.axis(c.Sub(Gutter, flags+rows, n, 2), th)
	if h.Empty != "" {
		x := max((n-Width(h.Empty))/2, 0)
		plot.Fill(x-1, rows/2, Width(h.Empty)+2, 1, ' ', Style{})
		plot.Text(x, rows/2, h.Empty, th.Muted)
	}
}

// yScale turns a count into a height in rows, and lists what to label.
type yScale struct {
	height func(float64) float64
	ticks  []tick
	linear bool
}

type tick struct {
	row   int // from the bottom
	value float64
}

func (h *Histogram) yScale(rows int) yScale {
	top := max(h.Top, 1)
	if h.Linear {
		return linearScale(top, rows)
	}
	return logScale(top, rows)
}

// logScale puts the middle of the bottom row at 1 and every labelled power of
// ten into the middle of a row of its own: k rows for m decades.
func logScale(top float64, rows int) yScale {
	decades := max(math.Log10(top), 0.3)
	room := float64(rows) - 0.5
	bestK, bestM := 1, int(math.Ceil(decades/room))
	for m := 1; m <= min(3, max(1, int(decades))); m++ {
		k := int(room * float64(m) / decades)
		// A label for every decade is worth some height.
		gain := 1.04
		if bestM == 1 && bestK > 1 {
			gain = 1.25
		}
		if k >= 1 && float64(k)/float64(m) >= float64(bestK)/float64(bestM)*gain {
			bestK, bestM = k, m
		}
	}
	s := yScale{height: func(v float64) float64 {
		if v <= 0 {
			return 0
		}
		return max(0.5+math.Log10(v)*float64(bestK)/float64(bestM), 0.01)
	}}
	for i := 0; i*bestK < rows; i++ {
		if v := math.Pow(10, float64(i*bestM)); v <= top*1.01 {
			s.ticks = append(s.ticks, tick{i * bestK, v})
		}
	}
	return s
}

// linearScale puts every labelled count on the upper edge of a row.
func linearScale(top float64, rows int) yScale {
	unit := Ceil125(max(top/float64(max(rows/2, 1)), 1))
	for float64(rows)/(top/unit) < 1 {
		unit = Next125(unit)
	}
	k := max(int(float64(rows)*unit/top), 1)
	s := yScale{linear: true, height: func(v float64) float64 {
		return v / unit * float64(k)
	}}
	for i := 1; i*k <= rows; i++ {
		s.ticks = append(s.ticks, tick{i*k - 1, float64(i) * unit})
	}
	return s
}

func (h *Histogram) grid(c *Canvas, flags, rows int, y yScale, th *Theme) {
	glyph := th.GridLine
	if y.linear {
		glyph = th.Top
	}
	for _, t := range y.ticks {
		row := flags + rows - 1 - t.row
		c.Right(Gutter-1, row, h.YLabel(t.value), th.Muted)
		c.Fill(Gutter, row, c.W-Gutter, 1, glyph, th.Grid)
	}
}

func (h *Histogram) bars(plot *Canvas, cols []float64, y yScale, th *Theme) {
	n := len(cols)
	for x, v := range cols {
		steps := h.steps(v, plot.H, y)
		if steps == 0 {
			continue
		}
		low, high := h.Bounds(x, n)
		st, shade := h.zone(math.Sqrt(low*high), th)
		for row := 0; row*8 < steps; row++ {
			s := st
			if x == h.Cursor {
				s = Style{Fg: th.Bright.Fg, Attr: th.Bright.Attr}
			} else if th.Fade {
				s.Fg = s.Fg.Mix(th.Bg, 0.5*(1-float64(row+1)/float64(plot.H)))
			}
			glyph := th.Eight[min(steps-row*8, 8)-1]
			if th.Shade && steps-row*8 > 8 && x != h.Cursor {
				glyph = shade
			}
			plot.Put(x, plot.H-1-row, glyph, s)
		}
	}
}

// steps is the height of a bar in eighths of a row; a count is never invisible.
func (h *Histogram) steps(v float64, rows int, y yScale) int {
	if v <= 0 {
		return 0
	}
	return min(max(int(math.Round(y.height(v)*8)), 1), rows*8)
}

func (h *Histogram) zone(v float64, th *Theme) (Style, rune) {
	switch {
	case v <= h.P50:
		return th.H50, th.Zones[0]
	case v <= h.P90:
		return th.H90, th.Zones[1]
	case v <= h.P99:
		return th.H99, th.Zones[2]
	}
	return th.HMax, th.Zones[3]
}

func (h *Histogram) flags(c *Canvas, rows int, cols []float64, y yScale, th *Theme) {
	used := make([][]bool, rows)
	for i := range used {
		used[i] = make([]bool, c.W)
	}
	for _, f := range h.flagOrder(rows, c.W) {
		x := h.Column(f.At, c.W)
		row, from, left := place(used, x, Width(f.Name)+1+Width(f.Value)+1, f.Left)
		if row < 0 {
			continue
		}
		c.Put(x, row, th.V, f.Style)
		if !left {
			from += 2
		}
		at := c.Text(from, row, f.Name, f.Style.With(Bold))
		c.Text(at+1, row, f.Value, th.Text)
		bar := c.H - (h.steps(cols[x], c.H-rows, y)+7)/8
		for r := row + 1; r < bar; r++ {
			if r >= rows || !used[r][x] {
				c.Put(x, r, th.Drop, th.Line)
				if r < rows {
					used[r][x] = true
				}
			}
		}
	}
}

// flagOrder is the order in which flags get room. Those that stand too near to
// the right edge for a text on their right come first, from the right, if there
// are rows enough: their texts would else be in the way of the lines of others.
func (h *Histogram) flagOrder(rows, n int) []Flag {
	edge := len(h.Flags)
	switch rows {
	case 1:
		return h.Flags
	case 2:
		edge = min(edge, 3)
	}
	near := func(i int) bool {
		f := h.Flags[i]
		return i < edge && h.Column(f.At, n)+Width(f.Name)+Width(f.Value)+3 > n
	}
	var first, rest []Flag
	for i, f := range h.Flags {
		if near(i) {
			first = append(first, f)
		} else {
			rest = append(rest, f)
		}
	}
	slices.SortStableFunc(first, func(a, b Flag) int { return cmp.Compare(b.At, a.At) })
	return append(first, rest...)
}

// place finds the first row with room for a flag whose line is at x: text and
// line take w+1 cells, on the preferred side if that is free. It returns the
// row, or -1, and where the text begins.
func place(used [][]bool, x, w int, preferLeft bool) (row, from int, left bool) {
	sides := [...]bool{preferLeft, !preferLeft}
	for row := range used {
		for _, left := range sides {
			from, to := x, x+w+2
			if left {
				from, to = x-w, x+1
			}
			if from < 0 || to > len(used[row]) || !free(used[row], from-1, to+1) || !columnFree(used, row, x) {
				continue
			}
			for i := from; i < to; i++ {
				used[row][i] = true
			}
			return row, from, left
		}
	}
	return -1, 0, false
}

func free(row []bool, from, to int) bool {
	for i := max(from, 0); i < min(to, len(row)); i++ {
		if row[i] {
			return false
		}
	}
	return true
}

// columnFree says whether a line can be drawn from row down to the plot.
func columnFree(used [][]bool, row, x int) bool {
	for _, r := range used[row+1:] {
		if r[x] {
			return false
		}
	}
	return true
}

func (h *Histogram) axis(c *Canvas, th *Theme) {
	c.Fill(0, 0, c.W, 1, th.H, th.Line)
	fine := math.Log10(h.High/h.Low) < 2.2
	end := -1
	for v := Floor125(h.Low); v <= h.High*1.0001; v = Next125(v) {
		decade := math.Abs(math.Log10(v)-math.Round(math.Log10(v))) < 1e-6
		x := int(math.Round(h.column(v, c.W)))
		if x < 0 || !decade && !fine {
			continue
		}
		x = min(x, c.W-1)
		label := h.XLabel(v)
		from := min(max(x-(Width(label)-1)/2, 0), c.W-Width(label))
		if from <= end {
			continue
		}
		c.Put(x, 0, th.Tick, th.Line)
		end = c.Text(from, 1, label, th.Muted)
	}
	h.floor(c, th)
	if h.Cursor >= 0 {
		c.Put(h.Cursor, 0, th.Cursor, th.Bright)
	}
}

// floor marks on the axis what every value includes; off the axis it is too little to
// matter.
func (h *Histogram) floor(c *Canvas, th *Theme) {
	if h.Floor < h.Low || h.Floor > h.High {
		return
	}
	const name = "the probe's own share"
	x := h.Column(h.Floor, c.W)
	c.Put(x, 0, th.Up, th.Bright)
	if from := x + 1; from+Width(name)+2 <= c.W {
		c.Text(from, 0, " "+name+" ", th.Muted)
	} else if from := x - Width(name) - 2; from >= 0 {
		c.Text(from, 0, " "+name+" ", th.Muted)
	}
}
