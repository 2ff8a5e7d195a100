package ui

import (
	"context"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"uprobetop/symbols"
)

// screen is a model that is driven by a test as a terminal would.
type screen struct {
	*model
	src  *fakeSource
	t    testing.TB
	time time.Time
}

func newScreen(t testing.TB, w, h int, src *fakeSource, opts Options) *screen {
	t.Helper()
	target := Target{Label: "mysqld 2841", Kernel: "6.18.44", Files: []*symbols.File{libc, mysqld}}
	s := &screen{src: src, t: t, time: time.Date(2026, 11, 30, 14, 0, 0, 0, time.UTC)}
	s.model = newModel(context.Background(), src, target, opts)
	s.now = s.time
	s.send(tea.WindowSizeMsg{Width: w, Height: h})
	s.send(tea.ColorProfileMsg{Profile: colorprofile.TrueColor})
	return s
}

// send delivers a message and whatever follows from it at once.
func (s *screen) send(msg tea.Msg) {
	s.t.Helper()
	_, cmd := s.Update(msg)
	s.run(cmd)
}

func (s *screen) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case nil:
	case tea.BatchMsg:
		for _, c := range msg {
			s.run(c)
		}
	case tea.QuitMsg:
	default:
		_, next := s.Update(msg)
		s.run(next)
	}
}

// tick is a moment later, with the newest snapshot of the source.
func (s *screen) pull(after time.Duration) {
	s.time = s.time.Add(after)
	s.now = s.time
	s.take(s.src.Snapshot())
	for _, cmd := range s.reconcile() {
		s.run(cmd)
	}
}

// runFor lets the loads run for so many seconds: a snapshot a second, and the
// last two seconds at four.
func (s *screen) runFor(seconds float64, cpus int, loads []load) {
	at := s.src.snap.Elapsed.Seconds()
	for end := at + seconds; at < end; {
		step := 1.0
		if end-at <= 2 {
			step = 0.25
		}
		at += step
		snap := snapshotAt(at, cpus, loads)
		snap.Seq = s.src.snap.Seq + 1
		if s.src.calls != nil {
			snap.Calls = s.src.calls(at)
		}
		s.src.addThreads(snap)
		s.src.snap = snap
		s.pull(time.Duration(step * 1e9))
	}
}

func (s *screen) press(keys ...string) {
	s.t.Helper()
	for _, k := range keys {
		s.send(keyPress(k))
	}
}

func keyPress(k string) tea.KeyPressMsg {
	special := map[string]rune{
		"space": tea.KeySpace, "enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "left": tea.KeyLeft,
		"right": tea.KeyRight, "up": tea.KeyUp, "down": tea.KeyDown, "backspace": tea.KeyBackspace,
		"pgdown": tea.KeyPgDown, "pgup": tea.KeyPgUp, "home": tea.KeyHome, "end": tea.KeyEnd,
	}
	if code, ok := special[k]; ok {
		text := ""
		if k == "space" {
			text = " "
		}
		return tea.KeyPressMsg{Code: code, Text: text}
	}
	if rest, ok := strings.CutPrefix(k, "ctrl+"); ok {
		return tea.KeyPressMsg{Code: rune(rest[0]), Mod: tea.ModCtrl}
	}
	return tea.KeyPressMsg{Code: []rune(k)[0], Text: k}
}

func (s *screen) text() string { return s.draw().Plain() }

func watching(t testing.TB, w, h int) *screen {
	t.Helper()
	src := &fakeSource{snap: snapshotAt(0, 64, mysqlLoad)}
	s := newScreen(t, w, h, src, Options{})
	s.runFor(40, 64, mysqlLoad)
	return s
}
