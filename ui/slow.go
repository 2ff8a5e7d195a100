package ui

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"uprobetop/probes"
	"uprobetop/ui/chart"
	"uprobetop/ui/format"
)

// slowState is what the view of slow calls remembers between drawings.
type slowState struct {
	bySlowest bool
	callList
}

// slowCalls are the calls of a row in the order of the view.
func (m *model) slowCalls(r *row) []probes.Call {
	return m.history().calls[r.shown.ID].inOrder(m.charts.slow.bySlowest)
}

// stepCall selects another call.
func (m *model) stepCall(by int) {
	if r := m.selected; r != nil && r.shown != nil {
		m.charts.slow.step(m.slowCalls(r), by)
	}
}

// turnCalls has the slowest first, or the newest.
func (m *model) turnCalls() {
	s := &m.charts.slow
	s.bySlowest, s.at, s.top = !s.bySlowest, callID{}, 0
}

// callColumns is where the columns stand in a view of some width. Those of
// numbers are given by the cell behind them.
type callColumns struct {
	time, latency, thread, threadW, cpu, bar, barW int
	tid, ratio                                     int // 0: none
}

func callLayout(w int) callColumns {
	l := callColumns{time: 2, latency: 23, tid: 31, thread: 33, threadW: 9, cpu: 46, bar: 48}
	switch {
	case w >= 100:
		l = callColumns{time: 4, latency: 26, tid: 34, thread: 36, threadW: 15, cpu: 55, bar: 58, ratio: w - 4}
	case w < 58:
		l = callColumns{time: 2, latency: 23, thread: 25, threadW: 9, cpu: 38, bar: 40}
	case w >= 76:
		l = callColumns{time: 4, latency: 26, tid: 34, thread: 36, threadW: 11, cpu: 51, bar: 53, ratio: w - 2}
	}
	l.barW = w - 4 - l.bar
	if l.ratio > 0 {
		l.barW = l.ratio - 10 - l.bar
	}
	return l
}

func drawSlow(m *model, c *chart.Canvas, r *row) {
	if r.shown.Kind != probes.Return {
		m.drawNotTimed(c, r)
		return
	}
	m.charts.fit(r, m.window())
	calls, s := m.slowCalls(r), &m.charts.slow
	if len(calls) == 0 {
		m.drawNoCalls(c, r)
		return
	}
	longest := slices.MaxFunc(calls, func(a, b probes.Call) int { return int(a.Latency - b.Latency) }).Latency
	full := s.full.follow(float64(max(longest, 1)), m.shown.Elapsed, higher)
	hot, _ := hottest(calls)
	l := callLayout(c.W)
	m.drawCallHeads(c, l, calls)
	m.drawCallList(c, &s.callList, calls, l.time, true, func(line *chart.Canvas, call *probes.Call) {
		m.drawCall(line, l, call, r, full, hot)
	})
}

// drawNotTimed says why there are no calls of a row that only counts.
func (m *model) drawNotTimed(c *chart.Canvas, r *row) {
	th := m.th
	if r.usdt() {
		c.Text(3, 0, "A usdt probe is a point in the code: there are no calls of it.", th.Text)
		return
	}
	c.Text(3, 0, "A uprobe does not see its calls return.", th.Text)
	if m.opts.Recorded {
		return
	}
	c.Text(c.Text(3, 2, "press ", th.Muted), 2, "r", th.Key)
	c.Text(10, 2, ": calls are timed with a return probe", th.Muted)
}

