package ui

import (
	"maps"
	"slices"

	tea "charm.land/bubbletea/v2"

	"uprobetop/probes"
	"uprobetop/ui/format"
)

// clear is the c key: from now on the screen counts from zero. Nothing happens
// to the collector; what was there is subtracted from what it says.
func (m *model) clear() {
	if m.frozen {
		m.freeze()
	}
	before, calls, skipped := m.past.zero, m.past.calls, m.past.skipped
	m.past.zero, m.past.calls, m.past.skipped = m.snap, map[probes.ID]*callLog{}, 0
	for id, l := range calls {
		m.past.callsOf(id, m.snap).least = l.least
	}
	m.charts.reset()
	m.canUndo(func(m *model) tea.Cmd {
		// What was reported since comes on top of what was there.
		for id, l := range m.past.calls {
			old := calls[id]
			if old == nil {
				calls[id] = l
				continue
			}
			if l.least != old.least {
				old.over(l.least, l.base, l.since)
			}
			dropped := l.reported - uint64(len(l.newest))
			for _, c := range l.newest {
				old.add(c)
			}
			old.reported += dropped
		}
		m.past.zero, m.past.calls, m.past.skipped = before, calls, skipped+m.past.skipped
		m.charts.reset()
		m.measure()
		return nil
	})
	m.measure()
}

// since is what a row has counted from the last clear on.
func (r *row) since() *probes.Stats {
	if r.less == nil {
		r.less = less(r.shown, r.zero)
	}
	return r.less
}

// less is what was counted after base. What is a gauge stays as it is, and so
// does what is per second.
func less(st, base *probes.Stats) *probes.Stats {
	if base == nil {
		return st
	}
	d := *st
	d.Hits -= base.Hits
	d.Returned -= base.Returned
	d.Unwound.Jump -= base.Unwound.Jump
	d.Unwound.Exec -= base.Unwound.Exec
	d.Unwound.Exit -= base.Unwound.Exit
	d.Missed.Depth -= base.Missed.Depth
	d.Missed.NoSlot -= base.Missed.NoSlot
	d.Orphans -= base.Orphans
	d.Filtered -= base.Filtered
	d.Callees -= base.Callees
	d.PerCPU = slices.Clone(st.PerCPU)
	for i, hits := range since(st.PerCPU, base.PerCPU) {
		d.PerCPU[i].Hits = hits
	}
	if st.Latency != nil && base.Latency != nil {
		d.Latency = st.Latency.Sub(base.Latency)
	}
	return &d
}

// open is how many calls of a probe had not come to an end at a snapshot: those
// that the terms of the ledger leave over, so that it adds up after a clear.
func open(base *probes.Stats) int64 {
	if base == nil {
		return 0
	}
	return base.Balance() + base.Pending()
}

// sinceClear says since when the numbers count; empty: since their beginning.
func (m *model) sinceClear() string {
	zero := m.history().zero
	if zero == nil {
		return ""
	}
	return "since " + zero.At.Format("15:04:05")
}

// clone is a copy that later snapshots do not change.
func (h *history) clone() history {
	c := *h
	c.seconds = slices.Clone(h.seconds)
	c.calls = maps.Clone(h.calls)
	for id, l := range c.calls {
		c.calls[id] = l.clone()
	}
	return c
}

// countedFor is for how long a probe has counted what the screen says.
func (m *model) countedFor(r *row) string {
	from := r.shown.Placed
	if zero := m.history().zero; zero != nil {
		from = max(from, zero.Elapsed)
	}
	return format.Span(m.shown.Elapsed - from)
}
