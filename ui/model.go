package ui

import (
	"context"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"uprobetop/probes"
	"uprobetop/ui/chart"
)

// model is the root of the screen. It is changed by Update only; View draws
// what it finds and remembers where things are, for the mouse.
type model struct {
	ctx    context.Context
	src    Source
	target Target
	opts   Options

	now           time.Time // of the last message that carried one
	w, h          int
	look          look
	th            *chart.Theme
	dirty         bool
	last          string // what was drawn
	spots         []spot // what a click does, of the last drawing
	scrolls       []scroll
	mouse         bool
	measuredWidth bool // of signs
	cursor        *tea.Cursor

	snap    *probes.Snapshot // the newest
	arrived time.Time        // of snap
	shown   *probes.Snapshot // what the numbers are of
	frozen  bool
	past    history
	held    history // while frozen
	totals  totals

	rows     []*row
	byKey    map[key]*row
	short    map[int]map[*row]string // by cells; see shortNames
	born     int
	selected *row
	top      int       // first visible row
	touched  time.Time // last movement
	clicked  time.Time // last click on the selected row
	removed  map[probes.ID]bool
	watched  map[probes.ID]*watched

	columns   []column
	chosen    map[string]bool // titles of columns: shown, or not; else by width
	places    []place
	nameEnd   int
	units     []columnUnit
	sortTitle string // empty: by itself
	ascending bool
	rawNames  bool // names as they stand in the symbol table

	windowAt int
	views    []view
	viewAt   int
	zoomed   bool
	charts   chartState

	dialog    dialog // nil: none
	yes       map[key]bool
	outcome   Outcome
	successor successor
	scene     scene
	undo      []func(m *model) tea.Cmd // each takes one change back
	banner    banner
	dismissed map[string]bool
}

// dialog takes all keys while it is open.
type dialog interface {
	update(m *model, msg tea.KeyPressMsg) tea.Cmd
	draw(m *model, c *chart.Canvas)
	keys() []binding
	whole() bool // fills the screen between header and key bar
}

func newModel(ctx context.Context, src Source, t Target, opts Options) *model {
	m := &model{
		ctx: ctx, src: src, target: t, opts: opts,
		now:  time.Now(),
		w:    80,
		h:    24,
		look: look{name: opts.Theme}, mouse: !opts.NoMouse,
		byKey: map[key]*row{}, short: map[int]map[*row]string{}, removed: map[probes.ID]bool{}, watched: map[probes.ID]*watched{}, yes: map[key]bool{}, dismissed: map[string]bool{}, chosen: map[string]bool{},
		columns: columns(), views: views(),
		windowAt: 1, // 30s
		snap:     &probes.Snapshot{}, shown: &probes.Snapshot{},
	}
	for _, f := range opts.Accepted {
		m.yes[fileKey(f)] = true
	}
	m.units = make([]columnUnit, len(m.columns))
	m.charts.cursor = -1
	m.setTheme()
	m.layOut(m.w)
	m.take(src.Snapshot())
	if opts.Banner != "" {
		less, _, _ := strings.Cut(opts.Banner, ":")
		m.show(banner{text: opts.Banner, less: []string{less}})
	}
	if opts.Find {
		m.dialog = newFinder(m)
	}
	return m
}

type tickMsg time.Time

func tick() tea.Cmd {
	return tea.Tick(pullEvery, func(t time.Time) tea.Msg { return tickMsg(t) })
}

func (m *model) Init() tea.Cmd {
	cmds := []tea.Cmd{tick(), tea.RequestBackgroundColor, m.warmUp}
	if !m.look.ascii {
		cmds = append(cmds, tea.Raw(askWidth))
	}
	if f, ok := m.dialog.(*finder); ok {
		cmds = append(cmds, f.search(m))
	}
	return tea.Batch(cmds...)
}