// drawNoCalls says why the list is empty.
func (m *model) drawNoCalls(c *chart.Canvas, r *row) {
	th, t := m.th, &r.slow
	switch {
	case m.opts.Recorded:
		c.Text(3, 0, "No slow call of it is in the recording so far.", th.Text)
	case !t.chosen && !m.slowLooked():
		at := itoa(slices.IndexFunc(m.views, func(v view) bool { return v.title == slowTitle }) + 1)
		x := c.Text(3, 0, at, th.Key)
		c.Text(x+1, 0, "report calls near the p99 and above", th.Text)
	case !t.chosen:
		c.Text(3, 0, "No call has come yet to choose a threshold by.", th.Text)
	case t.over == 0:
		c.Text(3, 0, "No call has come since every one is reported.", th.Text)
	default:
		x := c.Text(3, 0, "No call took ", th.Text)
		x = c.Text(x, 0, format.RoundLatency(float64(t.over)), th.Bright)
		if l := m.history().calls[r.shown.ID]; l != nil {
			c.Text(x, 0, " or longer since "+l.since.Format("15:04:05")+".", th.Text)
		}
		if r.num.calls > 0 {
			c.Text(3, 1, "The p99 of all calls is "+format.Latency(r.num.p99)+", the longest took "+m.largest(&r.num)+".", th.Muted)
		}
	}
}

func (m *model) drawCallHeads(c *chart.Canvas, l callColumns, calls []probes.Call) {
	th := m.th
	timeStyle, latencyStyle := th.Bright, th.Muted
	if m.charts.slow.bySlowest {
		timeStyle, latencyStyle = th.Muted, th.Bright
	}
	end := c.Text(l.time, 0, "TIME", timeStyle)
	x := c.Right(l.latency, 0, "LATENCY", latencyStyle)
	if m.charts.slow.bySlowest {
		c.Put(x-2, 0, th.Down, th.Accent)
	} else {
		c.Put(end+1, 0, th.Down, th.Accent)
	}
	if l.tid > 0 {
		c.Right(l.tid, 0, "TID", th.Muted)
	}
	c.Text(l.thread, 0, "THREAD", th.Muted)
	c.Right(l.cpu, 0, "CPU", th.Muted)
	if l.ratio > 0 {
		c.Right(l.ratio, 0, th.Times+" P50", th.Muted)
	}
	m.drawPartHeads(c.Sub(l.bar, 0, l.barW, 1), calls)
}

// drawPartHeads says what the parts of the bars are.
func (m *model) drawPartHeads(bar *chart.Canvas, calls []probes.Call) {
	th := m.th
	if !slices.ContainsFunc(calls, func(c probes.Call) bool { return c.Thread != nil }) {
		return
	}
	at := 0
	for _, p := range m.callParts(0, 0, 0) {
		if at+chart.Width(p.name)+2 > bar.W {
			return
		}
		bar.Put(at, 0, p.glyph, p.style)
		at = bar.Text(at+2, 0, p.name, th.Muted) + 2
	}
	if at+len("f faults") <= bar.W {
		bar.Text(at, 0, "f faults", th.Muted)
	}
}

// drawCall draws one call. full is the latency of a bar that is full.
func (m *model) drawCall(c *chart.Canvas, l callColumns, call *probes.Call, r *row, full float64, hot int) {
	th := m.th
	c.Text(l.time, 0, call.At.Format("15:04:05.000"), th.Text)
	c.Right(l.latency, 0, format.Latency(float64(call.Latency)), th.Bright)
	if l.tid > 0 {
		c.Right(l.tid, 0, m.tid(call), th.Text)
	}
	c.Text(l.thread, 0, chart.Cut(clean(call.Comm), l.threadW, th.Ellipsis), th.Muted)
	cpu := th.Text
	if call.CPU == hot {
		cpu = th.Hot.With(chart.Bold)
	}
	c.Right(l.cpu, 0, itoa(call.CPU), cpu)
	m.drawCallBar(c.Sub(l.bar, 0, l.barW, 1), call, full)
	if call.Vague() {
		c.Put(l.bar+l.barW, 0, '~', th.Warn)
	}
	m.drawFaults(c, l.bar+l.barW+1, call)
	if l.ratio == 0 {
		return
	}
	if r.num.p50 == 0 {
		c.Right(l.ratio, 0, string(th.Dash), th.Faint)
		return
	}
	c.Right(l.ratio, 0, format.Table(float64(call.Latency)/r.num.p50), th.Text)
}

// tid is the id of the thread of a call, if it has one here.
func (m *model) tid(call *probes.Call) string {
	if call.Outside() {
		return string(m.th.Dash)
	}
	return itoa(call.TID)
}

