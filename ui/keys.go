package ui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// binding is one line of the key table: what update obeys, what the help says
// and what the key bar shows are all read from it.
type binding struct {
	keys  []string // as tea.KeyPressMsg.String() has them
	show  string   // how the keys are written for people
	help  string   // what they do; empty: told with the key before
	group string   // of the help
	bar   string   // one word for the key bar, behind the first key; empty: not in it
	rank  int      // the higher, the earlier it leaves a narrow key bar
	do    func(m *model) tea.Cmd
	when  func(m *model) bool // nil: always
}

// zoomRank and above: in the key bar only while a view fills a small screen,
// where there is no reading line that tells of them.
const zoomRank = 8

// first is the first of the keys, as written for people, or a pair of short ones.
func (b binding) first() string {
	if len([]rune(b.show)) <= len("[ ]") {
		return b.show
	}
	name, _, _ := strings.Cut(b.show, " ")
	return name
}

// places says whether the key can place a probe: in a recording it only says that
// it cannot.
func (b binding) places() bool { return b.bar == "count" || b.bar == "latency" }

const (
	groupProbes = "probes"
	groupLook   = "look"
	groupTime   = "time"
	groupMove   = "move"
	groupKeep   = "leave"
)

func quiet(f func(m *model)) func(m *model) tea.Cmd {
	return func(m *model) tea.Cmd { f(m); return nil }
}

// withRow does something to the selected row, if there is one.
func withRow(f func(m *model, r *row) tea.Cmd) func(m *model) tea.Cmd {
	return func(m *model) tea.Cmd {
		if m.selected == nil {
			return nil
		}
		m.touched = m.now
		return f(m, m.selected)
	}
}

func (m *model) hasRow() bool { return m.selected != nil }

// hasView says whether a view is on the screen.
func (m *model) hasView() bool { return m.selected != nil && (m.split() || m.zoomed) }

// keys is the table for the screen itself. A dialog has its own.
func keys() []binding {
	return slices.Concat(probeKeys(), lookKeys(), moveKeys(), leaveKeys())
}

// keys is the table for this screen, at this moment.
func (m *model) keys() []binding {
	table := keys()
	if slices.ContainsFunc(m.rows, m.canGiveUp) {
		i := slices.IndexFunc(table, func(b binding) bool { return b.show == "esc" })
		table[i].bar = "give up"
	}
	if m.hasScenes() {
		at := len(table) - len(leaveKeys())
		table = slices.Insert(table, at, binding{[]string{"S"}, "S", "the demo's next scene", groupTime, "scene", 6, (*model).nextScene, nil})
	}
	return table
}

func probeKeys() []binding {
	return []binding{
		{[]string{"space"}, "space", "count the hits, or no more", groupProbes, "count", 2, withRow((*model).toggle), (*model).hasRow},
		{[]string{"r"}, "r", "its latency too, or no more", groupProbes, "latency", 3, withRow((*model).toggleReturn), (*model).hasRow},
		{[]string{"d"}, "d", "take the row away, and its probe", groupProbes, "", 0, withRow((*model).takeAway), (*model).hasRow},
		{[]string{"u"}, "u", "undo the last change", groupProbes, "undo", 7, (*model).takeBack, func(m *model) bool { return len(m.undo) > 0 }},
		{[]string{"/"}, "/", "find a function", groupProbes, "find", 0, (*model).openFind, nil},
		{[]string{"o"}, "o", "follow a target that runs again", groupProbes, "follow", 0, (*model).follow, (*model).canFollow},
	}
}

func lookKeys() []binding {
	out := []binding{
		{[]string{"tab"}, "tab shift-tab", "next, previous view", groupLook, "view", 4, quiet(func(m *model) { m.nextView(1) }), (*model).hasView},
		{[]string{"shift+tab"}, "shift-tab", "", groupLook, "", 0, quiet(func(m *model) { m.nextView(-1) }), (*model).hasView},
		{[]string{"enter"}, "enter", "fill the screen, and back", groupLook, "zoom", 5, quiet((*model).zoom), (*model).hasRow},
		{[]string{"esc"}, "esc", "back, close the banner, give up", groupLook, "", 0, quiet((*model).back), nil},
		{[]string{"y"}, "y", "axis log; slowest; processes", groupLook, "", 0, quiet((*model).turnView), (*model).hasView},
		{[]string{"w"}, "w", "why it has no hits, or no returns", groupLook, "", 0, withRow((*model).askWhy), (*model).canAskWhy},
		{[]string{"+"}, "+ -", "threshold of slow calls", groupLook, "threshold", zoomRank, func(m *model) tea.Cmd { return m.stepThreshold(true) }, (*model).canStep},
		{[]string{"-"}, "-", "", groupLook, "", 0, func(m *model) tea.Cmd { return m.stepThreshold(false) }, (*model).canStep},
		{[]string{"<"}, "< >", "sort by the column beside", groupLook, "", 0, quiet(func(m *model) { m.sortBy(-1) }), nil},
		{[]string{">"}, ">", "", groupLook, "", 0, quiet(func(m *model) { m.sortBy(1) }), nil},
		{[]string{"I"}, "I", "sort the other way round", groupLook, "", 0, quiet(func(m *model) { m.ascending = !m.ascending; m.resort() }), nil},
		{[]string{"["}, "[ ]", "window: 10s, 30s, since start", groupTime, "window", zoomRank, quiet(func(m *model) { m.turnWindow(-1) }), nil},
		{[]string{"]"}, "]", "", groupTime, "", 0, quiet(func(m *model) { m.turnWindow(1) }), nil},
		{[]string{"p"}, "p", "freeze the picture, count on", groupTime, "freeze", 6, quiet((*model).freeze), (*model).hasRow},
		{[]string{"c"}, "c", "clear: count from zero", groupTime, "clear", 7, quiet((*model).clear), (*model).hasRow},
		{[]string{"n"}, "n", "raw names; in find ctrl-t", groupLook, "", 0, quiet((*model).turnNames), nil},
		{[]string{"C", "f2"}, "C", "choose the columns", groupLook, "", 0, quiet((*model).openColumns), nil},
	}
	for i, v := range views() {
		d := string(rune('1' + i))
		out = append(out, binding{[]string{d}, d, v.title, groupLook, "", 0, quiet(func(m *model) { m.lookAt(i) }), (*model).hasRow})
	}
	return out
}

