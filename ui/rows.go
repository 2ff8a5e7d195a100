package ui

import (
	"slices"
	"time"

	"uprobetop/probes"
	"uprobetop/symbols"
	"uprobetop/ui/chart"
)

// key identifies a function: the row stays when its probe gets a new id.
type key struct {
	dev, ino uint64
	path     string
	offset   symbols.Offset
	name     string // of what has no code in the file
}

func keyOf(f *symbols.File, fn *symbols.Function) key {
	if fn.Place >= symbols.NoCode {
		return key{f.Dev, f.Ino, f.Path, 0, fn.Symbol.String()}
	}
	return key{f.Dev, f.Ino, f.Path, fn.Offset, ""}
}

// want is what the user wants of a function.
type want uint8

const (
	off want = iota
	counted
	timed
)

func wantOf(k probes.Kind) want {
	if k == probes.Return {
		return timed
	}
	return counted
}

// kind is that of a probe on a function.
func (w want) kind(of *symbols.Function) probes.Kind {
	if w == timed {
		return probes.Return
	}
	return probes.CountingKind(of)
}

// usdt tells whether the row is a usdt probe, which has no latency.
func (r *row) usdt() bool { return r.fn.Place == symbols.Marker }

// kindSign is the sign of what a row measures.
func (m *model) kindSign(r *row) (rune, chart.Style) {
	switch th := m.th; {
	case r.usdt():
		return th.UsdtSign, th.Usdt
	case r.kindOf() == timed:
		return th.RetSign, th.Ret
	default:
		return th.EntrySign, th.Entry
	}
}

// row is one function on the screen.
type row struct {
	key
	file *symbols.File
	fn   *symbols.Function
	name string

	want    want
	asked   bool            // Place is running
	cancel  func()          // has it give up
	gaveUp  bool            // it was told to
	begun   time.Time       // since when the row is being placed
	tried   bool            // Place has returned for what is wanted now
	leaving bool            // to be dropped once its probe is known
	kept    bool            // it was probed, or refused: it stays until it is taken away
	settled uint64          // the snapshot from which on the last Place shows
	finding *probes.Finding // why it is not placed
	failure string          // why Place failed
	why     *answer         // why it has no hits; nil: nobody asked

	all   []*probes.Stats // every probe on the function that is not being removed
	stat  *probes.Stats   // the one of them to show; nil: not probed
	shown *probes.Stats   // what the numbers are of; differs while frozen
	zero  *probes.Stats   // what shown was at the last clear; nil: nothing
	less  *probes.Stats   // shown less zero, once somebody asked
	num   numbers
	trail trail
	slow  threshold
	hits  uint64        // of stat, at the time active
	alive time.Duration // when hits last grew

	cond     condition     // as last sorted
	valued   bool          // there is a value to sort by
	sortKey  float64       // settled: follows the value with patience
	moved    time.Duration // since when the value is away from sortKey
	unseated bool          // sortKey is not set yet
	born     int
}

// silentAfter is how long an armed probe without a hit, and with nobody inside,
// shows its numbers.
const silentAfter = 30 * time.Second

// condition is what a row is at the moment; the order is that of the table.
type condition uint8

const (
	measuring condition = iota
	silent
	placing
	failed
	refused
	gone
	stopped
	givenUp
	notProbed
)

func (m *model) condition(r *row) condition {
	switch {
	case r.finding != nil:
		return refused
	case r.failure != "":
		return failed
	case r.gaveUp && (r.stat == nil || r.stat.State != probes.Attached):
		return givenUp
	case r.stat == nil && (r.asked || r.want != off):
		return placing
	case r.stat == nil:
		return notProbed
	}
	switch r.stat.State {
	case probes.Placing:
		return placing
	case probes.Stopped:
		return stopped
	case probes.Refused:
		return refused
	case probes.Failed:
		return failed
	case probes.Gone:
		return gone
	}
	if r.stat.Pending() <= 0 && m.snap.Elapsed-max(r.alive, r.stat.Placed) >= silentAfter {
		return silent
	}
	return measuring
}

// kindOf is what the row measures now: off while there is no probe.
func (r *row) kindOf() want {
	if r.stat == nil || r.stat.State == probes.Refused || r.stat.State == probes.Failed {
		return off
	}
	return wantOf(r.stat.Kind)
}

// rowFor returns the row of a function, and makes one if there is none.
func (m *model) rowFor(f *symbols.File, fn *symbols.Function) *row {
	k := keyOf(f, fn)
	if r := m.byKey[k]; r != nil {
		return r
	}
	m.born++
	r := &row{key: k, file: f, fn: fn, name: m.nameOf(fn), unseated: true, born: m.born}
	m.byKey[k] = r
	m.rows = append(m.rows, r)
	clear(m.short)
	return r
}

func (m *model) dropRow(r *row) {
	i := slices.Index(m.rows, r)
	if i < 0 {
		return
	}
	m.rows = slices.Delete(m.rows, i, i+1)
	delete(m.byKey, r.key)
	clear(m.short)
	if m.selected == r {
		m.selected = nil
		if len(m.rows) > 0 {
			m.selected = m.rows[min(i, len(m.rows)-1)]
		}
	}
}

