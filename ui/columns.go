package ui

import (
	"slices"

	"uprobetop/probes"
	"uprobetop/ui/chart"
	"uprobetop/ui/format"
)

// column is one column of the table. Its width depends on the width of the
// screen and on nothing else.
type column struct {
	title string
	width func(screen int) int // with the gap before it; 0: not shown
	left  bool                 // begins at the left, after a gap of two
	units []format.Unit        // nil: a plain count
	value func(*row) (v float64, ok bool)
	text  func(*row) string                       // to sort by, instead of a value
	draw  func(m *model, c *chart.Canvas, r *row) // instead of a value
	warn  bool                                    // anything but 0 wants a look
}

// from is a width that does not grow.
func from(screen, cells int) func(int) int {
	return func(w int) int {
		if w < screen {
			return 0
		}
		return cells
	}
}

func steps(pairs ...int) func(int) int {
	return func(w int) int {
		cells := 0
		for i := 0; i < len(pairs); i += 2 {
			if w >= pairs[i] {
				cells = pairs[i+1]
			}
		}
		return cells
	}
}

// whenTimed is a value that only a uretprobe with calls in the window has.
func whenTimed(f func(*numbers) float64) func(*row) (float64, bool) {
	return func(r *row) (float64, bool) {
		if r.shown == nil || r.shown.Kind != probes.Return {
			return 0, false
		}
		return f(&r.num), true
	}
}

// nameColumn is the one that has the room left by the others.
var nameColumn = column{title: "FUNCTION", left: true, text: func(r *row) string { return r.name }}

// columns is the table from left to right, behind FUNCTION.
func columns() []column {
	return []column{
		{title: "KIND", width: from(100, 6), left: true, draw: drawKind, text: func(r *row) string { return kindWord(r) }},
		{title: "HITS", width: from(0, 10), units: format.RateUnits, value: func(r *row) (float64, bool) { return r.num.rate, true }},
		{title: "LOAD", width: from(118, 8), units: format.NoUnit, value: whenTimed(func(n *numbers) float64 { return n.load })},
		{title: "LAST 30s", width: steps(76, 10, 100, 14, 118, 12), left: true, draw: drawTrail, value: func(r *row) (float64, bool) { return r.trail.mean(30), true }},
		{title: "PER CPU", width: steps(118, 12, 150, 34, 202, 66), left: true, draw: drawStrip, value: imbalance},
		{title: "SELF", width: from(300, 9), units: format.TimeUnits, value: whenTimed(func(n *numbers) float64 { return n.self })},
		{title: "P50", width: from(76, 8), units: format.TimeUnits, value: whenTimed(func(n *numbers) float64 { return n.p50 })},
		{title: "P90", width: from(140, 9), units: format.TimeUnits, value: whenTimed(func(n *numbers) float64 { return n.p90 })},
		{title: "P99", width: from(0, 9), units: format.TimeUnits, value: whenTimed(func(n *numbers) float64 { return n.p99 })},
		{title: "P99.9", width: from(180, 11), units: format.TimeUnits, value: whenTimed(func(n *numbers) float64 { return n.p999 })},
		{title: "MAX", width: from(76, 8), units: format.TimeUnits, value: whenTimed(func(n *numbers) float64 { return max(n.max, n.oldest) })},
		{title: "IN FLIGHT", width: from(180, 10), value: inFlight},
		{title: "MISSED", width: from(100, 8), warn: true, value: whenTimedStat(func(s *probes.Stats) float64 { return float64(s.Missed.Total()) })},
	}
}

// whenTimedStat is a term of the ledger, which only a uretprobe has.
func whenTimedStat(f func(*probes.Stats) float64) func(*row) (float64, bool) {
	return func(r *row) (float64, bool) {
		if r.shown == nil || r.shown.Kind != probes.Return {
			return 0, false
		}
		return f(r.since()), true
	}
}

// inFlight is not known where the store keeps no frames.
func inFlight(r *row) (float64, bool) {
	v, ok := whenTimedStat(func(s *probes.Stats) float64 { return float64(s.InFlight) })(r)
	return v, ok && !r.shown.NoFrames
}

// place is where a column stands on a screen of a certain width.
type place struct {
	*column
	index int // in columns(), and of its unit
	x, w  int // without the gap
}

// layOut places the columns for a screen that is w cells wide.
func (m *model) layOut(w int) {
	m.places = m.places[:0]
	clear(m.short)
	x := w - 1
	widths := m.cells(w)
	for i := len(m.columns) - 1; i >= 0; i-- {
		col, cells := &m.columns[i], widths[i]
		if cells == 0 {
			continue
		}
		x -= cells
		gap := 1
		if col.left && col.draw != nil && col.title != "KIND" {
			gap = 2
		}
		p := place{column: col, index: i, x: x + gap, w: cells - gap}
		if col.title == "KIND" {
			p.x, p.w = x, cells-1
		}
		m.places = append(m.places, p)
	}
	m.nameEnd = x - 1
}

