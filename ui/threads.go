package ui

import (
	"slices"
	"strings"

	"uprobetop/probes"
	"uprobetop/ui/chart"
	"uprobetop/ui/format"
)

const threadsTitle = "threads"

// threadState is what the view of threads remembers between drawings.
type threadState struct {
	of        key
	byProcess bool
	top       int           // first visible row
	units     [4]columnUnit // of hits, p50, p99, max
}

// shareRows are the rows of the view: threads, or processes.
func (m *model) shareRows(t *probes.Threads) []probes.ThreadShare {
	if m.charts.threads.byProcess {
		return probes.ByProcess(t.Rows)
	}
	return t.Rows
}

// turnThreads shows processes instead of threads, or threads again.
func (m *model) turnThreads() {
	s := &m.charts.threads
	*s = threadState{of: s.of, byProcess: !s.byProcess}
}

// stepThreads moves the list.
func (m *model) stepThreads(by int) {
	s := &m.charts.threads
	s.top = max(s.top+by, 0) // the drawing knows the end
}

// shareColumns is where the columns stand in a view of some width: columns of
// numbers by the cell behind them.
type shareColumns struct {
	id, name, nameW, hits, bar, barW int
	values                           [3]int // p50, p99, max; 0: none
}

func shareLayout(w int, timed bool) shareColumns {
	l := shareColumns{id: 9, name: 11, nameW: 9, hits: 32}
	end, gap := w-1, 9
	switch {
	case w >= 100:
		l, end, gap = shareColumns{id: 10, name: 13, nameW: 15, hits: 41}, w-4, 12
	case w >= 76:
		l, end, gap = shareColumns{id: 10, name: 12, nameW: 11, hits: 35}, w-2, 10
	}
	l.bar, l.barW = l.hits+3, end-l.hits-3
	if timed {
		l.values = [3]int{end - 2*gap, end - gap, end}
		l.barW -= 3*gap + 1
	}
	return l
}

// shareValues are the numbers of a row, in the order of the columns: hits/s since
// watching began, and times in ns.
func shareValues(r *probes.ThreadShare, seconds float64) [4]float64 {
	v := [4]float64{}
	if seconds > 0 {
		v[0] = float64(r.Hits) / seconds
	}
	if len(r.Latency) > 0 {
		v[1], v[2], v[3] = r.Middle(0.5), r.Middle(0.99), float64(r.Max)
	}
	return v
}

func drawThreads(m *model, c *chart.Canvas, r *row) {
	t := r.shown.Threads
	if t == nil || len(t.Rows) == 0 && t.Others.Hits == 0 {
		m.drawNoThreads(c, t)
		return
	}
	s := &m.charts.threads
	if s.of != r.key {
		*s = threadState{of: r.key, byProcess: s.byProcess}
	}
	rows, room := m.shareRows(t), c.H-1
	if t.Others.Hits > 0 {
		room--
	}
	if len(rows) > room {
		room--
	}
	room = max(room, 0)
	s.top = max(min(s.top, len(rows)-room), 0)
	visible := rows[s.top:min(s.top+room, len(rows))]
	seconds := t.Counted.Seconds()
	values := make([][4]float64, len(visible))
	for i := range visible {
		values[i] = shareValues(&visible[i], seconds)
	}
	timed := r.shown.Latency != nil
	l := shareLayout(c.W, timed)
	m.fitUnits(values)
	m.drawShareHeads(c, l, timed)
	slow, _ := slowRows(rows)
	most := uint64(1)
	if len(rows) > 0 {
		most = max(rows[0].Hits, 1)
	}
	for i := range visible {
		line := c.Sub(0, i+1, c.W, 1)
		m.drawShare(line, l, &visible[i], values[i], slices.Contains(slow, s.top+i))
		if l.barW >= 8 {
			chart.Bar(line.Sub(l.bar, 0, l.barW, 1), float64(visible[i].Hits)/float64(most), m.th.CPU, m.th)
		}
	}
	m.scrollOn(c.Sub(0, 1, c.W, len(visible)), (*model).stepThreads)
	m.drawMoreShares(c, l, len(visible)+1, rows, visible, t, seconds)
}

