package ui

import (
	"strings"

	"uprobetop/probes"
	"uprobetop/ui/chart"
	"uprobetop/ui/format"
)

// entryLine is one term of the ledger.
type entryLine struct {
	sign  string
	value string
	name  string
	note  string
	style chart.Style // of the value and the name
}

// drawLedger shows the balance of a function: every hit is somewhere.
func drawLedger(m *model, c *chart.Canvas, r *row) {
	if r.shown.Kind != probes.Return {
		m.drawCountLedger(c, r)
		return
	}
	lines, checks := m.ledgerLines(r.since(), open(r.zero)), m.ledgerChecks(r.since())
	spare := c.H - len(lines) - len(checks) - 2 // for blank rows and the formula
	y := 0
	if spare >= 3 {
		spare -= 2
		formula := "hits"
		if open(r.zero) != 0 {
			formula += " + open"
		}
		if formula += " = returned + "; r.shown.NoFrames {
			formula += "unreturned + missed"
		} else {
			formula += "in flight + unwound + missed"
		}
		c.Text(3, 0, formula, m.th.Muted)
		y = 2
	}
	for _, l := range lines {
		m.drawLedgerLine(c, y, l)
		y++
	}
	c.Fill(5, y, 15, 1, m.th.H, m.th.Line)
	y++
	m.drawDifference(c, y, r.shown)
	y++
	if spare >= 1 {
		y++
	}
	if spare >= 3 {
		c.Fill(3, y, c.W-6, 1, m.th.H, m.th.Grid)
		y += 2
	}
	for _, l := range checks {
		m.drawCheck(c, y, l)
		y++
	}
}

// ledgerLines are the terms; open is how many calls were open when the numbers
// were cleared.
func (m *model) ledgerLines(st *probes.Stats, open int64) []entryLine {
	th := m.th
	term := func(sign string, n uint64, name, note string, warn bool) entryLine {
		l := entryLine{sign: sign, value: format.Count(n), name: name, note: note, style: th.Text}
		switch {
		case n == 0:
			l.style = th.Muted
		case warn:
			l.style = th.Warn
		}
		return l
	}
	hits := term("", st.Hits, "hits", "entries that the program saw", false)
	hits.style = th.Bright
	pending := st.Pending()
	flight := term("+", uint64(max(pending, 0)), "in flight", "returns still to come", false)
	if st.NoFrames {
		flight.name, flight.note = "unreturned", "in flight or unwound: they cannot be told apart"
	}
	if pending < 0 {
		flight.value, flight.style = signed(pending), th.Warn
	}
	depthNote, slotNote := "", ""
	if st.Missed.Depth > 0 {
		depthNote = "a thread had 64 returns pending"
	}
	if st.Missed.NoSlot > 0 {
		slotNote = "no frame could be had"
	}
	lines := []entryLine{hits}
	if open != 0 {
		lines = append(lines, entryLine{sign: "+", value: signed(open), name: "open before", note: "calls that had not returned when the numbers were cleared", style: th.Text})
	}
	lines = append(lines, term("=", st.Returned, "returned", "paired; the histogram holds exactly these", false), flight)
	depth := term("+", st.Missed.Depth, "missed.depth", depthNote, true)
	if st.NoFrames {
		return append(lines, depth)
	}
	return append(lines,
		term("+", st.Unwound.Total(), "unwound", unwoundBy(st.Unwound), false),
		depth,
		term("+", st.Missed.NoSlot, "missed.no_slot", slotNote, true),
	)
}

// unwoundBy names the causes.
func unwoundBy(u probes.Unwound) string {
	var parts []string
	for _, p := range []struct {
		n    uint64
		name string
	}{{u.Jump, "jumped over"}, {u.Exec, "by exec"}, {u.Exit, "by thread exit"}} {
		if p.n > 0 {
			parts = append(parts, format.Count(p.n)+" "+p.name)
		}
	}
	return strings.Join(parts, ", ")
}

