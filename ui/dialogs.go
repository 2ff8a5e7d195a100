package ui

import (
	"path/filepath"

	tea "charm.land/bubbletea/v2"

	"uprobetop/probes"
	"uprobetop/ui/chart"
)

// box darkens the screen, draws an empty dialog in its middle, and returns what
// is inside. On the smallest screens it is the whole screen, without border.
func (m *model) box(c *chart.Canvas, title string, w, h int) *chart.Canvas {
	th := m.th
	room := m.boxRoom(h)
	w, h = min(w, c.W-4), min(h, c.H)
	if m.boxless() {
		c.Clear(chart.Style{})
		c.Text(1, 0, title, th.Bright)
		c.Right(c.W-1, 0, "esc", th.Key)
		return c.Sub(1, 1, c.W-2, room)
	}
	c.Map(behind(th))
	d := c.Sub((c.W-w)/2, (c.H-h)/2, w, h)
	d.Clear(th.Surface)
	d.Fill(0, 0, w, 1, th.H, th.Accent)
	d.Fill(0, h-1, w, 1, th.H, th.Accent)
	d.Fill(0, 0, 1, h, th.V, th.Accent)
	d.Fill(w-1, 0, 1, h, th.V, th.Accent)
	d.Put(0, 0, th.TopLeft, th.Accent)
	d.Put(w-1, 0, th.TopRight, th.Accent)
	d.Put(0, h-1, th.BottomLeft, th.Accent)
	d.Put(w-1, h-1, th.BottomR, th.Accent)
	d.Text(2, 0, " "+title+" ", th.Bright)
	d.Right(w-2, 0, " esc ", th.Muted)
	return d.Sub(3, 2, w-6, room)
}

func (m *model) boxless() bool { return m.w < 76 || m.h < 16 }

// boxRoom is the number of rows inside a dialog that shall be h high.
func (m *model) boxRoom(h int) int {
	if m.boxless() {
		return m.h - 1
	}
	return min(h, m.h) - 3
}

// asker shows what speaks against a probe and waits for a yes, once a file.
type asker struct {
	wish
	finding probes.Finding
	under   dialog // what was open before
}

func (a *asker) whole() bool { return false }

func (a *asker) keys() []binding { return nil }

func (a *asker) update(m *model, msg tea.KeyPressMsg) tea.Cmd {
	switch msg.String() {
	case "y":
		m.dialog = a.under
		m.yes[fileKey(a.row.file)] = true
		return m.agree(a.wish)
	case "esc", "n", "enter", "q":
		// The focus is on the harmless choice.
		m.dialog = a.under
		if !a.row.kept {
			m.dropRow(a.row)
		}
	}
	return nil
}

func (a *asker) draw(m *model, c *chart.Canvas) {
	th := m.th
	w := min(72, c.W-4)
	reason := wrap(clean(a.finding.Reason), w-8)
	way := wrap(clean(a.finding.Way), w-8)
	if a.finding.Way == "" {
		way = nil
	}
	in := m.box(c, "place it?", w, len(reason)+len(way)+8)
	in.Text(0, 0, shorten(a.row.name, in.W, th.Ellipsis), th.Bright)
	x := in.Text(0, 1, "in ", th.Muted)
	in.Text(x, 1, clean(filepath.Base(a.row.file.Path)), th.Muted)
	y := 2
	if in.H > len(reason)+len(way)+4 {
		y = 3
	}
	in.Put(0, y, th.Asks, th.Warn)
	for _, line := range reason {
		in.Text(2, y, line, th.Warn)
		y++
	}
	for _, line := range way {
		in.Text(2, y, line, th.Text)
		y++
	}
	y = in.H - 1
	x = in.Text(0, y, " esc ", th.Tab)
	x = in.Text(x+1, y, "leave it", th.Bright)
	x = in.Text(x+4, y, "y", th.Key)
	in.Text(x+1, y, "place it, and do not ask for this file again", th.Muted)
}