// drawNoThreads says why there are no rows.
func (m *model) drawNoThreads(c *chart.Canvas, t *probes.Threads) {
	text := "It is being watched from now on."
	switch {
	case t != nil && m.shown.Elapsed-t.Since >= m.shown.Interval: // a whole tick, of which the rows would have come
		text = "No thread has hit it since watching began."
	case m.opts.Recorded:
		text = "It was not counted by thread when this was recorded."
	case m.snap.Final || m.snap.Gone:
		text = "It was not counted by thread before the target ended."
	}
	c.Text(3, 0, text, m.th.Text)
}

// fitUnits chooses the units of the columns.
func (m *model) fitUnits(values [][4]float64) {
	for k := range m.charts.threads.units {
		units, column := format.TimeUnits, make([]float64, len(values))
		if k == 0 {
			units = format.RateUnits
		}
		for i := range values {
			column[i] = values[i][k]
		}
		m.charts.threads.units[k].update(column, units, 5, m.shown.Elapsed)
	}
}

// unitName is the unit of a column as its head has it, with a space before it.
func (m *model) unitName(k int) string {
	units := format.TimeUnits
	if k == 0 {
		units = format.RateUnits
	}
	if at := m.charts.threads.units[k].at; at < len(units) {
		return " " + units[at].Name
	}
	return ""
}

func (m *model) drawShareHeads(c *chart.Canvas, l shareColumns, timed bool) {
	th := m.th
	id, name := "TID", "THREAD"
	if m.charts.threads.byProcess {
		id, name = "PID", "PROCESS"
	}
	c.Right(l.id, 0, id, th.Muted)
	c.Text(l.name, 0, name, th.Muted)
	x := c.Right(l.hits, 0, "HITS"+m.unitName(0), th.Bright)
	c.Put(x-2, 0, th.Down, th.Accent)
	if l.barW >= 8 {
		c.Text(l.bar, 0, "SHARE", th.Muted)
	}
	if !timed {
		return
	}
	for k, title := range [...]string{"≈P50", "≈P99", "MAX"} {
		c.Right(l.values[k], 0, title+m.unitName(k+1), th.Muted)
	}
}

func (m *model) drawShare(c *chart.Canvas, l shareColumns, r *probes.ThreadShare, values [4]float64, slow bool) {
	th := m.th
	id := r.TID
	if m.charts.threads.byProcess {
		id = r.PID
	}
	name := clean(r.Comm)
	if r.Outside() {
		c.Right(l.id, 0, string(th.Dash), th.Faint)
		name = "outside"
	} else {
		c.Right(l.id, 0, itoa(id), th.Text)
	}
	if m.charts.threads.byProcess && r.Threads > 1 {
		threads := " " + th.Times + itoa(r.Threads)
		name = chart.Cut(name, max(l.nameW-chart.Width(threads), 4), th.Ellipsis) + threads
	}
	c.Text(l.name, 0, chart.Cut(name, l.nameW, th.Ellipsis), th.Text)
	m.drawInUnit(c, l.hits, values[0], 0, th.Bright)
	for k, end := range l.values {
		st := th.Text
		switch {
		case end == 0:
			continue
		case values[k+1] == 0:
			c.Right(end-3, 0, string(th.Dash), th.Faint)
			continue
		case k == 0 && slow:
			st = th.Hot.With(chart.Bold)
		}
		m.drawInUnit(c, end, values[k+1], k+1, st)
	}
}

// drawInUnit ends a value of column k before x.
func (m *model) drawInUnit(c *chart.Canvas, x int, v float64, k int, st chart.Style) {
	u := m.charts.threads.units[k].at
	switch {
	case k == 0 && u < len(format.RateUnits):
		m.drawAligned(c, x, 0, v/format.RateUnits[u].Scale, st)
	case k == 0:
		c.Right(x, 0, format.SI(v), st)
	case u < len(format.TimeUnits):
		m.drawAligned(c, x, 0, v/format.TimeUnits[u].Scale, st)
	default:
		c.Right(x, 0, format.Latency(v), st)
	}
}

