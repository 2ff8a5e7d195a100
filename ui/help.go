package ui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"uprobetop/ui/chart"
	"uprobetop/ui/format"
)

// helper is the help: the key table, the signs, and what the colours mean. It
// can be searched, and runs the entry that is chosen.
type helper struct {
	query string
	at    int // the entry that enter runs, always visible; -1: none
	top   int // first visible row
}

func (m *model) openHelp() { m.dialog = &helper{at: -1} }

func (h *helper) whole() bool { return false }

func (h *helper) keys() []binding { return nil }

func (h *helper) update(m *model, msg tea.KeyPressMsg) tea.Cmd {
	k := msg.String()
	if h.moved(m, k) {
		return nil
	}
	switch k {
	case "esc", "?", "f1":
		m.dialog = nil
	case "backspace":
		if r := []rune(h.query); len(r) > 0 {
			h.query, h.at, h.top = string(r[:len(r)-1]), 0, 0
		}
	case "ctrl+u":
		h.query, h.at, h.top = "", -1, 0
	case "enter":
		m.dialog = nil
		if entries := h.entries(m); h.at >= 0 && h.at < len(entries) {
			b := entries[h.at]
			if b.when == nil || b.when(m) {
				return b.do(m)
			}
		}
	default:
		if msg.Text != "" {
			h.query += clean(msg.Text)
			h.at, h.top = 0, 0
		}
	}
	return nil
}

// moved obeys the keys that move. Those that can be text do so only until
// something has been typed.
func (h *helper) moved(m *model, k string) bool {
	room := h.page(m).room
	switch k {
	case "down", "tab":
		h.step(m, 1)
	case "up", "shift+tab":
		h.step(m, -1)
	case "pgdown":
		h.scroll(m, max(room-1, 1))
	case "pgup":
		h.scroll(m, -max(room-1, 1))
	case "ctrl+d":
		h.scroll(m, max(room/2, 1))
	case "home":
		h.scroll(m, -1<<20)
	case "end":
		h.scroll(m, 1<<20)
	default:
		as, ok := map[string]string{"j": "down", "k": "up", "g": "home", "G": "end"}[k]
		switch {
		case h.query != "":
			return false
		case k == "ctrl+u":
			h.scroll(m, -max(room/2, 1))
		default:
			return ok && h.moved(m, as)
		}
	}
	return true
}

// step chooses the next entry, or the one before. Beyond the last, where signs
// and colours are, it scrolls.
func (h *helper) step(m *model, by int) {
	p := h.page(m)
	next := h.at + by
	if h.at < 0 {
		next = -1
		for i := range p.entries {
			if p.visible(i, h.top) && (next < 0 || by < 0) {
				next = i
			}
		}
	}
	if next < 0 || next >= len(p.entries) {
		h.scroll(m, by)
		return
	}
	h.at = next
	h.reach(&p)
}

// reach scrolls to the chosen entry.
func (h *helper) reach(p *helpPage) {
	if h.at >= 0 && h.at < len(p.entries) {
		row := p.row(h.at)
		h.top = min(max(h.top, row-p.room+1), row)
	}
}

// scroll moves what is visible by so many rows. An entry that leaves the screen
// is chosen no more.
func (h *helper) scroll(m *model, by int) {
	p := h.page(m)
	h.top = min(max(h.top+by, 0), p.last())
	if !p.visible(h.at, h.top) {
		h.at = -1
	}
}

// helpPage is how the lines of the help lie on the screen.
type helpPage struct {
	entries []binding
	lines   []helpLine
	cut     int // lines of the left column
	rows    int // of the longer column
	room    int // rows that are visible
}

func (h *helper) page(m *model) helpPage {
	p := helpPage{entries: h.entries(m)}
	p.lines = h.lines(m, p.entries)
	if m.w >= 100 {
		p.cut = secondColumn(p.lines)
	}
	if p.cut == 0 {
		p.cut = len(p.lines)
	}
	p.rows = max(p.cut, len(p.lines)-p.cut)
	p.room = max(m.boxRoom(p.height())-2, 1)
	return p
}

// height is that of the box that has room for all.
func (p *helpPage) height() int { return p.rows + 6 }

// last is the first visible row where the end is visible.
func (p *helpPage) last() int { return max(p.rows-p.room, 0) }

// row is where an entry stands.
func (p *helpPage) row(entry int) int {
	i := slices.IndexFunc(p.lines, func(l helpLine) bool { return l.entry == entry })
	if i >= p.cut {
		i -= p.cut
	}
	return i
}

func (p *helpPage) visible(entry, top int) bool {
	row := p.row(entry)
	return entry >= 0 && row >= top && row < top+p.room
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
	p := h.page(m)
	h.top = min(h.top, p.last()) // the screen may have changed its size
	h.reach(&p)
	in := m.box(c, "help", 104, p.height())
	m.scrollOn(c, func(m *model, by int) { h.scroll(m, by) })
	th := m.th
	x := in.Text(0, 0, string(th.Prompt)+" ", th.Accent)
	if h.query == "" {
		in.Text(x, 0, "type to search, enter runs the entry", th.Muted)
	} else {
		x = in.Text(x, 0, h.query, th.Bright)
		in.Put(x, 0, ' ', chart.Style{Attr: chart.Reverse})
	}
	h.drawMore(m, in.Sub(0, 0, in.W, 1), &p)
	body := in.Sub(0, 2, in.W, p.room)
	left, right := p.lines[:p.cut], p.lines[p.cut:]
	w := body.W
	if len(right) > 0 {
		w = body.W/2 - 1
	}
	h.drawLines(m, body.Sub(0, 0, w, body.H), left[min(h.top, len(left)):])
	h.drawLines(m, body.Sub(body.W/2+1, 0, w, body.H), right[min(h.top, len(right)):])
}

// drawMore says how many rows there are above and below.
func (h *helper) drawMore(m *model, c *chart.Canvas, p *helpPage) {
	if p.last() == 0 {
		return
	}
	th := m.th
	x := c.Right(c.W, 0, "more", th.Muted)
	for _, more := range []struct {
		sign rune
		n    int
	}{{th.Down, p.last() - h.top}, {th.Up, h.top}} {
		if more.n == 0 {
			continue
		}
		x = c.Right(x, 0, " "+format.Count(uint64(more.n))+" ", th.Muted)
		c.Put(x-1, 0, more.sign, th.Accent)
		x -= 2
	}
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
		{left: string(th.UsdtSign), leftStyle: th.Usdt, right: "usdt: counts", entry: -1},
		{left: string(th.Placing), leftStyle: th.Accent, right: "being placed", entry: -1},
		{left: string(th.Failed), leftStyle: th.Bad, right: "cannot be placed, or failed", entry: -1},
		{left: "!", leftStyle: th.Warn, right: "has missed hits", entry: -1},
		{left: string(th.Dash), leftStyle: th.Faint, right: "not measured, or cannot be", entry: -1},
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
		c.Text(15, y, chart.Cut(l.right, c.W-15, th.Ellipsis), th.Text)
		if l.entry >= 0 && l.entry == h.at {
			c.Sub(0, y, c.W, 1).Map(selected(th))
		}
	}
}