// take brings the rows up to a snapshot.
func (m *model) take(s *probes.Snapshot) {
	if s.Seq <= m.snap.Seq && m.snap.Seq != 0 {
		return
	}
	m.past.hear(s, m.snap)
	m.snap, m.arrived, m.dirty = s, m.now, true
	for _, r := range m.rows {
		r.all, r.stat = r.all[:0], nil
	}
	for i := range s.Probes {
		st := &s.Probes[i]
		if m.removed[st.ID] {
			continue
		}
		k := keyOf(st.File, st.Function)
		known := m.byKey[k] != nil
		r := m.rowFor(st.File, st.Function)
		if !known {
			r.want, r.tried = wantOf(st.Kind), true
		}
		r.all, r.kept = append(r.all, st), true
	}
	over := s.Gone && m.shown.Gone && !m.frozen && sameHits(s, m.shown)
	newSecond := !over && m.past.add(s)
	m.past.forget(s)
	for _, r := range m.rows {
		r.choose()
		m.keep(r, newSecond)
	}
	if !m.frozen && !over {
		m.shown = s
		m.measure()
	}
	if m.selected == nil && len(m.rows) > 0 {
		m.selectFirst()
	}
	m.warnAbout()
}

// sameHits says whether nothing was counted between two snapshots: the numbers of
// a target that has ended stay, windows and all.
func sameHits(a, b *probes.Snapshot) bool {
	return slices.EqualFunc(a.Probes, b.Probes, func(p, q probes.Stats) bool {
		return p.ID == q.ID && p.State == q.State && p.Hits == q.Hits && p.Returned == q.Returned
	})
}

// choose decides which of the row's probes is shown.
func (r *row) choose() {
	r.stat = nil
	for _, st := range r.all {
		if r.stat == nil || better(st, r.stat) {
			r.stat = st
		}
	}
}

// better says whether a is the probe to show of two on the same function: the
// one that counts, and of two that do, the younger.
func better(a, b *probes.Stats) bool {
	ca, cb := a.State == probes.Attached, b.State == probes.Attached
	if ca != cb {
		return ca
	}
	return a.ID > b.ID
}

// keep keeps the row's own history.
func (m *model) keep(r *row, newSecond bool) {
	if m.condition(r) != placing {
		r.begun = time.Time{}
	} else if r.begun.IsZero() {
		r.begun = m.now
	}
	if r.stat == nil {
		if m.opts.Recorded {
			r.want = off
		}
		return
	}
	if r.stat.Hits != r.hits {
		r.hits, r.alive = r.stat.Hits, m.snap.Elapsed
	}
	if newSecond && r.stat.State == probes.Attached {
		rate, _ := m.past.second(r.stat)
		second := int(m.snap.Elapsed / time.Second)
		since := second - 1
		if from, _ := m.past.lastSecond(); from.Find(r.stat.ID) != nil {
			since = int(from.Elapsed / time.Second)
		}
		r.trail.add(since, second, rate)
		if !m.frozen {
			r.trail.forget()
		}
	}
}

// measure computes what is on the screen from the snapshot that is shown.
func (m *model) measure() {
	past := m.history()
	for _, r := range m.rows {
		r.shown = r.stat
		if m.frozen && r.stat != nil {
			r.shown = m.shown.Find(r.stat.ID)
		}
		if r.shown == nil {
			continue
		}
		r.num = past.measure(m.shown, r.shown, m.window())
		r.zero, r.less = past.zero.Find(r.shown.ID), nil
	}
	m.totals = m.total()
	m.updateUnits()
	m.sortRows()
	m.dirty = true
}

// history is what goes with the snapshot that is shown.
func (m *model) history() *history {
	if m.frozen {
		return &m.held
	}
	return &m.past
}

// totals is the line under the header.
type totals struct {
	rate   float64
	missed uint64
	lost   uint64
	perCPU []float64
	off    *row // at rest and not in balance
	not    int  // refused or failed
	again  bool // a probe hits again: see probes.AgainNote

	unfollowed uint64 // as in the snapshot
	any        bool
}

func (m *model) total() totals {
	t := totals{lost: m.shown.Lost.Cells + m.shown.Lost.Calls, perCPU: make([]float64, m.shown.CPUs), unfollowed: m.shown.Unfollowed}
	from, to := m.history().lastSecond()
	if zero := m.history().zero; zero != nil {
		t.lost -= zero.Lost.Cells + zero.Lost.Calls
	}
	for _, r := range m.rows {
		st := r.shown
		if st == nil {
			continue
		}
		t.any = true
		if !st.Stood() && st.State != probes.Placing {
			t.not++
		}
		t.again = t.again || st.Stood() && st.HitsAgain()
		t.missed += st.Missed.Total()
		if r.zero != nil {
			t.missed -= r.zero.Missed.Total()
		}
		if st.State == probes.Attached {
			t.rate += r.num.rate
		}
		t.perCPU = r.num.addTo(t.perCPU)
		b, a := to.Find(st.ID), from.Find(st.ID)
		if st.Kind == probes.Return && a != nil && b != nil && a.Hits == b.Hits && b.Hits == st.Hits &&
			b.Balance() != 0 && st.Balance() != 0 {
			t.off = r
		}
	}
	return t
}
