package ui

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"uprobetop/ui/chart"
)

// chooser is the dialog in which columns are shown or not.
type chooser struct{ at int }

func (m *model) openColumns() { m.dialog = &chooser{} }

func (d *chooser) whole() bool { return false }

func (d *chooser) keys() []binding { return nil }

func (d *chooser) update(m *model, msg tea.KeyPressMsg) tea.Cmd {
	switch msg.String() {
	case "j", "down", "tab":
		d.at = min(d.at+1, len(m.columns)-1)
	case "k", "up", "shift+tab":
		d.at = max(d.at-1, 0)
	case "space":
		m.toggleColumn(&m.columns[d.at])
	case "esc", "enter", "q", "C", "f2":
		m.dialog = nil
	}
	return nil
}

// toggleColumn shows a column or not, for as long as the screen runs.
func (m *model) toggleColumn(col *column) {
	if col.title == "HITS" {
		return
	}
	m.chosen[col.title] = m.shownColumn(col.title) == nil
	m.layOut(m.w)
	m.measure()
}

func (d *chooser) draw(m *model, c *chart.Canvas) {
	th := m.th
	in := m.box(c, "columns", 50, len(m.columns)+7)
	rows := in.H - 2
	top := max(d.at-rows+1, 0)
	for y := 0; y < rows && top+y < len(m.columns); y++ {
		i := top + y
		col := &m.columns[i]
		sign, st, note := th.NotProbed, th.Muted, ""
		chosen, was := m.chosen[col.title]
		switch {
		case col.title == "HITS":
			sign, st, note = th.EntrySign, th.Muted, "always"
		case m.shownColumn(col.title) != nil:
			sign, st = th.EntrySign, th.Accent
		case chosen:
			note = "no room for it"
		case !was:
			note = "on wider screens"
		}
		in.Put(2, y, sign, st)
		in.Text(4, y, col.title, th.Text)
		in.Text(16, y, note, th.Muted)
		if i == d.at {
			selectLine(in.Sub(0, y, in.W, 1), 0, th)
		}
	}
	drawKeys(in, in.W, in.H-1, []string{"space", "show, or not", "esc", "close"}, th)
}

// goFirst are the columns in the order in which they make room.
var goFirst = []string{"IN FLIGHT", "P99.9", "P90", "PER CPU", "MISSED", "KIND", "MAX", "P50", "LAST 30s", "LOAD", "P99"}

const leastName = 18 // cells of FUNCTION

// cells is how wide each column is on a screen that is w cells wide; 0: it is
// not shown. A column that was chosen has its least width where it would not be
// there by itself; where there is no room for all, those go first that nobody
// chose.
func (m *model) cells(w int) []int {
	out := make([]int, len(m.columns))
	left := w - 1 - 5 - 1
	for i := range m.columns {
		col := &m.columns[i]
		out[i] = col.width(w)
		if shown, was := m.chosen[col.title]; was && !shown {
			out[i] = 0
		} else if was {
			out[i] = max(out[i], col.least())
		}
		left -= out[i]
	}
	for _, chosen := range []bool{false, true} {
		for _, title := range goFirst {
			i := slices.IndexFunc(m.columns, func(c column) bool { return c.title == title })
			if left >= leastName {
				return out
			}
			if m.chosen[title] == chosen {
				left += out[i]
				out[i] = 0
			}
		}
	}
	return out
}

// least is the width that a column has where it first appears.
func (col *column) least() int {
	for w := leastW; ; w++ {
		if cells := col.width(w); cells > 0 {
			return cells
		}
	}
}