func (m *model) drawLedgerLine(c *chart.Canvas, y int, l entryLine) {
	c.Text(3, y, l.sign, m.th.Muted)
	c.Right(20, y, l.value, l.style)
	c.Text(23, y, l.name, l.style)
	c.Text(39, y, chart.Cut(l.note, c.W-40, m.th.Ellipsis), m.th.Muted)
}

func (m *model) drawDifference(c *chart.Canvas, y int, st *probes.Stats) {
	th := m.th
	off := st.Balance()
	switch {
	case off == 0:
		c.Right(20, y, "0", th.Good.With(chart.Bold))
		c.Text(23, y, "difference", th.Good.With(chart.Bold))
		c.Text(39, y, th.Check+" the books balance", th.Good)
	case m.moving(st):
		c.Right(20, y, signed(off), th.Text)
		c.Text(23, y, "difference", th.Text)
		c.Text(39, y, "calls that this tick caught between two additions", th.Muted)
	default:
		c.Right(20, y, signed(off), th.Warn)
		c.Text(23, y, "difference", th.Warn)
		c.Text(39, y, "? the books do not balance: "+plural(off, "hit is", "hits are")+" unaccounted for", th.Warn)
	}
}

func signed(n int64) string {
	if n < 0 {
		return "-" + format.Count(uint64(-n))
	}
	return format.Count(uint64(n))
}

func plural(n int64, one, many string) string {
	if n == 1 || n == -1 {
		return signed(n) + " " + one
	}
	return signed(n) + " " + many
}

// moving says whether a probe was hit since the last full second: then two
// terms of one tick need not be of the same instant.
func (m *model) moving(st *probes.Stats) bool {
	seconds := m.history().seconds
	for _, s := range seconds[max(len(seconds)-2, 0):] {
		old := s.Find(st.ID)
		if old == nil || old.Hits != st.Hits || old.Returned != st.Returned {
			return true
		}
	}
	return false
}

type check struct {
	ok    bool
	plain bool // nothing to compare with
	name  string
	n     uint64
	note  string
}

func (m *model) ledgerChecks(st *probes.Stats) []check {
	var byCPU uint64
	for _, c := range st.PerCPU {
		byCPU += c.Hits
	}
	out := []check{{byCPU == st.Hits, false, m.th.Sigma + " per CPU", byCPU, "= hits, over " + format.Things(m.shown.CPUs, "CPU")}}
	if st.Latency != nil {
		n := st.Latency.Count()
		out = append(out, check{n == st.Returned, false, m.th.Sigma + " buckets", n, "= returned"})
		out = append(out, check{plain: true, name: "orphans", n: st.Orphans, note: "returns whose hit was not seen; in no total"})
	}
	return append(out,
		check{plain: true, name: "filtered", n: st.Filtered, note: "hits of processes that the filter leaves out; in no total"},
		check{plain: true, name: "lost", n: m.totals.lost, note: "records that did not fit into a ring; they delay a count and change none"},
	)
}

func (m *model) drawCheck(c *chart.Canvas, y int, l check) {
	th := m.th
	sign, st := string(th.Dot), th.Muted
	switch {
	case l.plain:
	case l.ok:
		sign, st = th.Check, th.Good
	default:
		sign, st = "?", th.Warn
		l.note = "not " + l.note
	}
	c.Right(4, y, sign, st)
	c.Text(5, y, l.name, th.Text)
	c.Right(34, y, format.Count(l.n), th.Text)
	c.Text(37, y, chart.Cut(l.note, c.W-38, th.Ellipsis), th.Muted)
}

// drawCountLedger is the ledger of what only counts, which has one term.
func (m *model) drawCountLedger(c *chart.Canvas, r *row) {
	st, note, why := r.since(), "entries that the program saw", "A uprobe counts hits and has nothing to balance them with; r measures returns too."
	if r.usdt() {
		note, why = "at all of its sites", "A usdt probe counts hits and has nothing to balance them with."
	}
	m.drawLedgerLine(c, 0, entryLine{value: format.Count(st.Hits), name: "hits", note: note, style: m.th.Bright})
	c.Text(3, 2, why, m.th.Muted)
	y := 4
	for _, l := range m.ledgerChecks(st) {
		m.drawCheck(c, y, l)
		y++
	}
}
