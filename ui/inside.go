package ui

import (
	"slices"
	"time"

	"uprobetop/probes"
	"uprobetop/ui/chart"
	"uprobetop/ui/format"
)

const insideTitle = "inside"

// insideState is what the view of who is inside remembers between drawings.
type insideState struct {
	at   callID // the selected call; zero: the first
	top  int    // first visible
	full calm   // age of a bar that is full
}

// insiders are the listed calls in flight of a row, the oldest first, and which of
// them is selected.
func (m *model) insiders(r *row) (calls []probes.Call, at int) {
	calls = m.shown.Inside.Of(r.shown.ID)
	at = slices.IndexFunc(calls, func(c probes.Call) bool { return idOf(&c) == m.charts.inside.at })
	return calls, max(at, 0)
}

// stepInside selects another call.
func (m *model) stepInside(by int) {
	r := m.selected
	if r == nil || r.shown == nil {
		return
	}
	calls, at := m.insiders(r)
	if len(calls) == 0 {
		return
	}
	at = min(max(at+by, 0), len(calls)-1)
	m.charts.inside.at = callID{}
	if at > 0 {
		m.charts.inside.at = idOf(&calls[at])
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
	calls, at := m.insiders(r)
	if len(calls) == 0 {
		m.drawNobody(c, r)
		return
	}
	rows, about := c.H-1, 0
	if c.H >= 5 {
		about = 1
	}
	if m.airy() && c.H >= 10 {
		about = 2
	}
	rows -= about
	s := &m.charts.inside
	s.top = max(min(s.top, at, len(calls)-rows), at-rows+1, 0)
	full := s.full.follow(float64(max(r.shown.Oldest, 1)), m.shown.Elapsed, higher)
	l := insideLayout(c.W, m.opts.Doing != nil && !m.frozen)
	m.drawInsideHeads(c, l, calls)
	for y := 1; y <= rows && s.top+y-1 < len(calls); y++ {
		i := s.top + y - 1
		line := c.Sub(0, y, c.W, 1)
		m.drawInsider(line, l, &calls[i], r, full)
		id := idOf(&calls[i])
		m.spotOn(line, func(m *model) { m.charts.inside.at = id })
		if i == at {
			selectLine(line.Sub(1, 0, c.W-2, 1), l.since-3, m.th)
		}
	}
	m.scrollOn(c.Sub(0, 1, c.W, rows), (*model).stepInside)
	if about > 0 {
		m.drawAboutCall(c.Sub(0, c.H-1, c.W, 1), &calls[at], false)
	}
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
	calls, _ := m.insiders(r)
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
