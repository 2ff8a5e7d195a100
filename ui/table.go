package ui

import (
	"strconv"
	"time"

	tea "charm.land/bubbletea/v2"

	"uprobetop/ui/chart"
)

func itoa(n int) string { return strconv.Itoa(n) }

const doubleClick = 400 * time.Millisecond

// drawTable draws the header line and the visible rows.
func (m *model) drawTable(c *chart.Canvas) {
	m.drawHeadings(c)
	n := c.H - 1
	m.scroll(n)
	for i := range min(n, len(m.rows)-m.top) {
		r := m.rows[m.top+i]
		m.drawRow(c.Sub(0, i+1, c.W, 1), r)
		m.spot(c, 0, i+1, c.W, 1, func(m *model, x int) tea.Cmd {
			twice := m.selected == r && m.now.Sub(m.clicked) < doubleClick
			m.selected, m.touched, m.clicked = r, m.now, m.now
			if x >= 3 && x <= 4 {
				return m.toggle(r)
			}
			if twice {
				m.zoom()
			}
			return nil
		})
	}
}

// scroll keeps the selected row among the n that are visible.
func (m *model) scroll(n int) {
	for i, r := range m.rows {
		if r == m.selected {
			m.top = min(m.top, i)
			m.top = max(m.top, i-n+1)
		}
	}
	m.top = max(min(m.top, len(m.rows)-n), 0)
}

func (m *model) drawHeadings(c *chart.Canvas) {
	th := m.th
	sorted := m.sortColumn()
	sign := th.Down
	if m.ascending {
		sign = th.Up
	}
	heads := append([]place{{column: &nameColumn, x: 5, w: m.nameEnd - 5}}, m.places...)
	for _, p := range heads {
		st, title := th.Muted, m.heading(&p)
		if p.column == sorted {
			st = th.Bright
		}
		x, w := p.x, chart.Width(title)
		var at int // of the sign
		if p.left {
			c.Text(x, 0, title, st)
			if at = x + min(w+1, p.w-1); at < x+w {
				at = x - 1
			}
		} else {
			x = c.Right(p.x+p.w, 0, title, st)
			at = max(x-2, p.x-1)
		}
		if p.column == sorted {
			c.Put(at, 0, sign, th.Accent)
		}
		m.spot(c, min(x, at), 0, w+2, 1, func(m *model, _ int) tea.Cmd {
			m.sortOn(p.column)
			return nil
		})
	}
}

func (m *model) drawRow(c *chart.Canvas, r *row) {
	th := m.th
	cond := m.condition(r)
	sign, st := m.sign(r, cond)
	c.Put(3, 0, sign, st)
	m.drawName(c, r, cond)
	for i := range m.places {
		p := &m.places[i]
		if cond != measuring && p.title != "KIND" {
			continue
		}
		if p.draw != nil {
			p.draw(m, c.Sub(p.x, 0, p.w, 1), r)
		} else if r.shown != nil {
			m.drawValue(c, 0, p, r)
		}
	}
	if cond != measuring {
		m.drawSentence(c, r, cond)
	}
	if r == m.selected {
		selectLine(c, 1, th)
	}
}

// selectLine lays the selection over a line, with its sign at x.
func selectLine(c *chart.Canvas, x int, th *chart.Theme) {
	c.Map(selected(th))
	arrow := th.Accent
	if th.SelText || th.Sel.Bg == 0 {
		arrow = chart.Style{Fg: th.Sel.Fg, Attr: th.Sel.Attr}
	}
	arrow.Bg = th.Sel.Bg
	c.Put(x, 0, th.Selected, arrow)
}

func (m *model) drawName(c *chart.Canvas, r *row, cond condition) {
	th := m.th
	room := m.nameEnd - 5
	missed := uint64(0)
	if r.shown != nil && cond == measuring && m.shownColumn("MISSED") == nil {
		missed = r.since().Missed.Total()
	}
	if missed > 0 {
		room -= 2
	}
	st := th.Text
	if r == m.selected {
		st = th.Bright
	}
	x := c.Text(5, 0, m.shortNames(room)[r], st)
	if missed > 0 {
		c.Put(x+1, 0, '!', th.Warn)
	}
}

// sign is the state of a row in one cell.
func (m *model) sign(r *row, cond condition) (rune, chart.Style) {
	th := m.th
	switch cond {
	case placing:
		return th.Placing, th.Accent
	case failed, refused:
		return th.Failed, th.Bad
	case notProbed, stopped, givenUp:
		return th.NotProbed, th.Muted
	}
	if m.canGiveUp(r) {
		return th.Placing, th.Accent // of another kind than the one that counts
	}
	sign, st := m.kindSign(r)
	if cond != measuring {
		st = th.Muted
	}
	return sign, st
}

// drawKeys draws keys and words so that they end before x, and returns where
// they begin.
func drawKeys(c *chart.Canvas, x, y int, keys []string, th *chart.Theme) int {
	for i := len(keys) - 2; i >= 0; i -= 2 {
		x = c.Right(x, y, keys[i+1], th.Muted)
		x = c.Right(x-1, y, keys[i], th.Accent)
		if i > 0 {
			x -= 3
		}
	}
	return x
}
