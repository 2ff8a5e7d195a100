package ui

import (
	"slices"

	"uprobetop/probes"
	"uprobetop/ui/chart"
)

// callList is what a list of calls remembers between drawings.
type callList struct {
	at   callID // the selected call; zero: the first
	top  int    // first visible
	full calm   // latency of a bar that is full
}

// callID tells one call of a probe from another.
type callID struct {
	start uint64
	tid   int
}

func idOf(c *probes.Call) callID { return callID{c.Start, c.TID} }

// selected is which of the calls is.
func (l *callList) selected(calls []probes.Call) int {
	return max(slices.IndexFunc(calls, func(c probes.Call) bool { return idOf(&c) == l.at }), 0)
}

// step selects another call.
func (l *callList) step(calls []probes.Call, by int) {
	if len(calls) == 0 {
		return
	}
	at := min(max(l.selected(calls)+by, 0), len(calls)-1)
	l.at = callID{}
	if at > 0 {
		l.at = idOf(&calls[at])
	}
}

// drawCallList draws the calls that are visible, a line each below that of the heads, and
// what is known of the selected one under them. The first column begins at x.
func (m *model) drawCallList(c *chart.Canvas, l *callList, calls []probes.Call, x int, returned bool, line func(*chart.Canvas, *probes.Call)) {
	rows, about := c.H-1, 0
	if c.H >= 5 {
		about = 1
	}
	if m.airy() && c.H >= 10 {
		about = 2
	}
	rows -= about
	at := l.selected(calls)
	l.top = max(min(l.top, at, len(calls)-rows), at-rows+1, 0)
	for y := 1; y <= rows && l.top+y-1 < len(calls); y++ {
		call := &calls[l.top+y-1]
		under := c.Sub(0, y, c.W, 1)
		line(under, call)
		id := idOf(call)
		m.spotOn(under, func(*model) { l.at = id })
		if l.top+y-1 == at {
			selectLine(under.Sub(1, 0, c.W-2, 1), x-3, m.th)
		}
	}
	m.scrollOn(c.Sub(0, 1, c.W, rows), func(m *model, by int) { l.step(calls, by) })
	if about > 0 {
		m.drawAboutCall(c.Sub(0, c.H-1, c.W, 1), &calls[at], returned)
	}
}
