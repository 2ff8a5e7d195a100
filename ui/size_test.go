package ui

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"uprobetop/probes"
	"uprobetop/probes/hist"
	"uprobetop/symbols"
)

// TestEverySizeFits draws every state at every size in steps: no line is wider
// than the terminal, and there are as many lines as it is high.
func TestEverySizeFits(t *testing.T) {
	states := map[string][]string{
		"watch":   nil,
		"zoom":    {"enter"},
		"cpus":    {"2"},
		"slow":    {"3", "right"},
		"columns": {"C", "j"},
		"ledger":  {"4"},
		"entry":   {"j", "j", "j"},
		"silent":  {"G", "k"},
		"help":    {"?"},
		"find":    {"/", "m"},
	}
	for name, keys := range states {
		s := watching(t, 120, 40)
		s.src.calls = slowAt
		s.press("3")
		s.runFor(20, 64, mysqlLoad)
		s.press("1")
		s.press(keys...)
		for _, w := range []int{1, 44, 59, 60, 67, 75, 76, 80, 99, 100, 117, 118, 120, 139, 140, 150, 160, 180, 200, 300} {
			for _, h := range []int{1, 11, 12, 13, 15, 19, 20, 24, 30, 44, 45, 60} {
				s.send(tea.WindowSizeMsg{Width: w, Height: h})
				checkSize(t, fmt.Sprintf("%s at %d×%d", name, w, h), s.View().Content, w, h)
			}
		}
	}
}

func checkSize(t *testing.T, what, content string, w, h int) {
	t.Helper()
	lines := strings.Split(content, "\n")
	if len(lines) != h {
		t.Errorf("%s: %d lines, want %d", what, len(lines), h)
	}
	for i, line := range lines {
		if got := lipgloss.Width(line); got != w {
			t.Errorf("%s: line %d is %d cells wide", what, i+1, got)
		}
	}
}

// TestContentChangesNoWidth lets the numbers grow by ten orders of magnitude:
// the columns stay where they are.
func TestContentChangesNoWidth(t *testing.T) {
	heads := map[string]bool{}
	for _, rate := range []float64{0.2, 17, 3e3, 8e5, 2e9} {
		loads := []load{{"malloc", probes.Return, rate, [][3]float64{{1, 90, 1}}, probes.Attached, "", -1}}
		s := newScreen(t, 120, 40, &fakeSource{snap: snapshotAt(0, 8, loads)}, Options{})
		s.runFor(5, 8, loads)
		var at []string
		for _, p := range s.places {
			at = append(at, fmt.Sprint(p.title, p.x, p.w))
		}
		heads[strings.Join(at, " ")] = true
		checkSize(t, fmt.Sprint(rate), s.View().Content, 120, 40)
	}
	if len(heads) != 1 {
		t.Errorf("the columns moved: %v", heads)
	}
}

// A view that fills the screen says nothing of the table, and leaves its function
// the room.
func TestZoomSaysNothingOfTheTable(t *testing.T) {
	loads := append(slices.Clone(mysqlLoad),
		load{"row_search_mvcc", probes.Entry, 9, nil, probes.Attached, "", -1}, load{"realloc", probes.Entry, 9, nil, probes.Attached, "", -1},
		load{"memcpy", probes.Entry, 9, nil, probes.Attached, "", -1}, load{"pthread_mutex_lock", probes.Entry, 9, nil, probes.Attached, "", -1})
	s := newScreen(t, 80, 24, &fakeSource{snap: snapshotAt(0, 4, loads)}, Options{})
	s.runFor(3, 4, loads)
	s.press("esc", "3")
	if !strings.Contains(s.text(), "1–8 of 10") {
		t.Fatalf("beside the table the rule does not say which rows are visible:\n%s", s.text())
	}
	s.runFor(1, 4, loads)
	s.press("enter")
	for _, k := range []string{"1", "2", "3", "4"} {
		s.press(k)
		if got := s.text(); strings.Contains(got, " of 10") || !strings.Contains(got, "─ buf_page_get_gen ─") {
			t.Errorf("view %s: the rule reads %q", k, strings.Split(got, "\n")[2])
		}
	}
}

// TestNamesReachNoTerminalRaw puts what a hostile file may hold into names and
// notes.
func TestNamesReachNoTerminalRaw(t *testing.T) {
	evil := "a\x1b[31mb\x07c\nd\u202ee"
	f := &symbols.File{Path: "/tmp/" + evil, Dev: 1, Ino: 9, Functions: functions(evil)}
	snap := snapshotAt(1, 2, nil)
	snap.Probes = []probes.Stats{
		{Probe: &probes.Probe{ID: 1, File: f, Function: &f.Functions[0]}, State: probes.Failed, Note: evil},
	}
	s := newScreen(t, 120, 40, &fakeSource{snap: snap}, Options{})
	s.target.Label, s.target.Files = evil, append(s.target.Files, f)
	for _, keys := range [][]string{nil, {"3"}, {"4"}, {"enter"}, {"esc", "/", "a"}} {
		s.press(keys...)
		s.dirty = true
		plain := s.text()
		if i := strings.IndexFunc(plain, func(r rune) bool { return r != '\n' && (r < ' ' || r == 0x7f || r == 0x202e) }); i >= 0 {
			t.Errorf("after %v a control character is drawn: %q", keys, plain[max(i-20, 0):i+10])
		}
	}
}

