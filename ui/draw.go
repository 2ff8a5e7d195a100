package ui

import (
	"cmp"
	"math"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"uprobetop/probes"
	"uprobetop/symbols"
	"uprobetop/ui/chart"
	"uprobetop/ui/format"
)

const (
	leastW, leastH = 60, 12
)

// clean makes a text safe for a terminal.
func clean(s string) string { return symbols.Printable(s) }

// View draws the screen, if anything has changed.
func (m *model) View() tea.View {
	if m.dirty {
		m.dirty = false
		m.last = m.draw().String()
	}
	v := tea.NewView(m.last)
	v.AltScreen = true
	v.WindowTitle = "uprobetop " + clean(m.target.Label)
	v.Cursor = m.cursor
	if m.mouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	return v
}

func (m *model) draw() *chart.Canvas {
	m.spots, m.scrolls, m.cursor = m.spots[:0], m.scrolls[:0], nil
	c := chart.New(m.w, m.h)
	switch {
	case m.w < leastW || m.h < leastH:
		m.drawTooSmall(c)
	default:
		m.drawLayer(c, m.dialog)
	}
	if m.th.ASCII {
		c.ASCII()
	}
	return c
}

// drawLayer draws a dialog over what is under it; nil is the screen itself.
func (m *model) drawLayer(c *chart.Canvas, d dialog) {
	switch {
	case d == nil:
		m.drawScreen(c)
	case d.whole():
		m.drawHeader(c.Sub(0, 0, m.w, 1))
		d.draw(m, c.Sub(0, 1, m.w, m.h-2))
		m.drawKeyBar(c.Sub(0, m.h-1, m.w, 1), d.keys())
	default:
		var under dialog
		if a, ok := d.(*asker); ok {
			under = a.under
		}
		m.drawLayer(c, under)
		m.spots, m.scrolls, m.cursor = m.spots[:0], m.scrolls[:0], nil
		d.draw(m, c)
	}
}

func (m *model) drawTooSmall(c *chart.Canvas) {
	th := m.th
	x := 2
	if m.w < 30 {
		x = 0
	}
	y := 1
	if m.h < 7 {
		y = 0
	}
	c.Text(x, y, "uprobetop", th.Key)
	needs := "60×12 cells are needed, this is "
	if m.w < len(needs)+len("100×100.") {
		needs = "needs 60×12, is "
	}
	at := c.Text(x, y+2, needs, th.Text)
	c.Text(at, y+2, itoa(m.w)+"×"+itoa(m.h)+".", th.Bright)
	at = c.Text(x, y+3, "Still counting: ", th.Text)
	c.Text(at, y+3, format.SI(m.totals.rate)+" hits/s", th.Bright)
	at = c.Text(x, y+5, "q", th.Key)
	quit := "quit   make it larger to go on"
	if at+1+len(quit) > m.w {
		quit = "quit"
	}
	c.Text(at+1, y+5, quit, th.Muted)
}

// drawScreen draws the regions from top to bottom.
func (m *model) drawScreen(c *chart.Canvas) {
	m.drawHeader(c.Sub(0, 0, m.w, 1))
	m.drawKeyBar(c.Sub(0, m.h-1, m.w, 1), m.keys())
	if len(m.rows) == 0 {
		m.drawNothing(c.Sub(0, 1, m.w, m.h-2))
		m.drawBanner(c.Sub(0, m.h-2, m.w, 1))
		return
	}
	m.drawTotals(c.Sub(0, 1, m.w, 1))
	y := 2
	if m.airy() {
		y++
	}
	if m.zoomed {
		m.drawZoomed(c.Sub(0, y, m.w, m.h-1-y))
		return
	}
	n := m.tableRows()
	m.drawTable(c.Sub(0, y, m.w, n+1))
	y += n + 1
	if m.bannerStands() {
		m.drawBanner(c.Sub(0, y, m.w, 1))
		y++
	} else if m.airy() {
		y++
	}
	m.drawDetail(c.Sub(0, y, m.w, m.h-1-y))
}

// airy says whether there is room for blank rows.
func (m *model) airy() bool { return m.h >= 30 }

// split says whether the detail has a pane of its own under the table.
func (m *model) split() bool { return m.w >= 76 && m.h >= 20 }

// tableRows is the number of rows of the table that are visible.
func (m *model) tableRows() int {
	room := m.h - 5
	if m.split() {
		room = m.h / 3
	} else if m.banner.text != "" {
		room--
	}
	return max(min(len(m.rows), room), 1)
}

// method is how hits and returns are seen: the in-flight store is told where it is
// not the usual one.
func method(s *probes.Snapshot) string {
	if s.InFlight == "" || s.InFlight == probes.TaskStore {
		return s.Method
	}
	return s.Method + ", " + string(s.InFlight)
}