// Update handles one message.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tickMsg:
		cmd = m.tick(time.Time(msg))
	case tea.WindowSizeMsg:
		m.resize(msg.Width, msg.Height)
	case tea.ColorProfileMsg:
		m.setProfile(msg.Profile)
	case tea.BackgroundColorMsg:
		m.look.bg, m.look.light = msg.Color, !msg.IsDark()
		m.setTheme()
	case tea.CursorPositionMsg:
		cmd = m.setWidth(msg.X)
	case tea.KeyPressMsg:
		m.dirty = true
		cmd = m.press(msg)
	case tea.PasteMsg:
		if f, ok := m.dialog.(*finder); ok {
			m.dirty = true
			cmd = f.paste(m, msg)
		}
	case tea.MouseClickMsg:
		m.dirty = true
		cmd = m.click(msg)
	case tea.MouseWheelMsg:
		m.dirty = true
		m.wheel(msg)
	case tea.ResumeMsg:
		m.dirty = true
	case checkedMsg:
		m.dirty = true
		cmd = m.checked(msg)
	case placedMsg:
		m.dirty = true
		cmd = m.placed(msg)
	case removedMsg:
		m.dirty = true
		m.notRemoved(msg)
	case reportedMsg:
		m.dirty = true
		cmd = m.reported(msg)
	case watchedMsg:
		m.dirty = true
		m.watchAnswered(msg)
	case successorMsg:
		m.dirty = true
		m.succeeded(msg)
	case whyMsg:
		m.dirty = true
		m.answered(msg)
	case sceneMsg:
		m.dirty = true
		m.sceneSet(msg)
	case foundMsg:
		if f, ok := m.dialog.(*finder); ok {
			m.dirty = true
			cmd = f.found(m, msg)
		}
	}
	return m, cmd
}

func (m *model) tick(t time.Time) tea.Cmd {
	m.now = t
	wasLate := m.late() > 0
	m.take(m.src.Snapshot())
	if wasLate || m.late() > 0 {
		m.warnAbout()
		m.dirty = true
	}
	if f, ok := m.dialog.(*finder); ok && f.running {
		m.dirty = true
	}
	return tea.Batch(append(m.reconcile(), m.askSuccessor(), tick())...)
}

func (m *model) resize(w, h int) {
	m.w, m.h, m.dirty = w, h, true
	m.layOut(w)
	m.measure()
}

func (m *model) setProfile(p colorprofile.Profile) {
	switch p {
	case colorprofile.NoTTY, colorprofile.ASCII:
		m.look.depth = mono
	case colorprofile.ANSI:
		m.look.depth = sixteen
	case colorprofile.ANSI256:
		m.look.depth = palette
	default:
		m.look.depth = full
	}
	m.setTheme()
}

// askWidth prints a sign whose width Unicode leaves open, asks where the cursor
// is then, and wipes the sign away.
const askWidth = "\x1b7\r◉\x1b[6n\r\x1b[K\x1b8"

// setWidth takes the answer: where the signs are two cells wide, only ASCII
// keeps the columns straight. The line that the question wiped is drawn again.
func (m *model) setWidth(column int) tea.Cmd {
	if m.measuredWidth {
		return nil
	}
	m.measuredWidth = true
	if column == 2 {
		m.look.ascii = true
		m.setTheme()
	}
	return tea.ClearScreen
}

func (m *model) setTheme() {
	m.th = m.look.theme()
	clear(m.short)
	m.dirty = true
}

// windows are what the numbers are over; 0 is since the start.
var windows = [...]time.Duration{10 * time.Second, 30 * time.Second, 0}

func (m *model) window() time.Duration { return windows[m.windowAt] }

func (m *model) sparkSecond() int { return int(m.shown.Elapsed / time.Second) }

// late is for how long a snapshot has been overdue; 0 if it is not.
func (m *model) late() time.Duration {
	if m.arrived.IsZero() || m.snap.Final {
		return 0
	}
	d := m.now.Sub(m.arrived)
	if d < 3*max(m.snap.Interval, 250*time.Millisecond) {
		return 0
	}
	return d
}

// sortColumn is the column that the table is sorted by.
func (m *model) sortColumn() *column {
	title := m.sortTitle
	if title == "" {
		title = "HITS"
		for _, r := range m.rows {
			if r.kindOf() == timed {
				title = "LOAD"
			}
		}
	}
	if title == nameColumn.title {
		return &nameColumn
	}
	i := slices.IndexFunc(m.columns, func(c column) bool { return c.title == title })
	return &m.columns[i]
}

func (m *model) selectFirst() {
	m.selected = m.rows[0]
	if m.opts.Watch == nil {
		return
	}
	for _, r := range m.rows {
		if r.fn == m.opts.Watch {
			m.selected = r
		}
	}
}
