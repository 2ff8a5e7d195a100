package ui

import (
	"path/filepath"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"uprobetop/probes"
	"uprobetop/ui/chart"
)

// box darkens the screen, draws an empty dialog in its middle, and returns what
// is inside. On the smallest screens it is the whole screen, without border.
func (m *model) box(c *chart.Canvas, title string, w, h int) *chart.Canvas {
	th := m.th
	w, h = min(w, c.W-4), min(h, c.H)
	if m.w < 76 || m.h < 16 {
		c.Clear(chart.Style{})
		c.Text(1, 0, title, th.Bright)
		c.Right(c.W-1, 0, "esc", th.Key)
		return c.Sub(1, 1, c.W-2, c.H-1)
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
	return d.Sub(3, 2, w-6, h-3)
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

// helper is the help: the key table, the signs, and what the colours mean. It
// can be searched, and runs the entry that is chosen.
type helper struct {
	query string
	at    int // the entry that enter runs
}

func (m *model) openHelp() { m.dialog = &helper{at: -1} }

func (h *helper) whole() bool { return false }

func (h *helper) keys() []binding { return nil }

func (h *helper) update(m *model, msg tea.KeyPressMsg) tea.Cmd {
	n := len(h.entries(m))
	switch k := msg.String(); k {
	case "esc", "?", "f1":
		m.dialog = nil
	case "down", "tab":
		h.at = min(h.at+1, n-1)
	case "up", "shift+tab":
		h.at = max(h.at-1, 0)
	case "backspace":
		if r := []rune(h.query); len(r) > 0 {
			h.query, h.at = string(r[:len(r)-1]), 0
		}
	case "ctrl+u":
		h.query, h.at = "", -1
	case "enter":
		m.dialog = nil
		if h.at >= 0 && h.at < n {
			b := h.entries(m)[h.at]
			if b.when == nil || b.when(m) {
				return b.do(m)
			}
		}
	default:
		if msg.Text != "" {
			h.query += clean(msg.Text)
			h.at = 0
		}
	}
	return nil
}

// entries are the bindings that contain what was typed.
func (h *helper) entries(m *model) []binding {
	all := m.keys()
	slices.SortStableFunc(all, func(a, b binding) int { return groupRank(a.group) - groupRank(b.group) })
	return slices.DeleteFunc(all, func(b binding) bool {
		return b.help == "" || !strings.Contains(strings.ToLower(b.show+" "+b.help), strings.ToLower(h.query))
	})
}

func groupRank(g string) int {
	return slices.Index([]string{groupProbes, groupTime, groupLook, groupMove, groupKeep}, g)
}

func (h *helper) draw(m *model, c *chart.Canvas) {
	entries := h.entries(m)
	lines := h.lines(m, entries)
	two := c.W >= 100
	rows := len(lines)
	if two {
		rows = (len(lines) + 1) / 2
		if cut := secondColumn(lines); cut > 0 {
			rows = max(cut, len(lines)-cut)
		}
	}
	in := m.box(c, "help", 104, rows+6)
	th := m.th
	if in.H == 0 {
		return
	}
	x := in.Text(0, 0, string(th.Prompt)+" ", th.Accent)
	if h.query == "" {
		in.Text(x, 0, "type to search, enter runs the entry", th.Muted)
	} else {
		x = in.Text(x, 0, h.query, th.Bright)
		in.Put(x, 0, ' ', chart.Style{Attr: chart.Reverse})
	}
	body := in.Sub(0, 2, in.W, in.H-2)
	if !two {
		h.drawLines(m, body, scrolled(lines, h.at, body.H))
		return
	}
	cut := secondColumn(lines)
	if cut == 0 || cut > body.H {
		cut = min(body.H, len(lines))
	}
	h.drawLines(m, body.Sub(0, 0, body.W/2-1, body.H), lines[:cut])
	h.drawLines(m, body.Sub(body.W/2+1, 0, body.W/2-1, body.H), lines[cut:])
}

// scrolled drops lines from the top until the chosen one is visible.
func scrolled(lines []helpLine, at, room int) []helpLine {
	for i, l := range lines {
		if l.entry == at && l.entry >= 0 && i >= room {
			return lines[i-room+1:]
		}
	}
	return lines
}

// helpLine is one line of the help: a heading, an entry, or a sign.
type helpLine struct {
	head      string
	left      string
	leftStyle chart.Style
	right     string
	entry     int  // index into entries, or -1
	next      bool // the second column begins here
}

func secondColumn(lines []helpLine) int {
	return max(slices.IndexFunc(lines, func(l helpLine) bool { return l.next }), 0)
}

func (h *helper) lines(m *model, entries []binding) []helpLine {
	th := m.th
	var out []helpLine
	group := ""
	for i, b := range entries {
		if b.group != group {
			if group != "" {
				out = append(out, helpLine{entry: -1})
			}
			group = b.group
			out = append(out, helpLine{head: group, entry: -1, next: group == groupMove})
		}
		out = append(out, helpLine{left: b.show, leftStyle: th.Key, right: b.help, entry: i})
	}
	if h.query != "" {
		return out
	}
	signs := []helpLine{
		{head: "signs", entry: -1},
		{left: string(th.NotProbed), leftStyle: th.Muted, right: "not probed", entry: -1},
		{left: string(th.EntrySign), leftStyle: th.Entry, right: "uprobe: counts", entry: -1},
		{left: string(th.RetSign), leftStyle: th.Ret, right: "uretprobe: counts and latency", entry: -1},
		{left: string(th.Placing), leftStyle: th.Accent, right: "being placed", entry: -1},
		{left: string(th.Failed), leftStyle: th.Bad, right: "cannot be placed, or failed", entry: -1},
		{left: "!", leftStyle: th.Warn, right: "has missed hits", entry: -1},
		{left: string(th.Dash), leftStyle: th.Faint, right: "not measured, by design", entry: -1},
		{left: "0", leftStyle: th.Muted, right: "measured, none", entry: -1},
		{entry: -1},
		{head: "latency", entry: -1},
	}
	for i, z := range []struct {
		st   chart.Style
		text string
	}{{th.H50, "to p50"}, {th.H90, "to p90"}, {th.H99, "to p99"}, {th.HMax, "above"}} {
		glyph := th.Eight[7]
		if th.Shade {
			glyph = th.Zones[i]
		}
		signs = append(signs, helpLine{left: string(glyph) + string(glyph), leftStyle: z.st, right: z.text, entry: -1})
	}
	signs = append(signs, helpLine{left: string(th.Ramp[6]), leftStyle: th.Hot, right: "the hottest CPU", entry: -1})
	return append(append(out, helpLine{entry: -1}), signs...)
}

func (h *helper) drawLines(m *model, c *chart.Canvas, lines []helpLine) {
	th := m.th
	for y, l := range lines {
		if l.head != "" {
			c.Text(0, y, l.head, th.Bright)
			continue
		}
		c.Text(0, y, l.left, l.leftStyle)
		c.Text(15, y, l.right, th.Text)
		if l.entry >= 0 && l.entry == h.at {
			c.Sub(0, y, c.W, 1).Map(selected(th))
		}
	}
}
