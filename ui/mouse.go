package ui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"uprobetop/ui/chart"
)

// spot is a part of the screen that can be clicked. do gets the cell within it.
type spot struct {
	x, y, w, h int
	do         func(m *model, x int) tea.Cmd
}

// spot makes a part of a canvas one.
func (m *model) spot(c *chart.Canvas, x, y, w, h int, do func(m *model, x int) tea.Cmd) {
	m.spots = append(m.spots, spot{c.X + x, c.Y + y, w, h, do})
}

// spotOn is a spot over a canvas.
func (m *model) spotOn(c *chart.Canvas, do func(m *model)) {
	m.spot(c, 0, 0, c.W, c.H, func(m *model, _ int) tea.Cmd { do(m); return nil })
}

// scroll is a part of the screen that the wheel moves.
type scroll struct {
	spot
	by func(m *model, by int)
}

func (m *model) scrollOn(c *chart.Canvas, by func(m *model, by int)) {
	m.scrolls = append(m.scrolls, scroll{spot{x: c.X, y: c.Y, w: c.W, h: c.H}, by})
}

func (s spot) has(x, y int) bool { return x >= s.x && x < s.x+s.w && y >= s.y && y < s.y+s.h }

func (m *model) click(msg tea.MouseClickMsg) tea.Cmd {
	if msg.Button != tea.MouseLeft {
		return nil
	}
	// The last one drawn lies on top.
	for i := len(m.spots) - 1; i >= 0; i-- {
		s := m.spots[i]
		if s.has(msg.X, msg.Y) {
			return s.do(m, msg.X-s.x)
		}
	}
	return nil
}

func (m *model) wheel(msg tea.MouseWheelMsg) {
	by := 0
	switch msg.Button {
	case tea.MouseWheelUp:
		by = -1
	case tea.MouseWheelDown:
		by = 1
	}
	if f, ok := m.dialog.(*finder); ok {
		f.move(by)
		return
	}
	for _, s := range m.scrolls {
		if s.has(msg.X, msg.Y) {
			s.by(m, by)
			return
		}
	}
	if m.dialog == nil {
		m.move(by)
	}
}

// wrap breaks a text into lines of at most w cells, between words.
func wrap(s string, w int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		if line != "" && chart.Width(line)+1+chart.Width(word) > w {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
