package ui

import (
	"math"
	"time"

	tea "charm.land/bubbletea/v2"

	"uprobetop/probes"
	"uprobetop/ui/chart"
	"uprobetop/ui/format"
)

// threshold is from which latency on the calls of a row's probe are reported one
// by one.
type threshold struct {
	of     probes.ID     // the probe that it was chosen for
	over   time.Duration // 0: every call
	chosen bool
	own    bool // the screen chose, by the p99
	sent   time.Duration
	asking bool
}

type reportedMsg struct {
	row *row
	id  probes.ID
	err error
}

const (
	leastOwn   = time.Microsecond // of the thresholds that the screen chooses
	leastSlow  = 100 * time.Nanosecond
	mostSlow   = 100 * time.Second
	slowTitle  = "slow calls"
	everyCalls = "every call"
)

// reports says whether the calls of a row can be reported.
func (r *row) reports() bool {
	return r.stat != nil && r.stat.State == probes.Attached && r.stat.Kind == probes.Return
}

// slowShown says whether the slow calls of the selected row are on the screen.
func (m *model) slowShown() bool {
	return m.hasView() && (m.views[m.viewAt].title == slowTitle || m.wide() && !m.zoomed)
}

// slowLooked says whether somebody looks at them, or at those in flight, of which
// then as much is known: a pane that is only there on a wide screen costs the target
// nothing.
func (m *model) slowLooked() bool {
	if !m.hasView() {
		return false
	}
	title := m.views[m.viewAt].title
	return title == slowTitle || title == insideTitle
}

// reportCalls tells the collector of the thresholds that it does not know yet: of
// every timed probe if the command line gave one, else of the selected one while
// somebody looks.
func (m *model) reportCalls() []tea.Cmd {
	var cmds []tea.Cmd
	if m.opts.Slow > 0 {
		for _, r := range m.rows {
			if r.reports() && r.slow.needs(r) {
				r.slow = threshold{of: r.stat.ID, over: m.opts.Slow, chosen: true}
				cmds = append(cmds, m.report(r))
			}
		}
		return cmds
	}
	r := m.selected
	if r == nil || !r.reports() || !m.slowLooked() || !r.slow.needs(r) || r.num.calls == 0 {
		return nil
	}
	if r.slow.chosen {
		// The probe is a new one; what was chosen for the row holds.
		r.slow = threshold{of: r.stat.ID, over: r.slow.over, chosen: true, own: r.slow.own}
	} else {
		over := max(time.Duration(chart.Floor125(math.Max(r.num.p99, 1))), leastOwn)
		r.slow = threshold{of: r.stat.ID, over: over, chosen: true, own: true}
	}
	return []tea.Cmd{m.report(r)}
}

func (t *threshold) needs(r *row) bool { return !t.chosen || t.of != r.stat.ID && !t.asking }

// report tells the collector the threshold of a row, one at a time.
func (m *model) report(r *row) tea.Cmd {
	t := &r.slow
	m.past.callsOf(t.of, m.snap).over(t.over, withheldBy(m.snap), m.snap.At)
	if t.asking {
		return nil
	}
	t.asking, t.sent = true, t.over
	src, id, over := m.src, t.of, t.over
	return func() tea.Msg { return reportedMsg{r, id, src.Report(id, over)} }
}

func (m *model) reported(msg reportedMsg) tea.Cmd {
	t := &msg.row.slow
	if msg.id != t.of {
		return nil
	}
	t.asking = false
	switch {
	case msg.err != nil:
		m.setBanner(true, "the calls of "+msg.row.name+" cannot be reported: "+clean(msg.err.Error()))
	case t.sent != t.over:
		return m.report(msg.row)
	}
	return nil
}

// canStep says whether there is a threshold to change.
func (m *model) canStep() bool {
	return m.slowShown() && m.selected.reports() && m.selected.slow.chosen && !m.frozen
}

// stepThreshold goes to the next of 1, 2, 5, 10, … or the one before; below the
// least of them every call is reported.
func (m *model) stepThreshold(up bool) tea.Cmd {
	if m.onlyRecorded() {
		return nil
	}
	r := m.selected
	t := &r.slow
	now := math.Max(float64(t.over), 1)
	switch {
	case up && t.over < leastSlow:
		t.over = leastSlow
	case up:
		t.over = min(time.Duration(math.Round(chart.Next125(chart.Floor125(now)))), mostSlow)
	case t.over <= leastSlow:
		t.over = 0
	default:
		// Just below a step, the step beneath is the one before.
		t.over = time.Duration(math.Round(chart.Floor125(now * 0.99)))
	}
	t.own = false
	return m.report(r)
}

// thresholdText is the threshold of a row, for a rule that is w cells wide.
func (m *model) thresholdText(r *row, w int) string {
	t := &r.slow
	switch {
	case m.opts.Recorded:
		return "as recorded"
	case !t.chosen:
		return ""
	case t.over == 0:
		return everyCalls
	}
	text := "over " + format.RoundLatency(float64(t.over))
	if t.own && w >= 60 && m.w >= 100 {
		text += ", near the p99"
	}
	return text
}