// drawMoreShares tells of the rows that are not visible, and of the hits that have
// none.
func (m *model) drawMoreShares(c *chart.Canvas, l shareColumns, y int, rows, visible []probes.ThreadShare, t *probes.Threads, seconds float64) {
	th := m.th
	rate := func(hits uint64) string {
		if seconds <= 0 {
			return "0/s"
		}
		return format.SI(float64(hits)/seconds) + "/s"
	}
	if n := len(rows) - len(visible); n > 0 {
		things := format.Things(n, "more thread")
		if m.charts.threads.byProcess {
			things = plural(int64(n), "more process", "more processes")
		}
		c.Put(l.id-1, y, th.Ellipsis, th.Muted)
		c.Text(l.name, y, things+", "+rate(probes.Total(rows).Hits-probes.Total(visible).Hits)+" together", th.Muted)
		y++
	}
	if t.Others.Hits > 0 {
		c.Put(l.id-1, y, th.Ellipsis, th.Muted)
		c.Text(l.name, y, rate(t.Others.Hits)+" of threads that found no room", th.Warn)
	}
}

// enoughCalls is from how many calls on a thread's median says something.
const enoughCalls = 20

// slowRows are those few whose median is at least four times the one in the middle
// of all medians; that one, in ns, is typical.
func slowRows(rows []probes.ThreadShare) (slow []int, typical float64) {
	medians := map[int]float64{}
	var sorted []float64
	for i := range rows {
		if rows[i].Returned >= enoughCalls && !rows[i].Outside() {
			medians[i] = rows[i].Middle(0.5)
			sorted = append(sorted, medians[i])
		}
	}
	if len(sorted) < 3 {
		return nil, 0
	}
	slices.Sort(sorted)
	typical = sorted[(len(sorted)-1)/2]
	for i := range rows {
		if medians[i] >= 4*typical {
			slow = append(slow, i)
		}
	}
	return slow, typical
}

// drawThreadsReading says who is slow, and the key of this view.
func drawThreadsReading(m *model, c *chart.Canvas, r *row) {
	t := r.shown.Threads
	if t == nil || len(t.Rows) == 0 {
		return
	}
	th := m.th
	turn := " processes"
	if m.charts.threads.byProcess {
		turn = " threads"
	}
	end := c.Right(c.Right(c.W-2, 0, turn, th.Muted), 0, "y", th.Key)
	rows := m.shareRows(t)
	slow, typical := slowRows(rows)
	if len(slow) == 0 {
		return
	}
	var names []string
	low, high := rows[slow[0]].Middle(0.5), 0.0
	for _, i := range slow {
		median := rows[i].Middle(0.5)
		low, high = min(low, median), max(high, median)
		if name := clean(rows[i].Comm); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	n := int64(len(slow))
	are := plural(n, "thread is slow at its median: ", "threads are slow at their median: ")
	if m.charts.threads.byProcess {
		are = plural(n, "process is slow at its median: ", "processes are slow at their median: ")
	}
	at := " at " + format.Latency(low)
	if format.Latency(low) != format.Latency(high) {
		at = " at " + format.Latency(low) + " to " + format.Latency(high)
	}
	x := c.Text(3, 0, are, th.Warn)
	for _, text := range []string{shareNames(names) + at + ", the typical one at " + format.Latency(typical), shareNames(names) + at, names[0]} {
		if x+chart.Width(text) < end-2 {
			c.Text(x, 0, text, th.Text)
			return
		}
	}
}

// shareNames is names with what they begin with in common once: io-1, -3, -4.
func shareNames(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	stem, _, ok := cutLast(names[0], "-")
	for _, n := range names {
		ok = ok && strings.HasPrefix(n, stem+"-") && len(n) <= len(stem)+4
	}
	if !ok {
		return format.List(names)
	}
	const most = 8
	text := names[0]
	for _, n := range names[1:min(len(names), most)] {
		text += ", " + strings.TrimPrefix(n, stem)
	}
	if len(names) > most {
		text += ", …"
	}
	return text
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// drawSinceWatched ends the rule with what the rows are of, and returns where that
// begins.
func drawSinceWatched(m *model, c *chart.Canvas) int {
	r := m.selected
	if r == nil || r.shown == nil || r.shown.Threads == nil {
		return c.W - 1
	}
	text := " since watching began "
	if c.W >= 76 {
		text = " since watching began, " + format.Span(r.shown.Threads.Counted) + " "
	}
	return c.Right(c.W-1, 0, text, m.th.Text)
}
