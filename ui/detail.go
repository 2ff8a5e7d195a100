package ui

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"uprobetop/probes"
	"uprobetop/ui/chart"
	"uprobetop/ui/format"
)

// view is one way to look at the selected function.
type view struct {
	title   string
	edge    func(m *model, c *chart.Canvas) int // ends the rule with what the numbers are of; returns where that begins
	draw    func(m *model, c *chart.Canvas, r *row)
	reading func(m *model, c *chart.Canvas, r *row) // one row; may be nil
	turn    func(m *model)                          // the y key; may be nil
	step    func(m *model, by int)                  // the keys ← and →; may be nil
}

// views are the tabs, in the order of their digits.
func views() []view {
	return []view{
		{"latency", drawWindow, drawLatency, drawLatencyReading, func(m *model) { m.charts.linear = !m.charts.linear }, (*model).moveCursor},
		{"CPUs", drawWindow, drawCPUs, nil, nil, nil},
		{slowTitle, drawThreshold, drawSlow, drawSlowReading, (*model).turnCalls, (*model).stepCall},
		{"ledger", drawSincePlaced, drawLedger, nil, nil, nil},
		{threadsTitle, drawSinceWatched, drawThreads, drawThreadsReading, (*model).turnThreads, (*model).stepThreads},
		{insideTitle, drawInFlight, drawInside, drawInsideReading, nil, (*model).stepInside},
	}
}

// drawDetail draws the rule and what is under it.
func (m *model) drawDetail(c *chart.Canvas) {
	r := m.selected
	if r == nil {
		return
	}
	if !m.split() {
		m.drawShortRule(c.Sub(0, 0, c.W, 1), r)
		return
	}
	if m.wide() {
		m.drawPanes(c, r)
		return
	}
	m.drawRule(c.Sub(0, 0, c.W, 1), r)
	top := 1
	if m.airy() {
		top = 2
	}
	m.drawView(c.Sub(0, top, c.W, c.H-top), m.views[m.viewAt], r)
}

// drawView draws a view and its reading line.
func (m *model) drawView(c *chart.Canvas, v view, r *row) {
	h := c.H
	switch {
	case m.airy() && v.reading == nil:
		h--
	case m.airy():
		h -= 2
		if m.measured(r) && !m.explains(r) {
			v.reading(m, c.Sub(0, h, c.W, 1), r)
		}
	}
	body := c.Sub(0, 0, c.W, h)
	if m.explains(r) {
		m.drawWhy(body, r)
		return
	}
	if !m.measured(r) {
		m.drawNoNumbers(body, r)
		return
	}
	v.draw(m, body, r)
}

// measured says whether a row has numbers to look at.
func (m *model) measured(r *row) bool {
	return r.shown != nil && (r.shown.Hits > 0 || m.condition(r) == measuring)
}

// drawNoNumbers says what there is to say of a row without numbers.
func (m *model) drawNoNumbers(c *chart.Canvas, r *row) {
	th := m.th
	lines, keys := m.reasons(r)
	y := 0
	for i, line := range lines {
		st := th.Muted
		if i == 0 {
			st = th.Bright
		}
		for _, part := range wrap(line, c.W-6) {
			c.Text(3, y, part, st)
			y++
		}
	}
	for i := 0; i+1 < len(keys); i += 2 {
		c.Text(3, y+1+i/2, keys[i], th.Key)
		c.Text(11, y+1+i/2, keys[i+1], th.Text)
	}
}

// drawRule is the line between table and detail: function, tabs, window.
func (m *model) drawRule(c *chart.Canvas, r *row) {
	th := m.th
	c.Fill(0, 0, c.W, 1, th.H, th.Line)
	x := 1
	right := m.views[m.viewAt].edge(m, c)
	if hidden := m.hidden(); hidden != "" && !m.zoomed {
		right = c.Right(right-2, 0, " "+hidden+" ", th.Muted)
	}
	full := m.w >= 100 && m.h >= 30
	tabs := 0
	for i, v := range m.views {
		if full || i == m.viewAt {
			tabs += len(v.title) + 4
		} else {
			tabs += 3
		}
	}
	x = c.Text(x, 0, " "+shorten(r.name, right-x-tabs-4, th.Ellipsis)+" ", th.Bright) + 1
	for i, v := range m.views {
		from := x
		digit := itoa(i + 1)
		switch {
		case i == m.viewAt:
			x = c.Text(x, 0, " "+digit+" "+v.title+" ", th.Tab)
		case full:
			x = c.Text(x, 0, " "+digit, th.Key)
			x = c.Text(x, 0, " "+v.title+" ", th.Muted)
		default:
			x = c.Text(x, 0, " "+digit+" ", th.Muted)
		}
		m.spot(c, from, 0, x-from, 1, func(m *model, _ int) tea.Cmd { m.viewAt = i; return nil })
	}
}

// hidden says which rows are visible, if not all are.
func (m *model) hidden() string {
	n := m.tableRows()
	if n >= len(m.rows) {
		return ""
	}
	count := func(n int) string { return format.Count(uint64(n)) }
	return count(m.top+1) + "–" + count(m.top+n) + " of " + count(len(m.rows))
}

// drawWindow ends a rule with what the numbers are over, and returns where
// that begins.
func drawWindow(m *model, c *chart.Canvas) int {
	th := m.th
	x := c.Right(c.W-1, 0, "] ", th.Key)
	right := x
	x = c.Right(x, 0, m.windowName()+" ", th.Text)
	left := c.Right(x, 0, " [ ", th.Key)
	m.spot(c, left, 0, x-left, 1, func(m *model, _ int) tea.Cmd { m.turnWindow(-1); return nil })
	m.spot(c, right, 0, 2, 1, func(m *model, _ int) tea.Cmd { m.turnWindow(1); return nil })
	return left
}