func (m *model) drawHeader(c *chart.Canvas) {
	th := m.th
	c.Fill(0, 0, c.W, 1, ' ', th.Surface)
	state, mark, st := m.state()
	x := c.Right(c.W-1, 0, state, th.Text)
	c.Put(x-2, 0, mark, st)
	x -= 5
	end := c.Text(1, 0, "uprobetop", th.Key) + 2
	name, rest, _ := strings.Cut(clean(m.target.Label), " ")
	label := chart.Cut(name, max(x-end-14, 8), th.Ellipsis)
	end = c.Text(end, 0, label, th.Bright)
	if rest != "" {
		end = c.Text(end+1, 0, rest, th.Muted)
	}
	dot := " " + string(th.Dot) + " "
	parts := []string{clean(version(cmp.Or(m.target.Kernel, m.snap.Kernel))), format.Things(m.snap.CPUs, "CPU"), method(m.snap), format.Things(m.probed(), "probe")}
	files, badge := m.fileNames(), m.badge(x-end-len(dot)-chart.Width(parts[3])-3)
	if badge != "" {
		end = c.Text(c.Text(end, 0, dot, th.Faint), 0, badge, th.Warn)
	}
	// What goes first where there is no room: files, method, kernel, CPUs.
	width := func() int { return chart.Width(strings.Join(present(parts), dot)) }
	used := func() int { return end + 3 + width() }
	if used()+chart.Width(files)+3 > x {
		files = ""
	}
	for _, i := range [...]int{2, 0, 1} {
		if used() > x {
			parts[i] = ""
		}
	}
	if files != "" {
		c.Text(c.Text(end, 0, dot, th.Faint), 0, files, th.Text)
	}
	at := x - width()
	for i, p := range present(parts) {
		if i > 0 {
			at = c.Text(at, 0, dot, th.Faint)
		}
		at = c.Text(at, 0, p, th.Muted)
	}
}

func present(parts []string) []string {
	return slices.DeleteFunc(slices.Clone(parts), func(s string) bool { return s == "" })
}

// badge says within a width that the target runs files that are not those on disk. It
// stays where the names of the files have to go.
func (m *model) badge(room int) string {
	var old []string
	for _, f := range m.target.Files {
		if f.Badge() != "" {
			old = append(old, clean(filepath.Base(f.Path))+" "+strings.TrimSuffix(f.Badge(), " since it was mapped"))
		}
	}
	switch n := len(old); {
	case n == 0:
		return ""
	case n == 1 && chart.Width(old[0]) <= room:
		return old[0]
	default:
		return format.Things(n, "old file")
	}
}

func (m *model) fileNames() string {
	var names []string
	for _, f := range m.target.Files {
		names = append(names, clean(filepath.Base(f.Path)))
	}
	if len(names) > 3 {
		names = append(names[:2], format.Things(len(names)-2, "more file"))
	}
	return strings.Join(names, " + ")
}

// probed is the number of functions with a probe that counts.
func (m *model) probed() int {
	n := 0
	for _, r := range m.rows {
		if r.stat != nil && r.stat.State == probes.Attached {
			n++
		}
	}
	return n
}

// state is the right end of the header.
func (m *model) state() (text string, mark rune, st chart.Style) {
	th := m.th
	switch d := m.late(); {
	case m.frozen:
		return "frozen, " + format.Seconds(m.snap.Elapsed-m.shown.Elapsed) + " behind", th.Frozen, th.Warn
	case m.snap.Final || m.snap.Gone:
		return "ended", th.Late, th.Muted
	case m.opts.Recorded:
		return "replay 1" + th.Times, th.Selected, th.Accent
	case d > 0:
		return format.Seconds(d) + " late", th.Late, th.Warn
	case m.snap.Interval > 0:
		return "live " + perSecond(m.snap.Interval) + "/s", th.Live, th.Good
	}
	return "starting", th.Placing, th.Accent
}

// perSecond is how often an interval fits into a second, as a round number.
func perSecond(interval time.Duration) string {
	n := 1 / interval.Seconds()
	if n >= 1 {
		n = math.Round(n)
	}
	return format.Three(n)
}