// shownColumn returns the place of a column by title, or nil.
func (m *model) shownColumn(title string) *place {
	for i := range m.places {
		if m.places[i].title == title {
			return &m.places[i]
		}
	}
	return nil
}

// room is the number of cells before the decimal point.
func (p *place) room() int { return p.w - 3 }

func (m *model) updateUnits() {
	values := make([]float64, 0, len(m.rows))
	for i := range m.places {
		p := &m.places[i]
		if len(p.units) < 2 {
			continue
		}
		values = values[:0]
		for _, r := range m.rows {
			if r.shown == nil || m.condition(r) != measuring {
				continue
			}
			if v, ok := p.value(r); ok {
				values = append(values, v)
			}
		}
		m.units[p.index].update(values, p.units, p.room(), m.shown.Elapsed)
	}
}

// heading is the column's title with its unit and the sign of the sort.
func (m *model) heading(p *place) string {
	if len(p.units) < 2 || m.units[p.index].at == len(p.units) {
		return p.title
	}
	return p.title + " " + p.units[m.units[p.index].at].Name
}

// drawValue draws one number so that the decimal points of the column stand
// under each other.
func (m *model) drawValue(c *chart.Canvas, y int, p *place, r *row) {
	th := m.th
	st := th.Text
	if p.title == "HITS" {
		st = th.Bright
	}
	end, ones := p.x+p.w, p.x+p.w-3
	if p.units == nil {
		ones = end
	}
	v, ok := p.value(r)
	grows := p.title == "MAX" && r.num.oldest > 0
	atLeast := func(x int) {
		if grows {
			c.Right(x, y, th.AtLeast, st)
		}
	}
	switch {
	case !ok || len(p.units) > 1 && p.title != "HITS" && r.num.calls == 0 && !grows:
		c.Put(ones-1, y, th.Dash, th.Faint)
	case v == 0:
		c.Put(ones-1, y, '0', th.Muted)
	case p.units == nil:
		if p.warn {
			st = th.Warn
		}
		c.Right(end, y, fitCount(v, p.w), st)
	default:
		at := m.units[p.index].at
		if at == len(p.units) {
			atLeast(c.Right(end, y, p.own(v), st))
			return
		}
		scaled := v / p.units[at].Scale
		s := format.Table(scaled)
		if len(wholePart(s)) > p.room() || p.ofTime() && scaled < leastDigit {
			// The unit has not followed yet. A rate's own may be none, which would
			// read as the column's: a small one stays in that.
			atLeast(c.Right(end, y, p.own(v), st))
			return
		}
		c.Text(ones-len(wholePart(s)), y, s, st)
		atLeast(ones - len(wholePart(s)))
	}
}

func (p *place) ofTime() bool { return &p.units[0] == &format.TimeUnits[0] }

// own is a value with a unit of its own.
func (p *place) own(v float64) string {
	if p.ofTime() {
		return format.Latency(v)
	}
	return format.SI(v)
}

// fitCount is a count in full, or as 6.85M where that is too long.
func fitCount(v float64, w int) string {
	s := format.Count(uint64(max(v, 0)))
	if v < 0 {
		s = "-" + format.Count(uint64(-v))
	}
	if len(s) > w {
		return format.SI(v)
	}
	return s
}

// kindWords are the kinds as the screen writes them.
var kindWords = [...]string{probes.Entry: "entry", probes.Return: "ret", probes.USDT: "usdt"}

// kindWord is the kind of a row's probe, also of one that does not stand yet or
// never did.
func kindWord(r *row) string {
	switch {
	case r.stat != nil:
		return kindWords[r.stat.Kind]
	case r.want != off:
		return kindWords[r.want.kind(r.fn)]
	}
	return ""
}

func drawKind(m *model, c *chart.Canvas, r *row) {
	word, st := kindWord(r), m.th.Muted
	if word == "" {
		word = string(m.th.Dash)
	}
	if m.condition(r) == measuring {
		_, st = m.kindSign(r)
	}
	c.Text(0, 0, word, st)
}

// imbalance is how far the hottest CPU is from the mean; 1 if all are equal.
func imbalance(r *row) (float64, bool) {
	rates, sum := r.num.perCPU(), 0.0
	for _, v := range rates {
		sum += v
	}
	if sum == 0 {
		return 0, false
	}
	return slices.Max(rates) * float64(len(rates)) / sum, true
}

func drawTrail(m *model, c *chart.Canvas, r *row) {
	chart.Sparkline(c, r.trail.cells(m.sparkSecond(), c.W), m.th)
}

func drawStrip(m *model, c *chart.Canvas, r *row) {
	chart.Strip(c, r.num.perCPU(), m.th)
}