// BenchmarkView draws frames and takes ticks: of a screen full of timed rows, and
// of as many counted ones as a glob gives, with the default room for timed ones.
func BenchmarkView(b *testing.B) {
	for _, rows := range []int{64, 5000} {
		var loads []load
		for i := range rows {
			l := mysqlLoad[i%5]
			if i >= 256 {
				l = mysqlLoad[1]
			}
			loads = append(loads, l)
		}
		snap := snapshotAt(0, 64, loads)
		distinct(snap)
		s := newScreen(b, 120, 40, &fakeSource{snap: snap}, Options{})
		for at := 0.25; at < 40; at += 4 {
			s.src.snap = snapshotAt(at, 64, loads)
			distinct(s.src.snap)
			s.pull(4e9)
		}
		b.Run(fmt.Sprint("draw/", rows), func(b *testing.B) {
			for b.Loop() {
				s.dirty = true
				s.View()
			}
		})
		b.Run(fmt.Sprint("tick/", rows), func(b *testing.B) {
			for b.Loop() {
				s.snap.Seq = 0
				s.tick(s.time)
			}
		})
		s.clear()
		b.Run(fmt.Sprint("cleared/", rows), func(b *testing.B) {
			for b.Loop() {
				s.snap.Seq = 0
				s.tick(s.time)
			}
		})
	}
}

// distinct gives every probe of a snapshot a function of its own.
func distinct(snap *probes.Snapshot) {
	for i := range snap.Probes {
		p := *snap.Probes[i].Probe
		fn := *p.Function
		fn.Offset += symbols.Offset(0x10000 * (16 + i))
		p.Function = &fn
		snap.Probes[i].Probe = &p
	}
}

// oddCalls are calls as only a broken record could tell them.
var oddCalls = []probes.Call{
	{Probe: 1},
	{Probe: 1, Latency: -5, CPU: -1, TID: -1, Thread: &probes.ThreadStats{OnCPU: -1, Waiting: -1}},
	{Probe: 1, Latency: math.MaxInt64, CPU: 1 << 20, TID: 1 << 40, Comm: strings.Repeat("w", 300), Args: [3]uint64{1<<64 - 1, 1 << 63, 1}, Thread: &probes.ThreadStats{
		OnCPU: math.MaxInt64, Waiting: math.MaxInt64, Voluntary: 1<<64 - 1, Involuntary: 1<<64 - 1, MinorFaults: 1 << 63, MajorFaults: 1 << 63,
	}},
	{Probe: 99, Latency: 7},
}

// TestOddSnapshotsAreDrawn feeds what a collector hardly ever says: the screen
// has to stand it at every size.
func TestOddSnapshotsAreDrawn(t *testing.T) {
	open := &hist.Histogram{Sum: 1 << 62, Min: 0, Max: 1 << 60}
	open.Counts[0], open.Counts[hist.Open] = 5, 1<<50
	at := func(name string, st probes.Stats) probes.Stats {
		f, fn := function(name)
		st.Probe = &probes.Probe{ID: 1, Kind: probes.Return, File: f, Function: fn}
		return st
	}
	many := make([]probes.CPUStats, 513)
	for i := range many {
		many[i] = probes.CPUStats{CPU: i * 2, Hits: 1 << 40}
	}
	odd := map[string]probes.Stats{
		"empty":          at("malloc", probes.Stats{State: probes.Attached}),
		"no histogram":   at("malloc", probes.Stats{State: probes.Attached, Hits: 7}),
		"zero histogram": at("malloc", probes.Stats{State: probes.Attached, Hits: 7, Latency: &hist.Histogram{}}),
		"all extremes":   at("malloc", probes.Stats{State: probes.Attached, Hits: 1<<64 - 1, Returned: 1 << 63, InFlight: -1 << 62, Latency: open, Rate: math.Inf(1), Load: math.NaN()}),
		"many CPUs":      at("malloc", probes.Stats{State: probes.Attached, Hits: 1 << 50, PerCPU: many, Latency: open}),
		"placed later":   at("malloc", probes.Stats{State: probes.Attached, Hits: 3, Placed: 1 << 50, Latency: open}),
		"stopped":        at("malloc", probes.Stats{State: probes.Stopped, Hits: 3, Latency: open}),
		"gone":           at("malloc", probes.Stats{State: probes.Gone, Hits: 3, Latency: open}),
	}
	for name, st := range odd {
		for _, cpus := range []int{0, 1, 2, 1026} {
			snap := &probes.Snapshot{Seq: 1, CPUs: cpus, Interval: 250e6, Elapsed: 1e9, Probes: []probes.Stats{st}, Calls: oddCalls}
			s := newScreen(t, 120, 40, &fakeSource{snap: snap}, Options{})
			next := *snap
			next.Seq, next.Elapsed = 2, 2e9
			s.src.snap = &next
			s.pull(1e9)
			for _, k := range []string{"1", "right", "y", "2", "3", "4", "c", "enter", "[", "p"} {
				s.press(k)
				for _, size := range [][2]int{{60, 12}, {80, 24}, {120, 40}, {200, 60}} {
					s.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
					checkSize(t, name+" after "+k, s.View().Content, size[0], size[1])
					if strings.Contains(s.text(), "NaN") || strings.Contains(s.text(), "Inf") {
						t.Errorf("%s after %s: NaN on the screen\n%s", name, k, s.text())
					}
				}
			}
		}
	}
}
