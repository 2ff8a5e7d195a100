package ui

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// The order of the rows is calm: a value has to stay 10 % away from the one
// that the row is sorted by for 2 s, and nothing moves for 3 s after a key.
const (
	sortLead     = 0.10
	sortPatience = 2 * time.Second
	sortRest     = 3 * time.Second
)

func (m *model) sortRows() {
	col := m.sortColumn()
	for _, r := range m.rows {
		r.cond = m.condition(r)
		if col.text == nil {
			m.seat(r, col)
		}
	}
	if m.now.Sub(m.touched) < sortRest {
		return
	}
	slices.SortStableFunc(m.rows, func(a, b *row) int { return m.compareRows(col, a, b) })
}

// seat brings what a row is sorted by up to its value, with patience.
func (m *model) seat(r *row, col *column) {
	v, ok := 0.0, false
	if r.shown != nil {
		v, ok = col.value(r)
	}
	if !ok {
		v = r.num.rate
	}
	if ok != r.valued {
		r.valued, r.unseated = ok, true
	}
	away := math.Abs(v-r.sortKey) > sortLead*math.Abs(r.sortKey)
	switch {
	case r.unseated && r.shown != nil:
		r.sortKey, r.unseated = v, v <= 0
	case !away:
		r.moved = 0
	case r.moved == 0:
		r.moved = m.shown.Elapsed
	case m.shown.Elapsed-r.moved >= sortPatience:
		r.sortKey, r.moved = v, 0
	}
}

// compareRows has rows with numbers before those without, whichever way round
// the numbers are sorted. Names are there in any state.
func (m *model) compareRows(col *column, a, b *row) int {
	c := 0
	switch {
	case col.text != nil:
		c = cmp.Compare(col.text(b), col.text(a))
	case a.cond != b.cond:
		return cmp.Compare(a.cond, b.cond)
	case a.valued != b.valued:
		if a.valued {
			return -1
		}
		return 1
	default:
		c = cmp.Compare(b.sortKey, a.sortKey)
	}
	if m.ascending {
		c = -c
	}
	return cmp.Or(c, cmp.Compare(a.born, b.born))
}

// sortOn sorts by a column; by the same one again, the other way round. Numbers
// begin with the largest, names with the first.
func (m *model) sortOn(col *column) {
	if col == m.sortColumn() {
		m.ascending = !m.ascending
	} else {
		m.ascending = col.text != nil
	}
	m.sortTitle = col.title
	m.resort()
}

// sortBy goes to the next column.
func (m *model) sortBy(by int) {
	able, at := []*column{&nameColumn}, 0
	for _, p := range slices.Backward(m.places) {
		if p.column == m.sortColumn() {
			at = len(able)
		}
		able = append(able, p.column)
	}
	m.sortOn(able[(at+by+len(able))%len(able)])
}

// resort puts the rows into order at once, because the user asked for it.
func (m *model) resort() {
	for _, r := range m.rows {
		r.unseated = true
	}
	m.touched = m.touched.Add(-sortRest)
	m.sortRows()
}
