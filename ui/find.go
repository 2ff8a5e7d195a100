package ui

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"uprobetop/probes"
	"uprobetop/symbols"
	"uprobetop/ui/chart"
	"uprobetop/ui/format"
)

// finder searches all functions of the target as one types.
type finder struct {
	input   textinput.Model
	query   string    // of the matches
	running bool      // a search is under way
	since   time.Time // when it began
	matches []symbols.Match
	total   int
	all     int    // functions there are
	toggled bool   // something was switched on or off in it
	said    string // why the last key did nothing; empty: it did something
	at, top int
	rows    int // visible, as last drawn
}

// findLimit is how many matches are kept: more than anybody scrolls through.
const findLimit = 500

type foundMsg struct {
	query   string
	matches []symbols.Match
	total   int
}

func newFinder(m *model) *finder {
	f := &finder{input: textinput.New()}
	f.input.KeyMap.Paste.SetEnabled(false) // no look into the clipboard of the host; the terminal pastes
	f.input.SetVirtualCursor(false)        // the terminal's own stands there, and does not blink
	f.input.Focus()
	for _, file := range m.target.Files {
		f.all += len(file.Functions)
	}
	return f
}

func (m *model) openFind() tea.Cmd {
	f := newFinder(m)
	m.dialog = f
	return f.search(m)
}

// search looks for what is typed beside the screen. One runs at a time; what was
// typed meanwhile is looked for when it is done.
func (f *finder) search(m *model) tea.Cmd {
	if f.running {
		return nil
	}
	f.running, f.since = true, m.now
	files, query := m.target.Files, f.input.Value()
	return func() tea.Msg {
		matches, total := symbols.Search(files, query, findLimit)
		return foundMsg{query, matches, total}
	}
}

// warmUp reads all names once, so that the first search does not wait for it.
func (m *model) warmUp() tea.Msg {
	symbols.Search(m.target.Files, "", 0)
	return nil
}

func (f *finder) found(m *model, msg foundMsg) tea.Cmd {
	f.running = false
	if msg.query != f.query {
		f.at, f.top = 0, 0
	}
	f.query, f.matches, f.total = msg.query, msg.matches, msg.total
	if f.input.Value() != msg.query {
		return f.search(m)
	}
	return nil
}

func (f *finder) whole() bool { return true }

func (f *finder) keys() []binding { return findKeys() }

// onMatch does something to the function of the selected match.
func onMatch(do func(m *model, r *row) tea.Cmd) func(m *model) tea.Cmd {
	return func(m *model) tea.Cmd {
		f, ok := m.dialog.(*finder)
		if !ok || f.at >= len(f.matches) {
			return nil
		}
		if m.onlyRecorded() {
			f.said = m.banner.text
			return nil
		}
		match := f.matches[f.at]
		r := m.rowFor(match.File, match.Function)
		m.selected, f.toggled = r, true
		return do(m, r)
	}
}

// findKeys is the key table of the finder; all other keys are text.
func findKeys() []binding {
	finding := func(do func(m *model, f *finder)) func(m *model) tea.Cmd {
		return quiet(func(m *model) {
			if f, ok := m.dialog.(*finder); ok {
				do(m, f)
			}
		})
	}
	by := func(n int) func(m *model) tea.Cmd {
		return finding(func(_ *model, f *finder) { f.move(n) })
	}
	page := func(sign int) func(m *model) tea.Cmd {
		return finding(func(_ *model, f *finder) { f.move(sign * max(f.rows-1, 1)) })
	}
	return []binding{
		{[]string{"tab"}, "tab", "count the hits of the selected, or no more", groupProbes, "count", 0, onMatch((*model).toggle), nil},
		{[]string{"ctrl+r"}, "ctrl-r", "its latency too, or no more", groupProbes, "latency", 0, onMatch((*model).toggleReturn), nil},
		{[]string{"ctrl+t"}, "ctrl-t", "names as in the symbol table", groupLook, "", 0, quiet((*model).turnNames), nil},
		{[]string{"down", "ctrl+n"}, "↓ ↑", "select", groupMove, "", 0, by(1), nil},
		{[]string{"up", "ctrl+p"}, "↑", "select", groupMove, "", 0, by(-1), nil},
		{[]string{"pgdown"}, "pgdn", "a page down", groupMove, "", 0, page(1), nil},
		{[]string{"pgup"}, "pgup", "a page up", groupMove, "", 0, page(-1), nil},
		{[]string{"enter"}, "enter", "watch", groupKeep, "watch", 0, (*model).watch, nil},
		{[]string{"esc"}, "esc", "back", groupKeep, "back", 0, quiet(func(m *model) { m.dialog = nil }), nil},
	}
}