func moveKeys() []binding {
	move := func(f func(m *model) int) func(m *model) tea.Cmd {
		return quiet(func(m *model) { m.move(f(m)) })
	}
	by := func(n int) func(m *model) int { return func(*model) int { return n } }
	page := func(sign, part int) func(m *model) int {
		return func(m *model) int { return sign * max(m.tableRows()/part, 1) }
	}
	return []binding{
		{[]string{"j", "down"}, "j k ↓ ↑", "row", groupMove, "", 0, move(by(1)), nil},
		{[]string{"k", "up"}, "k ↑", "", groupMove, "", 0, move(by(-1)), nil},
		{[]string{"g"}, "g G", "first, last row", groupMove, "", 0, move(by(-1 << 20)), nil},
		{[]string{"G"}, "G end", "", groupMove, "", 0, move(by(1 << 20)), nil},
		{[]string{"ctrl+d"}, "ctrl-d ctrl-u", "half a page", groupMove, "", 0, move(page(1, 2)), nil},
		{[]string{"ctrl+u"}, "ctrl-u", "", groupMove, "", 0, move(page(-1, 2)), nil},
		{[]string{"pgdown"}, "pgdn pgup", "a page", groupMove, "", 0, move(page(1, 1)), nil},
		{[]string{"pgup"}, "pgup", "", groupMove, "", 0, move(page(-1, 1)), nil},
		{[]string{"left"}, "← →", "cursor: bucket, call, or list", groupMove, "cursor", zoomRank + 1, quiet(func(m *model) { m.stepView(-1) }), (*model).hasView},
		{[]string{"right"}, "→", "", groupMove, "", 0, quiet(func(m *model) { m.stepView(1) }), (*model).hasView},
	}
}

func leaveKeys() []binding {
	return []binding{
		{[]string{"ctrl+l"}, "ctrl-l", "draw the screen again", groupKeep, "", 0, func(*model) tea.Cmd { return tea.ClearScreen }, nil},
		{[]string{"ctrl+z"}, "ctrl-z", "to the shell; fg comes back", groupKeep, "", 0, func(*model) tea.Cmd { return tea.Suspend }, nil},
		{[]string{"?", "f1"}, "?", "this help", groupKeep, "help", 0, quiet((*model).openHelp), nil},
		{[]string{"q", "ctrl+c"}, "q", "quit: nothing remains", groupKeep, "quit", 0, func(*model) tea.Cmd { return tea.Quit }, nil},
	}
}

// press obeys one key.
func (m *model) press(msg tea.KeyPressMsg) tea.Cmd {
	k := msg.String()
	switch k {
	case "ctrl+c":
		return tea.Quit
	case "ctrl+z":
		return tea.Suspend
	case "ctrl+l":
		return tea.ClearScreen
	}
	if m.dialog != nil {
		return m.dialog.update(m, msg)
	}
	return m.obey(k, m.keys())
}

// obey runs the binding of a key, if there is one and it applies.
func (m *model) obey(k string, table []binding) tea.Cmd {
	for _, b := range table {
		if slices.Contains(b.keys, k) && (b.when == nil || b.when(m)) {
			return b.do(m)
		}
	}
	return nil
}

func (m *model) nextView(by int) {
	m.viewAt = (m.viewAt + by + len(m.views)) % len(m.views)
}

// turnView shows the view the other way round, as far as it has one.
func (m *model) turnView() {
	if turn := m.views[m.viewAt].turn; turn != nil {
		turn(m)
	}
}

// stepView moves the cursor of the view.
func (m *model) stepView(by int) {
	if step := m.views[m.viewAt].step; step != nil {
		step(m, by)
	}
}

// lookAt shows a view; where there is no room beside the table it fills the screen.
func (m *model) lookAt(i int) { m.viewAt, m.zoomed = i, m.zoomed || !m.split() }

func (m *model) zoom() { m.zoomed = !m.zoomed }

func (m *model) back() {
	switch {
	case m.giveUp():
	case m.selected != nil && m.explains(m.selected):
		m.selected.why, m.zoomed = nil, m.zoomed && m.split()
	case m.zoomed:
		m.zoomed = false
	case m.banner.text != "":
		m.closeBanner()
	}
}

func (m *model) turnWindow(by int) {
	m.windowAt = min(max(m.windowAt+by, 0), len(windows)-1)
	m.measure()
}

// move selects another row, by rows of the table.
func (m *model) move(by int) {
	if len(m.rows) == 0 {
		return
	}
	i := slices.Index(m.rows, m.selected)
	m.selected = m.rows[min(max(i+by, 0), len(m.rows)-1)]
	m.touched = m.now
}
