package ui

import (
	tea "charm.land/bubbletea/v2"

	"uprobetop/probes"
	"uprobetop/ui/chart"
	"uprobetop/ui/format"
)

// answer is why a probe has no hits, or no returns; nil in a row that was not asked.
type answer struct {
	of                  probes.ID
	*probes.Explanation // nil: somebody is looking
}

type whyMsg struct {
	row *row
	answer
}

// nothing tells whether a row has a probe of which nothing has come.
func (r *row) nothing() bool {
	st := r.shown
	return st != nil && r.stat != nil && st.State == probes.Attached && (st.Hits == 0 || st.Kind == probes.Return && st.Returned == 0)
}

func (m *model) canAskWhy() bool { return m.selected != nil && m.selected.nothing() }

// explains tells whether a row shows its answer.
func (m *model) explains(r *row) bool { return r.why != nil && r.nothing() && r.why.of == r.shown.ID }

// askWhy is the w key: it has the processes looked at beside the screen, and shows
// what was found in the place of numbers that there are none of.
func (m *model) askWhy(r *row) tea.Cmd {
	if !m.split() {
		m.zoomed = true
	}
	st := r.stat
	r.why = &answer{of: st.ID}
	ask := m.opts.Why
	if ask == nil {
		r.why.Explanation = &probes.Explanation{Causes: []string{"this is not known of a recording"}}
		return nil
	}
	return func() tea.Msg {
		e := ask(st)
		return whyMsg{r, answer{st.ID, &e}}
	}
}

// answered takes the answer over, unless the row has another probe by now, or nobody
// wants to know any more.
func (m *model) answered(msg whyMsg) {
	if r := msg.row; r.why != nil && r.why.of == msg.of {
		r.why = &msg.answer
	}
}

// drawWhy shows the answer: causes, what was looked at, and the keys that lead on.
func (m *model) drawWhy(c *chart.Canvas, r *row) {
	th := m.th
	armed := "Armed for " + format.Span(m.snap.Elapsed-r.shown.Placed) + ", 0 hits."
	if r.shown.Hits > 0 {
		armed = "Armed for " + format.Span(m.snap.Elapsed-r.shown.Placed) + ", " + format.Count(r.shown.Hits) + " hits, no returns."
	}
	c.Text(3, 0, armed, th.Bright)
	if r.why.Explanation == nil {
		c.Text(3, 2, "The processes are being looked at.", th.Muted)
		return
	}
	y := 2
	if c.H < 8 {
		y = 1
	}
	for i, cause := range r.why.Causes {
		st := th.Text
		switch {
		case i > 0:
			st = th.Muted
		case r.why.Proven:
			st = th.Warn
		}
		c.Put(3, y, th.Dot, st)
		for _, line := range wrap(clean(cause), c.W-8) {
			c.Text(5, y, line, st)
			y++
		}
	}
	y++
	for _, check := range r.why.Checks {
		sign, st := th.Check, th.Good
		if !check.OK {
			sign, st = th.Times, th.Warn
		}
		c.Text(3, y, sign, st)
		c.Text(6, y, check.What, th.Text)
		c.Text(18, y, chart.Cut(clean(check.Text), c.W-20, th.Ellipsis), th.Muted)
		y++
	}
	if y < c.H {
		drawKeys(c, c.W-3, c.H-1, []string{"w", "look again", "esc", "back"}, th)
	}
}