// watch leaves the finder. If nothing was switched on or off in it, the selected
// function is what the user came for: it is counted.
func (m *model) watch() tea.Cmd {
	f, ok := m.dialog.(*finder)
	if !ok {
		return nil
	}
	var cmd tea.Cmd
	if f.at < len(f.matches) {
		match := f.matches[f.at]
		r := m.byKey[keyOf(match.File, match.Function)]
		switch {
		case r != nil:
			m.selected = r
		case !f.toggled && f.query != "":
			cmd = onMatch((*model).toggle)(m)
		}
	}
	m.dialog = nil
	return cmd
}

func (f *finder) update(m *model, msg tea.KeyPressMsg) tea.Cmd {
	f.said = ""
	for _, b := range findKeys() {
		for _, k := range b.keys {
			if k == msg.String() {
				return b.do(m)
			}
		}
	}
	return f.edit(m, msg)
}

func (f *finder) paste(m *model, msg tea.PasteMsg) tea.Cmd { return f.edit(m, msg) }

// edit gives a message to the text field and searches anew if that changed.
func (f *finder) edit(m *model, msg tea.Msg) tea.Cmd {
	before := f.input.Value()
	f.input, _ = f.input.Update(msg)
	if f.input.Value() == before {
		return nil
	}
	return f.search(m)
}

func (f *finder) move(by int) {
	f.at = min(max(f.at+by, 0), max(len(f.matches)-1, 0))
}

func (f *finder) draw(m *model, c *chart.Canvas) {
	th := m.th
	y := 0
	if m.airy() {
		y = 1
	}
	x := c.Text(2, y, string(th.Prompt)+" ", th.Key)
	query := clean(f.input.Value())
	found := format.Count(uint64(f.total)) + " of " + format.Count(uint64(f.all)) + " functions"
	if f.running && m.now.Sub(f.since) > slowWork {
		found = "searching " + format.Count(uint64(f.all)) + " functions"
	}
	end := c.Right(c.W-2, y, found, th.Muted)
	room := end - x - 3
	typed := query
	if n := chart.Width(typed) - room; n > 0 {
		typed = string([]rune(typed)[n:])
	}
	c.Text(x, y, typed, th.Bright)
	if query == "" {
		c.Text(x+1, y, "type a part of a name", th.Muted)
	}
	at := x + min(chart.Width(string([]rune(f.input.Value())[:f.input.Position()])), room)
	m.cursor = tea.NewCursor(at, y+1)
	m.cursor.Blink = false
	c.Fill(0, y+1, c.W, 1, th.H, th.Line)
	if f.said != "" {
		c.Text(1, y+1, " "+f.said+" ", th.Warn)
	}
	about := 0
	if c.H >= 24 {
		about = 9
	}
	f.drawList(m, c.Sub(0, y+2, c.W, c.H-y-2-about))
	if about > 0 && f.at < len(f.matches) {
		f.drawAbout(m, c.Sub(0, c.H-about+1, c.W, about-1), f.matches[f.at])
	}
}

func (f *finder) drawList(m *model, c *chart.Canvas) {
	th := m.th
	size, notes, file := c.W-1-32, c.W-31, c.W-1-32-8-18
	if c.W < 100 {
		file = c.W - 1 - 18
	}
	c.Text(5, 0, "FUNCTION", th.Muted)
	c.Text(file, 0, "FILE", th.Muted)
	if c.W >= 100 {
		c.Right(size, 0, "SIZE", th.Muted)
		c.Text(notes, 0, "NOTES", th.Muted)
	}
	f.rows = c.H - 1
	f.top = min(f.top, f.at)
	f.top = max(f.top, f.at-f.rows+1, 0)
	if len(f.matches) == 0 && !f.running {
		c.Text(5, 2, "no function of the target has this in its name", th.Muted)
	}
	for y := 1; y < c.H && f.top+y-1 < len(f.matches); y++ {
		i := f.top + y - 1
		match := f.matches[i]
		line := c.Sub(0, y, c.W, 1)
		r := m.byKey[keyOf(match.File, match.Function)]
		sign, st := th.NotProbed, th.Muted
		if r != nil {
			sign, st = m.sign(r, m.condition(r))
		}
		line.Put(3, 0, sign, st)
		name := th.Text
		if i == f.at {
			name = th.Bright
		}
		f.drawName(m, line.Sub(5, 0, file-6, 1), m.nameOfMatch(match), name)
		line.Text(file, 0, chart.Cut(clean(filepath.Base(match.File.Path)), 17, th.Ellipsis), th.Muted)
		if c.W >= 100 {
			f.drawSize(m, line, size, match.Function)
			note, noteStyle := m.findNote(match, r)
			line.Text(notes, 0, chart.Cut(note, c.W-1-notes, th.Ellipsis), noteStyle)
		}
		if i == f.at {
			selectLine(line, 1, th)
		}
		m.spot(c, 0, y, c.W, 1, func(m *model, x int) tea.Cmd {
			f.at = i
			if x >= 3 && x <= 4 {
				return onMatch((*model).toggle)(m)
			}
			return nil
		})
	}
}

