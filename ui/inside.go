package ui

import (
	"time"

	"uprobetop/probes"
	"uprobetop/ui/chart"
	"uprobetop/ui/format"
)

const insideTitle = "inside"

// stepInside selects another call.
func (m *model) stepInside(by int) {
	if r := m.selected; r != nil && r.shown != nil {
		m.charts.inside.step(m.shown.Inside.Of(r.shown.ID), by)
	}
}

// insideColumns is where the columns stand in a view of some width. Those of
// numbers are given by the cell behind them.
type insideColumns struct {
	since, age, tid, thread, threadW, bar, barW int
	state, stateW                               int // 0: none
}

func insideLayout(w int, states bool) insideColumns {
	s := callLayout(w)
	l := insideColumns{since: s.time, age: s.latency, tid: s.tid, thread: s.thread, threadW: s.threadW}
	if l.tid == 0 { // who hangs matters more than where the bar ends
		l.tid, l.thread = 31, 33
	}
	l.bar = l.thread + l.threadW + 2
	if states && w >= 76 {
		l.state, l.stateW = l.bar, 14
		if w >= 100 {
			l.stateW = 22
		}
		l.bar += l.stateW + 2
	}
	l.barW = w - 4 - l.bar
	return l
}

// drawInside lists the calls that have not returned.
func drawInside(m *model, c *chart.Canvas, r *row) {
	if r.shown.Kind != probes.Return {
		m.drawNotTimed(c, r)
		return
	}
	m.charts.fit(r, m.window())
	calls, s := m.shown.Inside.Of(r.shown.ID), &m.charts.inside
	if len(calls) == 0 {
		m.drawNobody(c, r)
		return
	}
	full := s.full.follow(float64(max(r.shown.Oldest, 1)), m.shown.Elapsed, higher)
	l := insideLayout(c.W, m.opts.Doing != nil && !m.frozen)
	m.drawInsideHeads(c, l, calls)
	m.drawCallList(c, s, calls, l.since, false, func(line *chart.Canvas, call *probes.Call) {
		m.drawInsider(line, l, call, r, full)
	})
}

// drawNobody says why the list is empty.
func (m *model) drawNobody(c *chart.Canvas, r *row) {
	th, n := m.th, r.shown.InFlight
	if r.shown.NoFrames {
		c.Text(3, 0, "Session cookies do not tell who is inside: --inflight task does.", th.Text)
		return
	}
	if n <= 0 {
		c.Text(3, 0, "Nobody is inside: every call has come to an end.", th.Text)
		if r.num.calls > 0 {
			c.Text(3, 1, "The longest took "+m.largest(&r.num)+".", th.Muted)
		}
		return
	}
	are := " are in flight"
	if n == 1 {
		are = " is in flight"
	}
	c.Text(3, 0, format.Things(int(n), "call")+are+", and not seen in any thread:", th.Text)
	why := "they have only just begun, or their threads have jumped out of them"
	if m.shown.Unlisted(r.shown) > 0 {
		why = "their threads are outside of this PID namespace, or have only just begun"
	}
	if r.shown.State == probes.Stopped {
		why = "the probe is stopped, and their returns go by unseen"
	}
	for i, part := range wrap(why, c.W-6) {
		c.Text(3, 1+i, part, th.Muted)
	}
}

func (m *model) drawInsideHeads(c *chart.Canvas, l insideColumns, calls []probes.Call) {
	th := m.th
	c.Text(l.since, 0, "SINCE", th.Muted)
	x := c.Right(l.age, 0, "AGE", th.Bright)
	c.Put(x-2, 0, th.Down, th.Accent)
	c.Right(l.tid, 0, "TID", th.Muted)
	c.Text(l.thread, 0, "THREAD", th.Muted)
	if l.state > 0 {
		c.Text(l.state, 0, "STATE", th.Muted)
	}
	m.drawPartHeads(c.Sub(l.bar, 0, l.barW, 1), calls)
}

// drawInsider draws one call in flight. full is the age of a bar that is full. One
// that is older than any that has returned stands out.
func (m *model) drawInsider(c *chart.Canvas, l insideColumns, call *probes.Call, r *row, full float64) {
	th := m.th
	c.Text(l.since, 0, call.At.Add(-call.Latency).Format("15:04:05.000"), th.Text)
	age := th.Bright
	if r.shown.Latency != nil && call.Latency > time.Duration(r.shown.Latency.Max) {
		age = th.TMax.With(chart.Bold)
	}
	c.Right(l.age, 0, format.Latency(float64(call.Latency)), age)
	c.Right(l.tid, 0, m.tid(call), th.Text)
	c.Text(l.thread, 0, chart.Cut(clean(call.Comm), l.threadW, th.Ellipsis), th.Muted)
	if l.state > 0 {
		c.Text(l.state, 0, chart.Cut(clean(m.opts.Doing(call.PID, call.TID)), l.stateW, th.Ellipsis), th.Text)
	}
	m.drawCallBar(c.Sub(l.bar, 0, l.barW, 1), call, full)
	m.drawFaults(c, l.bar+l.barW+1, call)
}

// drawInFlight ends a rule with how many calls are in flight, or unreturned where that
// is not known, and returns where that begins.
func drawInFlight(m *model, c *chart.Canvas) int {
	r := m.selected
	if r == nil || r.shown == nil || r.shown.Kind != probes.Return {
		return c.W - 1
	}
	text := " in flight"
	if r.shown.NoFrames {
		text = " unreturned"
	}
	text = format.Count(uint64(max(r.shown.Pending(), 0))) + text
	if in := m.shown.Inside; in != nil {
		if late := m.shown.At.Sub(in.At); late >= time.Second {
			text += ", seen " + format.Seconds(late) + " ago"
		}
	}
	return c.Right(c.W-1, 0, " "+text+" ", m.th.Text)
}

// drawInsideReading holds the calls in flight against those that have returned.
func drawInsideReading(m *model, c *chart.Canvas, r *row) {
	calls := m.shown.Inside.Of(r.shown.ID)
	if len(calls) == 0 {
		return
	}
	th, n := m.th, &r.num
	x := c.Text(3, 0, format.Count(uint64(len(calls)))+" shown, the oldest first", th.Text)
	if n := m.shown.Unlisted(r.shown); n > 0 {
		x = c.Text(x, 0, ", and "+format.Count(uint64(n))+" not seen from this PID namespace", th.Warn)
	}
	x += 3
	if n.calls > 0 && r.shown.Latency != nil {
		text := "of those that returned the p99 took " + format.Latency(n.p99) + ", the longest " + format.Latency(n.max)
		if x+chart.Width(text) < c.W {
			c.Text(x, 0, text, th.Muted)
		}
	}
}
