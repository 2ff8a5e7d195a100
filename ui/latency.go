package ui

import (
	"fmt"
	"math"
	"time"

	"uprobetop/probes"
	"uprobetop/probes/hist"
	"uprobetop/ui/chart"
	"uprobetop/ui/format"
)

// chartState is what the views remember between drawings: where the cursor is,
// and axes that do not jump.
type chartState struct {
	cursor  float64 // ns; negative: nowhere
	linear  bool
	of      key // whose axes these are
	window  time.Duration
	low     calm
	high    calm
	top     calm
	cpus    calm
	columns int // of the chart as last drawn
	slow    slowState
	inside  callList
	threads threadState
}

// calm is a limit of an axis that grows at once and shrinks after 30 s.
type calm struct {
	v     float64
	since time.Duration // since when less would do
}

// follow takes what is needed at the time now and returns the limit. more says
// which of two limits leaves more room.
func (l *calm) follow(need float64, now time.Duration, more func(a, b float64) bool) float64 {
	switch {
	case l.v == 0 || more(need, l.v):
		l.v, l.since = need, 0
	case need == l.v:
		l.since = 0
	case l.since == 0:
		l.since = max(now, 1)
	case now-l.since >= shrinkPatience:
		l.v, l.since = need, 0
	}
	return l.v
}

// reset lets the axes be chosen anew.
func (l *chartState) reset() { l.of = key{} }

func higher(a, b float64) bool { return a > b }
func lower(a, b float64) bool  { return a < b }

// fit resets the axes when they are of another function or window.
func (l *chartState) fit(r *row, window time.Duration) {
	if l.of == r.key && l.window == window {
		return
	}
	l.of, l.window = r.key, window
	l.low, l.high, l.top, l.cpus = calm{}, calm{}, calm{}, calm{}
	l.slow, l.inside = slowState{bySlowest: l.slow.bySlowest}, callList{}
}

// plot prepares the histogram of a row.
func (m *model) plot(r *row) *chart.Histogram {
	l, th, n := &m.charts, m.th, &r.num
	l.fit(r, m.window())
	h := &chart.Histogram{
		Low: 100, High: 1e6, Top: 1000, Linear: l.linear, Cursor: -1,
		XLabel: format.RoundLatency, YLabel: format.RoundCount,
	}
	if n.calls == 0 {
		h.Empty = "no calls in the " + m.windowName()
		if m.sinceClear() != "" && m.windowName() == m.sinceClear() {
			h.Empty = "no calls " + m.sinceClear()
		} else if m.window() == 0 {
			h.Empty = "no calls yet"
		}
		if l.low.v > 0 {
			h.Low, h.High, h.Top = l.low.v, l.high.v, l.top.v
		}
		return h
	}
	var top uint64
	for i, count := range n.lat.Counts {
		if count == 0 {
			continue
		}
		low, high := hist.Bounds(i)
		if i == hist.Open {
			high = max(n.lat.Max, low) + 1
		}
		top = max(top, count)
		h.Buckets = append(h.Buckets, chart.Bucket{Low: float64(low), High: float64(high), Count: count})
	}
	now := m.shown.Elapsed
	low := chart.Floor125(max(h.Buckets[0].Low, 1))
	high := chart.Ceil125(h.Buckets[len(h.Buckets)-1].High)
	if high < low*10 {
		high = low * 10
	}
	h.Low, h.High = l.low.follow(low, now, lower), l.high.follow(high, now, higher)
	h.Top, h.Floor = float64(top), float64(r.shown.Floor.P50)
	h.P50, h.P90, h.P99 = n.p50, n.p90, n.p99
	h.Flags = []chart.Flag{
		{At: n.p50, Name: "p50", Value: format.Latency(n.p50), Style: th.T90, Left: true},
		{At: n.p99, Name: "p99", Value: format.Latency(n.p99), Style: th.T99},
		{At: n.max, Name: "max", Value: m.largest(n), Style: th.TMax},
		{At: n.p90, Name: "p90", Value: format.Latency(n.p90), Style: th.T90},
		{At: n.p999, Name: "p99.9", Value: format.Latency(n.p999), Style: th.TMax},
	}
	return h
}

// largest is the longest latency. Of a window whose extreme is not known, it is
// the bound of its bucket; while a call hangs that is older, it grows.
func (m *model) largest(n *numbers) string {
	if n.oldest > 0 {
		return m.th.AtLeast + format.Latency(n.oldest)
	}
	if n.bound {
		return m.th.AtMost + format.Latency(n.max)
	}
	return format.Latency(n.max)
}

// sized fits the count axis and the cursor to the columns of a chart.
func (m *model) sized(h *chart.Histogram, columns int) *chart.Histogram {
	if columns <= 0 {
		return h
	}
	m.charts.columns = columns
	top := 1.0
	for _, v := range h.Columns(columns) {
		top = math.Max(top, v)
	}
	if h.Empty == "" {
		h.Top = m.charts.top.follow(chart.Ceil125(top), m.shown.Elapsed, higher)
	}
	if m.charts.cursor > 0 && h.Empty == "" {
		h.Cursor = h.Column(m.charts.cursor, columns)
	}
	return h
}

