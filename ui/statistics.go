package ui

import (
	"uprobetop/ui/chart"

	"uprobetop/ui/format"
)

// statistic is one line of the column beside the histogram.
type statistic struct {
	name, value string
	nameStyle   chart.Style
	valueStyle  chart.Style
	rank        int // the higher, the earlier it leaves a short column
}

// statistics are the lines in groups, for a column that is w cells wide.
func (m *model) statistics(r *row, w int) [][]statistic {
	th, n, st := m.th, &r.num, r.since()
	latencyOf := func(v float64) string {
		if n.calls == 0 {
			return string(th.Dash)
		}
		return format.Latency(v)
	}
	largest := latencyOf(n.max)
	if n.calls > 0 || n.oldest > 0 {
		largest = m.largest(n)
	}
	missed, missedName := th.Text, th.Muted
	if st.Missed.Total() > 0 {
		missed, missedName = th.Warn, th.Warn
	}
	flight, unwound := fitCount(float64(st.InFlight), w-10), format.Count(st.Unwound.Total())
	if st.NoFrames {
		flight, unwound = string(th.Dash), string(th.Dash)
	}
	calls := []statistic{
		{"calls", fitCount(float64(n.calls), w-6), th.Muted, th.Bright, 0},
		{"mean", latencyOf(n.mean), th.Muted, th.Text, 3},
	}
	if r.shown.Callees > 0 {
		calls = append(calls, statistic{"self", latencyOf(n.self), th.Muted, th.Text, 4})
	}
	groups := [][]statistic{
		calls,
		{
			{"p50", latencyOf(n.p50), th.T90, th.Bright, 0},
			{"p90", latencyOf(n.p90), th.T90, th.Bright, 1},
			{"p99", latencyOf(n.p99), th.T99, th.Bright, 0},
			{"p99.9", latencyOf(n.p999), th.TMax, th.Bright, 1},
			{"max", largest, th.TMax, th.Bright, 0},
		},
		{
			{"load", format.Table(n.load), th.Muted, th.Text, 2},
			{"in flight", flight, th.Muted, th.Text, 2},
			{"unwound", unwound, th.Muted, th.Text, 4},
			{"missed", format.Count(st.Missed.Total()), missedName, missed, 2},
		},
	}
	if share := r.shown.Floor.P50; share > 0 {
		groups[1] = append(groups[1], statistic{"probe's own", format.Latency(float64(share)), th.Muted, th.Text, 4})
	}
	return groups
}

func drawStatistics(m *model, c *chart.Canvas, r *row) {
	groups := m.statistics(r, c.W)
	// Blank rows go first, then the lines of the highest rank.
	fits := func(limit, blank int) bool {
		n := blank
		for _, g := range groups {
			for _, s := range g {
				if s.rank <= limit {
					n++
				}
			}
		}
		return n <= c.H
	}
	blank := fits(4, len(groups)-1)
	limit := 4
	for limit > 0 && !fits(limit, 0) {
		limit--
	}
	y := 0
	for i, g := range groups {
		if i > 0 && blank {
			y++
		}
		for _, s := range g {
			if s.rank > limit {
				continue
			}
			c.Text(0, y, s.name, s.nameStyle)
			c.Right(c.W, y, s.value, s.valueStyle)
			y++
		}
	}
}