func (f *finder) drawSize(m *model, c *chart.Canvas, x int, fn *symbols.Function) {
	if fn.Size == 0 {
		c.Right(x, 0, string(m.th.Dash), m.th.Faint)
		return
	}
	c.Right(x, 0, format.Count(fn.Size), m.th.Text)
}

// drawName draws a name with what was typed marked in it. If it is too long for
// the column, its end goes.
func (f *finder) drawName(m *model, c *chart.Canvas, match symbols.Match, st chart.Style) {
	th := m.th
	hit := th.Key.With(chart.Underline)
	x, cut := 0, chart.Width(match.Name) > c.W
	for i, r := range match.Name {
		if cut && x >= c.W-1 {
			c.Put(c.W-1, 0, th.Ellipsis, st)
			return
		}
		s := st
		for _, span := range match.Spans {
			if i >= span[0] && i < span[1] {
				s = hit
			}
		}
		if !unicode.IsPrint(r) {
			r = '?'
		}
		x = c.Text(x, 0, string(r), s)
	}
}

// findNote is the one thing to know of a match beside its name.
func (m *model) findNote(match symbols.Match, r *row) (string, chart.Style) {
	th, fn := m.th, match.Function
	if r != nil {
		switch cond := m.condition(r); cond {
		case measuring:
			word, st := "counting, ", th.Entry
			if r.kindOf() == timed {
				word, st = "latency, ", th.Ret
			}
			return word + format.SI(r.num.rate) + "/s", st
		case refused, failed:
			return m.sentence(r, cond).medium, th.Bad
		case notProbed:
		default:
			s := m.sentence(r, cond)
			return s.short, s.style
		}
	}
	switch {
	case fn.Place != symbols.InFile:
		_, why := probes.Able(match.File, fn)
		return why.Reason, th.Muted
	case fn.Version != "" && !fn.Default:
		return "old version " + clean(fn.Version), th.Muted
	case match.File.CloneOf(fn) != "":
		return "clone made by the compiler", th.Muted
	case match.Name != clean(fn.Demangled()):
		return "alias of " + clean(fn.Demangled()), th.Muted
	case match.File.Go:
		return "Go: counts, no latency", th.Muted
	}
	return "", th.Muted
}

func (f *finder) drawAbout(m *model, c *chart.Canvas, match symbols.Match) {
	th, fn := m.th, match.Function
	c.Fill(0, 0, c.W, 1, th.H, th.Line)
	x := c.Text(1, 0, " "+shorten(match.Name, c.W-40, th.Ellipsis)+" ", th.Bright)
	c.Text(x, 0, clean(match.File.Path)+" ", th.Muted)
	var aliases []string
	for _, a := range fn.Aliases {
		aliases = append(aliases, clean(a.String()))
	}
	lines := [][2]string{
		{"symbol", clean(fn.Symbol.String())},
		{"address", fmt.Sprintf("%#x, offset %#x in the file", uint64(fn.Addr), uint64(fn.Offset))},
	}
	if of := match.File.CloneOf(fn); of != "" {
		lines = append(lines, [2]string{"clone of", clean(symbols.Symbol{Name: of}.Demangled()) + ", made by the compiler"})
	}
	if badge := match.File.Badge(); badge != "" {
		lines = append(lines, [2]string{"file", badge})
	}
	if len(aliases) > 0 {
		lines = append(lines, [2]string{"aliases", strings.Join(aliases, ", ")})
	}
	if full := clean(fn.Demangled()); full != match.Name || chart.Width(full) > c.W/2 {
		lines = append(lines, [2]string{"in full", full})
	}
	y := 2
	for _, l := range lines {
		c.Text(4, y, l[0], th.Muted)
		for _, part := range wrap(l[1], c.W-20) {
			c.Text(16, y, chart.Cut(part, c.W-18, th.Ellipsis), th.Text)
			y++
		}
	}
}