func (m *model) drawTotals(c *chart.Canvas) {
	th := m.th
	t := &m.totals
	gap := 2
	if m.w >= 100 {
		gap = 3
	}
	x := c.Text(1, 0, format.SI(t.rate), th.Bright)
	x = c.Text(x+1, 0, "hits/s", th.Muted) + gap
	switch {
	case t.off != nil:
		x = c.Text(x, 0, "? not exact: "+shorten(t.off.name, 20, th.Ellipsis)+" does not balance", th.Warn)
	case t.unfollowed > 0:
		x = c.Text(x, 0, "? not exact: "+plural(int64(t.unfollowed), "process", "processes")+" not followed", th.Warn)
	case t.missed > 0:
		x = c.Text(c.Text(x, 0, fitCount(float64(t.missed), 12), th.Warn.With(chart.Bold))+1, 0, "missed", th.Warn)
	case t.again:
		x = c.Text(x, 0, "? a call can hit twice", th.Warn)
	case t.any:
		x = c.Text(x, 0, th.Check+" exact", th.Good)
		if t.not > 0 {
			x = c.Text(x, 0, ", "+itoa(t.not)+" not probed", th.Warn)
		}
		x = c.Text(c.Text(x+gap, 0, "missed ", th.Muted), 0, "0", th.Text)
	}
	lost := th.Text
	if t.lost > 0 {
		lost = th.Warn
	}
	x = c.Text(c.Text(x+gap, 0, "lost ", th.Muted), 0, fitCount(float64(t.lost), 12), lost)
	x = m.drawMoment(c, x, gap)
	const label = "hits by CPU "
	room := min(c.W-1-x-gap-len(label), 32)
	if m.w >= 180 {
		room = min(c.W-1-x-gap-len(label), 64)
	}
	if room < 16 || !t.any {
		return
	}
	room = stripWidth(len(t.perCPU), room)
	chart.Strip(c.Sub(c.W-1-room, 0, room, 1), t.perCPU, th)
	c.Right(c.W-1-room, 0, label, th.Muted)
}

// drawMoment says since when the numbers count, if they were cleared, and what a
// demo plays, and returns the cell behind it.
func (m *model) drawMoment(c *chart.Canvas, x, gap int) int {
	th := m.th
	if s := m.sinceClear(); s != "" && x+gap+len(s) < c.W {
		x = c.Text(x+gap, 0, s, th.Accent)
	}
	if !m.hasScenes() {
		return x
	}
	name := clean(m.opts.Scenes[m.scene.at].Name)
	if x+gap+len("scene:   S next")+chart.Width(name) >= c.W {
		return x
	}
	x = c.Text(c.Text(x+gap, 0, "scene: ", th.Muted), 0, name, th.Text)
	from := x + 2
	x = c.Text(c.Text(from, 0, "S", th.Key), 0, " next", th.Muted)
	m.spot(c, from, 0, x-from, 1, func(m *model, _ int) tea.Cmd { return m.nextScene() })
	return x
}

// stripWidth is how many of the cells a strip needs.
func stripWidth(cpus, room int) int {
	if cpus <= 1 {
		return min(room, 8)
	}
	group := (cpus + room - 1) / room
	return (cpus + group - 1) / group
}

func (m *model) drawKeyBar(c *chart.Canvas, table []binding) {
	th := m.th
	c.Fill(0, 0, c.W, 1, ' ', th.Surface)
	shown := slices.DeleteFunc(slices.Clone(table), func(b binding) bool {
		return b.bar == "" || b.when != nil && !b.when(m) || b.rank >= zoomRank && (!m.zoomed || m.airy()) || b.places() && m.opts.Recorded
	})
	gap := 3
	width := func() int {
		n := 1
		for _, b := range shown {
			n += chart.Width(b.first()) + 1 + chart.Width(b.bar) + gap
		}
		return n - gap + 1
	}
	if width() > c.W {
		gap = 2
	}
	for width() > c.W {
		worst := slices.MaxFunc(shown, func(a, b binding) int { return a.rank - b.rank })
		if worst.rank == 0 {
			break
		}
		shown = slices.DeleteFunc(shown, func(b binding) bool { return b.show == worst.show })
	}
	x := 1
	for _, b := range shown {
		from := x
		x = c.Text(x, 0, b.first(), th.Key)
		x = c.Text(x+1, 0, b.bar, th.Muted)
		m.spot(c, from, 0, x-from, 1, func(m *model, _ int) tea.Cmd { return b.do(m) })
		x += gap
	}
}

// drawNothing is the screen before the first probe.
func (m *model) drawNothing(c *chart.Canvas) {
	th := m.th
	n := 0
	for _, f := range m.target.Files {
		n += sort.Search(len(f.Functions), func(i int) bool { return f.Functions[i].Place >= symbols.NoCode })
	}
	x, y := max((c.W-56)/2, 2), max(c.H/5, 1)
	c.Text(x, y, "Nothing is probed yet.", th.Bright)
	c.Text(x, y+1, "A uprobe counts the hits of a function, a uretprobe", th.Muted)
	c.Text(x, y+2, "times its calls too. Both cost the target a trap a hit.", th.Muted)
	c.Text(x, y+4, "/", th.Key)
	c.Text(x+8, y+4, "find a function among "+format.Count(uint64(n)), th.Text)
	c.Text(x, y+5, "?", th.Key)
	c.Text(x+8, y+5, "every key", th.Text)
}

// version is a kernel's release without what its builder appended: 6.18.44.
func version(release string) string {
	v, _, _ := strings.Cut(release, "-")
	return v
}