func (m *model) drawFaults(c *chart.Canvas, x int, call *probes.Call) {
	if t := call.Thread; t != nil && t.MajorFaults > 0 {
		c.Put(x, 0, 'F', m.th.Warn)
	} else if t != nil && t.MinorFaults > 0 {
		c.Put(x, 0, 'f', m.th.Muted)
	}
}

// hottest is the CPU on which over half of the calls returned, and how many; -1
// if there is none.
func hottest(calls []probes.Call) (cpu, n int) {
	count := map[int]int{}
	for i := range calls {
		cpu := calls[i].CPU
		if count[cpu]++; 2*count[cpu] > len(calls) && len(calls) > 3 {
			return cpu, countOn(calls, cpu)
		}
	}
	return -1, 0
}

func countOn(calls []probes.Call, cpu int) int {
	n := 0
	for i := range calls {
		if calls[i].CPU == cpu {
			n++
		}
	}
	return n
}

// drawSlowReading says how much of everything the list is.
func drawSlowReading(m *model, c *chart.Canvas, r *row) {
	l := m.history().calls[r.shown.ID]
	if r.shown.Kind != probes.Return || l == nil {
		return
	}
	th := m.th
	x := 3
	say := func(st chart.Style, texts ...string) { // the first that fits
		for _, text := range texts {
			if x+chart.Width(text) < c.W {
				x = c.Text(x, 0, text, st) + 3
				return
			}
		}
	}
	calls := m.slowCalls(r)
	held, lost := m.shown.HeldBack-l.base.held, m.shown.Lost.Calls-l.base.lost
	all, of := l.reported, " of all probes"
	if len(m.history().calls) == 1 {
		all, of = all+held+lost, ""
	}
	if all > 0 {
		say(th.Text, format.Count(uint64(len(calls)))+" of "+format.Count(all)+" shown")
	}
	if held > 0 {
		s := format.Count(held) + of + " held back"
		say(th.Muted, s+" by the limiter, all of them in the histogram", s+", in the histogram", s)
	}
	if lost > 0 {
		say(th.Warn, format.Count(lost)+of+" lost: the ring was "+ringWas(lost, m.shown.Lost.Busy-l.base.busy), format.Count(lost)+of+" lost")
	}
	if n := m.history().skipped; n > 0 {
		say(th.Warn, format.Things(int(n), "tick")+" not seen by the screen")
	}
	if hot, n := hottest(calls); hot >= 0 && m.shown.CPUs > 1 {
		text := itoa(n) + " of " + itoa(len(calls)) + " on "
		if x+chart.Width(text)+8 < c.W {
			x = c.Text(c.Text(x, 0, text, th.Muted), 0, "cpu "+itoa(hot), th.Hot.With(chart.Bold)) + 3
		}
	}
	order := " slowest first"
	if m.charts.slow.bySlowest {
		order = " newest first"
	}
	if x+len(order)+2 < c.W-2 {
		c.Right(c.Right(c.W-2, 0, order, th.Muted), 0, "y", th.Key)
	}
}

// drawThreshold ends the rule with what is reported, and returns where that
// begins.
func drawThreshold(m *model, c *chart.Canvas) int {
	th, r := m.th, m.selected
	if r == nil || r.shown == nil || r.shown.Kind != probes.Return {
		return c.W - 1
	}
	x := c.W - 1
	if !m.opts.Recorded {
		x = c.Right(x, 0, " threshold ", th.Muted)
		minus := x - 1
		x = c.Right(x, 0, "+ -", th.Key)
		for i, at := range [...]int{x, minus} {
			m.spot(c, at, 0, 1, 1, func(m *model, _ int) tea.Cmd {
				if !m.canStep() {
					return nil
				}
				return m.stepThreshold(i == 0)
			})
		}
		x -= 2
	}
	text := m.thresholdText(r, c.W)
	c.Fill(x, 0, 2, 1, ' ', chart.Style{})
	return c.Right(x, 0, " "+text, th.Text)
}