func drawSincePlaced(m *model, c *chart.Canvas) int {
	return c.Right(c.W-1, 0, " "+m.sincePlaced()+" ", m.th.Text)
}

func (m *model) sincePlaced() string {
	if s := m.sinceClear(); s != "" {
		return s
	}
	if m.selected == nil || m.selected.shown == nil {
		return "since it was placed"
	}
	return "since it was placed, " + format.Span(m.shown.Elapsed-m.selected.shown.Placed)
}

func (m *model) windowName() string {
	d, zero := m.window(), m.history().zero
	switch {
	case zero != nil && (d == 0 || m.shown.Elapsed-zero.Elapsed < d):
		return m.sinceClear()
	case d == 0:
		return "since start"
	}
	return "last " + itoa(int(d/time.Second)) + "s"
}

// drawShortRule is the detail of a small screen.
func (m *model) drawShortRule(c *chart.Canvas, r *row) {
	th := m.th
	c.Fill(0, 0, c.W, 1, th.H, th.Line)
	right := c.W - 2
	if hidden := m.hidden(); hidden != "" {
		right = c.Right(right, 0, " "+hidden+" ", th.Muted) - 1
	}
	timed := m.condition(r) == measuring && r.shown != nil && r.shown.Kind == probes.Return && r.num.calls > 0
	room := right - 3
	if timed {
		room -= 25
	}
	x := c.Text(1, 0, " "+shorten(r.name, max(room, 10), th.Ellipsis)+" ", th.Bright)
	if !timed {
		return
	}
	for _, f := range []struct {
		name, text string
		style      chart.Style
	}{{"p50", format.Latency(r.num.p50), th.T90}, {"p99", format.Latency(r.num.p99), th.T99}, {"max", m.largest(&r.num), th.TMax}} {
		if x+len(f.name)+3+chart.Width(f.text) > right {
			return
		}
		x = c.Text(x, 0, " "+f.name, f.style.With(chart.Bold))
		x = c.Text(x, 0, " "+f.text+" ", th.Text)
	}
}

// drawZoomed gives one view the whole screen.
func (m *model) drawZoomed(c *chart.Canvas) {
	r, th := m.selected, m.th
	if r == nil {
		return
	}
	v := m.views[m.viewAt]
	if m.split() {
		m.drawRule(c.Sub(0, 0, c.W, 1), r)
		top := 1
		if m.airy() {
			top = 2
		}
		m.drawView(c.Sub(0, top, c.W, c.H-top), v, r)
		return
	}
	sign, st := m.sign(r, m.condition(r))
	c.Put(1, 0, sign, st)
	x := c.Text(3, 0, shorten(r.name, c.W-40, th.Ellipsis), th.Bright)
	x = c.Text(x+2, 0, itoa(m.viewAt+1)+" "+v.title, th.Muted)
	if v.title == slowTitle && r.shown != nil && r.shown.Kind == probes.Return {
		c.Text(x+2, 0, m.thresholdText(r, 0), th.Text)
	}
	if v.title == insideTitle && r.shown != nil && r.shown.InFlight > 0 {
		c.Text(x+2, 0, format.Count(uint64(r.shown.InFlight))+" in flight", th.Text)
	}
	drawKeys(c, c.W-1, 0, []string{"esc", "back"}, th)
	m.drawView(c.Sub(0, 1, c.W, c.H-1), v, r)
}

// wide says whether all views have room side by side.
func (m *model) wide() bool { return m.w >= 160 && m.h >= 45 }

// panes are how many views have a pane of their own on a wide screen.
const panes = 4

// drawPanes shows the first views at once: latency over ledger and slow calls, CPUs
// to the right. A view without a pane has that of the latency while it is chosen.
func (m *model) drawPanes(c *chart.Canvas, r *row) {
	left := c.W * 70 / 100
	low := 15
	if c.H >= 38 {
		low = 19
	}
	main := 0
	if m.viewAt >= panes {
		main = m.viewAt
	}
	m.drawPane(c.Sub(0, 0, left, c.H-low), main, r)
	half := left * 53 / 100
	m.drawPane(c.Sub(0, c.H-low, half, low), 3, r)
	m.drawPane(c.Sub(half+1, c.H-low, left-half-1, low), 2, r)
	c.Fill(half, c.H-low+1, 1, low-1, m.th.V, m.th.Grid)
	m.drawPane(c.Sub(left+1, 0, c.W-left-1, c.H), 1, r)
	c.Fill(left, 1, 1, c.H-1, m.th.V, m.th.Grid)
}

func (m *model) drawPane(c *chart.Canvas, at int, r *row) {
	th, v := m.th, m.views[at]
	c.Fill(0, 0, c.W, 1, th.H, th.Line)
	m.spotOn(c.Sub(0, 0, c.W, 1), func(m *model) { m.viewAt = at })
	x := 1
	right := v.edge(m, c)
	if at == 0 || at >= panes {
		x = c.Text(x, 0, " "+shorten(r.name, right-24, th.Ellipsis)+" ", th.Bright) + 1
	}
	if at == m.viewAt {
		c.Text(x, 0, " "+itoa(at+1)+" "+v.title+" ", th.Tab)
	} else {
		c.Text(c.Text(x, 0, " "+itoa(at+1), th.Key), 0, " "+v.title+" ", th.Text)
	}
	m.drawView(c.Sub(0, 2, c.W, c.H-2), v, r)
}