func drawLatency(m *model, c *chart.Canvas, r *row) {
	if r.shown.Latency == nil {
		drawCounting(m, c, r)
		return
	}
	side := 0
	if m.w >= 76 && c.W >= 74 {
		side = 21
		if m.w >= 100 {
			side = 28
		}
	}
	plot := c.Sub(1, 0, c.W-2-side, c.H)
	if plot.W < 40 || plot.H < 6 {
		drawStatistics(m, c.Sub(3, 0, 26, c.H), r)
		return
	}
	m.sized(m.plot(r), chart.PlotWidth(plot.W)).Draw(plot, m.th)
	if side > 0 {
		c.Fill(c.W-side, 0, 1, c.H, m.th.V, m.th.Grid)
		drawStatistics(m, c.Sub(c.W-side+2, 0, side-3, c.H), r)
	}
}

// drawCounting is the latency view of what only counts: it says what there is instead.
func drawCounting(m *model, c *chart.Canvas, r *row) {
	th := m.th
	x := c.Text(3, 0, format.Count(r.since().Hits), th.Bright)
	x = c.Text(x+1, 0, "hits in "+m.countedFor(r), th.Muted)
	counts := r.shown.State == probes.Attached
	if counts {
		x = c.Text(c.Text(x, 0, ", now ", th.Muted), 0, format.SI(r.num.rate), th.Bright)
		c.Text(x, 0, "/s", th.Muted)
	}
	if r.usdt() {
		c.Text(3, 2, "A usdt probe is a point in the code: it has no return.", th.Text)
		for i, line := range wrap(clean(r.shown.Note), c.W-6) {
			c.Text(3, 4+i, line, th.Warn)
		}
		return
	}
	c.Text(3, 2, "A uprobe counts hits; it does not see them return.", th.Text)
	if !counts || m.opts.Recorded {
		return
	}
	c.Text(3, 4, "r", th.Key)
	c.Text(11, 4, "measure its latency too", th.Text)
	c.Text(3, 5, "space", th.Key)
	c.Text(11, 5, "no more of it", th.Text)
}

// moveCursor goes to the next column that has a bucket of its own.
func (m *model) moveCursor(by int) {
	r := m.selected
	if r == nil || r.num.calls == 0 || m.charts.columns == 0 {
		return
	}
	h, n := m.plot(r), m.charts.columns
	at := h.Column(m.charts.cursor, n) + by
	if m.charts.cursor <= 0 {
		at = h.Column(r.num.p50, n)
	}
	for ; at >= 0 && at < n; at += by {
		low, high := h.Bounds(at, n)
		if _, _, _, any := bucketsIn(r.num.lat, low, high); any {
			m.charts.cursor = math.Sqrt(low * high)
			return
		}
	}
}

// bucketsIn adds up the buckets whose middle lies in low ≤ v < high, so that
// every call is read at exactly one place of the cursor.
func bucketsIn(h *hist.Histogram, low, high float64) (from, to, calls uint64, any bool) {
	for i := range h.Counts {
		a, b := hist.Bounds(i)
		if i == hist.Open {
			b = max(h.Max, a) + 1
		}
		middle := (float64(a) + float64(b)) / 2
		if middle < low || middle >= high {
			continue
		}
		if !any {
			from = a
		}
		to, calls, any = b, calls+h.Counts[i], true
	}
	return from, to, calls, any
}

// drawLatencyReading says what the cursor is on, and the keys of the view.
func drawLatencyReading(m *model, c *chart.Canvas, r *row) {
	if r.shown.Latency == nil {
		return
	}
	th := m.th
	x := 7
	if m.charts.cursor > 0 && r.num.calls > 0 && m.charts.columns > 0 {
		h := m.plot(r)
		low, high := h.Bounds(h.Column(m.charts.cursor, m.charts.columns), m.charts.columns)
		from, to, calls, any := bucketsIn(r.num.lat, low, high)
		c.Put(x, 0, th.Cursor, th.Bright)
		if any {
			end := c.Text(x+2, 0, format.Latency(float64(from))+th.Range+format.Latency(float64(to)), th.Text)
			c.Text(end+2, 0, format.Count(calls)+" calls, "+format.Percent(float64(calls)/float64(r.num.calls)), th.Muted)
		}
	}
	axis := "log"
	if m.charts.linear {
		axis = "linear"
	}
	if c.W >= 100 {
		x = 56
	} else {
		x = c.W - 36
	}
	x = c.Text(x, 0, fmt.Sprintf("%c %c", th.Left, th.Right), th.Key)
	x = c.Text(x, 0, " bucket   ", th.Muted)
	x = c.Text(x, 0, "y", th.Key)
	c.Text(x, 0, " count axis: "+axis, th.Muted)
}
