package ui

import (
	"strings"
	"time"

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
	look    *symbols.Searcher
	query   string    // of the matches
	running bool      // a search is under way
	since   time.Time // when it began
	matches []symbols.Match
	total   int
	all     int    // names there are
	markers int    // those of usdt probes
	runtime string // that there are others, which are in no file
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
	f := &finder{input: textinput.New(), look: symbols.NewSearcher(m.target.Files), runtime: probes.Runtime(m.target.Files)}
	f.input.KeyMap.Paste.SetEnabled(false) // no look into the clipboard of the host; the terminal pastes
	f.input.SetVirtualCursor(false)        // the terminal's own stands there, and does not blink
	f.input.Focus()
	for _, file := range m.target.Files {
		f.all += len(file.Functions)
		f.markers += len(file.Markers())
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
	look, files, query := f.look, m.target.Files, f.input.Value()
	return func() tea.Msg {
		matches, total := lookFor(look, files, query)
		return foundMsg{query, matches, total}
	}
}

// lookFor reads a query as people write names: usdt:name is a usdt probe, what begins
// as a mangled name is one, and what no name has that people read may be in a raw one.
func lookFor(look *symbols.Searcher, files []*symbols.File, query string) (matches []symbols.Match, total int) {
	if name, ok := usdtQuery(query); ok {
		return symbols.SearchMarkers(files, name, findLimit)
	}
	raw := mangled(strings.TrimSpace(query))
	if raw {
		matches, total = symbols.SearchRaw(files, query, findLimit)
	}
	if total == 0 {
		matches, total = look.Search(query, findLimit)
	}
	if total == 0 && !raw {
		matches, total = symbols.SearchRaw(files, query, findLimit)
	}
	return matches, total
}

// usdtQuery is what usdt: stands before.
func usdtQuery(query string) (name string, ok bool) {
	return strings.CutPrefix(strings.TrimSpace(query), probes.USDT.String()+":")
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
		{[]string{"ctrl+t"}, "ctrl-t", "names as in the symbol table", groupLook, "names", 1, quiet((*model).turnNames), nil},
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
	all := format.Things(f.all, "name")
	if _, ok := usdtQuery(f.query); ok {
		all = format.Things(f.markers, "usdt probe")
	}
	found := format.Count(uint64(f.total)) + " of " + all
	if f.running && m.now.Sub(f.since) > slowWork {
		found = "searching " + all
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
		c.Text(1, y+1, " "+chart.Cut(f.said, c.W-4, th.Ellipsis)+" ", th.Warn)
	}
	about, note := 0, 0
	if c.H >= 24 {
		about = 9
	}
	if about == 0 || !f.notesColumn(c.W) {
		note = 1
	}
	f.drawList(m, c.Sub(0, y+2, c.W, c.H-y-2-about-note))
	if f.at >= len(f.matches) {
		return
	}
	match := f.matches[f.at]
	if note > 0 {
		able, why := limits(match)
		text, st := m.findNote(match, m.byKey[keyOf(match.File, match.Function)], able, why)
		c.Text(5, c.H-about-note, chart.Cut(text, c.W-6, th.Ellipsis), st)
	}
	if about > 0 {
		f.drawAbout(m, c.Sub(0, c.H-about+1, c.W, about-1), match)
	}
}
