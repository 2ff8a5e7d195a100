package ui

import (
	"slices"

	"uprobetop/ui/chart"
	"uprobetop/ui/format"
)

// sentence is what a row without numbers says, in three lengths, and the keys
// that lead out of it.
type sentence struct {
	long, medium, short string
	out                 []string // key, word, key, word …
	style               chart.Style
}

func (m *model) sentence(r *row, cond condition) sentence {
	th := m.th
	switch cond {
	case placing:
		return m.placingSentence(r)
	case refused, failed:
		why := r.failure
		long := why
		if r.finding != nil {
			why, long = clean(r.finding.Reason), withWay(*r.finding)
		} else if r.stat != nil {
			why = clean(r.stat.Note)
			long = why
		}
		return sentence{"cannot be placed: " + long, why, why, []string{"enter", "more"}, th.Bad}
	case gone:
		full, short := m.hitsBefore(r)
		return sentence{"gone: the target has ended, after " + full, "gone, after " + full, "gone: " + short, nil, th.Warn}
	case stopped:
		full, short := m.hitsBefore(r)
		return sentence{"stopped, after " + full, "stopped, after " + full, "stopped: " + short, []string{"space", "count again"}, th.Muted}
	case givenUp:
		return sentence{
			"given up: what stands of it is taken away again", "given up", "given up",
			[]string{"space", "try again"},
			th.Muted,
		}
	case silent:
		s := sentence{
			"armed, 0 hits in 30 s: no call reached this address", "armed, 0 hits in 30 s",
			"0 hits in 30 s",
			[]string{"w", "why"},
			th.Muted,
		}
		if r.usdt() {
			s.long = "armed, 0 hits in 30 s: no thread passed it"
		}
		if r.stat.Filtered > 0 {
			s.long = "armed, 0 hits in 30 s: the filter lets nobody through"
		}
		if full, short := m.hitsBefore(r); r.stat.Hits > 0 {
			s.long, s.medium, s.short = "no hit in 30 s, after "+full, "no hit in 30 s, after "+short, "no hit in 30 s"
		}
		return s
	}
	if m.opts.Recorded {
		return sentence{"not probed", "not probed", "not probed", nil, th.Muted}
	}
	keys := []string{"space", "count", "r", "latency"}
	if r.usdt() {
		keys = keys[:2]
	}
	return sentence{"not probed", "not probed", "not probed", keys, th.Muted}
}

func (m *model) placingSentence(r *row) sentence {
	s := sentence{"placing: the kernel is being asked", "placing", "placing", nil, m.th.Accent}
	if p := m.snap.Placing; p.Of > 0 {
		done := itoa(p.Done) + " of " + itoa(p.Of)
		s.long, s.medium, s.short = "placing "+done+" points", "placing "+done+" points", "placing "+done
	}
	if m.canGiveUp(r) {
		s.out = []string{"esc", "give up"}
	}
	return s
}

// hitsBefore are the hits of a probe that counts no more, in full and short.
func (m *model) hitsBefore(r *row) (full, short string) {
	st := less(r.stat, m.past.zero.Find(r.stat.ID))
	return format.Count(st.Hits) + " hits", format.SI(float64(st.Hits)) + " hits"
}

// drawSentence uses everything from HITS to the right edge.
func (m *model) drawSentence(c *chart.Canvas, r *row, cond condition) {
	th := m.th
	s := m.sentence(r, cond)
	x := c.W - 1
	if c.W >= 76 {
		x = drawKeys(c, x, 0, s.out, th)
	}
	from := m.shownColumn("HITS").x
	text := s.short
	switch {
	case c.W >= 100:
		text = s.long
	case c.W >= 76:
		text = s.medium
	}
	if x < c.W-1 {
		x -= 2
	}
	end := c.Text(from, 0, chart.Cut(text, x-from, th.Ellipsis), s.style)
	if cond == placing {
		m.drawProgress(c.Sub(end+2, 0, min(x-end-3, 20), 1), r)
	}
}

// drawProgress is a thin bar of the points that the kernel has placed, once that
// takes time.
func (m *model) drawProgress(c *chart.Canvas, r *row) {
	p := m.snap.Placing
	if p.Of == 0 || c.W < 4 || r.begun.IsZero() || m.now.Sub(r.begun) < slowWork {
		return
	}
	chart.Bar(c, float64(p.Done)/float64(p.Of), m.th.Accent, m.th)
}

// reasons are what a row without numbers says where there is room, and the keys
// that lead out of it.
func (m *model) reasons(r *row) (lines, keys []string) {
	cond := m.condition(r)
	lines, keys = []string{m.sentence(r, cond).long}, []string{"d", "take the row away"}
	switch cond {
	case silent:
		lines = []string{
			"Armed for " + format.Span(m.snap.Elapsed-r.stat.Placed) + ", 0 hits: no call reached this address.",
			"It was not called, or it is inlined into its callers.",
		}
		if r.usdt() {
			lines[0], lines[1] = "Armed for "+format.Span(m.snap.Elapsed-r.stat.Placed)+", 0 hits.", "No thread passed it."
		}
		if r.stat.Filtered > 0 {
			lines[1] = format.Count(r.stat.Filtered) + " hits were of processes that the filter leaves out."
		}
		keys = []string{"w", "why", "/", "find its relatives", "d", "take the probe away"}
	case refused, failed, givenUp:
		keys = append([]string{"space", "try again"}, keys...)
	case notProbed:
		lines = []string{"Not probed."}
		keys = []string{"space", "count its hits", "r", "measure its latency", "d", "take the row away"}
		if r.usdt() {
			keys = slices.Delete(keys, 2, 4)
		}
	case placing:
		keys = nil
		if m.canGiveUp(r) {
			keys = []string{"esc", "give up: what stands is taken away again"}
		}
	}
	if m.opts.Recorded {
		keys = nil
	}
	return lines, keys
}
