package ui

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"uprobetop/probes"
	"uprobetop/symbols"
)

// rowText is the line of the table that has a name in it.
func (s *screen) rowText(name string) string {
	s.t.Helper()
	for _, line := range strings.Split(s.text(), "\n") {
		if i := strings.Index(line, name); i > 0 && i < 10 && !strings.HasPrefix(line, "─") {
			return line
		}
	}
	s.t.Fatalf("no row of %s on the screen:\n%s", name, s.text())
	return ""
}

// select goes to a row with the keys j and k.
func (s *screen) selectRow(name string) {
	s.t.Helper()
	s.press("g")
	for range s.rows {
		if s.selected.name == name {
			return
		}
		s.press("j")
	}
	s.t.Fatalf("no row %s", name)
}

// publish shows a snapshot a moment later.
func (s *screen) publish(loads []load, change func(*probes.Snapshot)) {
	at := s.src.snap.Elapsed.Seconds() + 0.25
	snap := snapshotAt(at, s.src.snap.CPUs, loads)
	snap.Seq = s.src.snap.Seq + 1
	if change != nil {
		change(snap)
	}
	s.src.snap = snap
	s.pull(250 * time.Millisecond)
}

var twoLoads = []load{
	{"malloc", probes.Entry, 1000, nil, probes.Attached, "", -1},
	{"buf_page_get_gen", probes.Return, 10, [][3]float64{{1, 900, 1}}, probes.Attached, "", -1},
}

func small(t *testing.T, loads []load) *screen {
	t.Helper()
	s := newScreen(t, 120, 40, &fakeSource{snap: snapshotAt(0, 4, loads)}, Options{})
	s.runFor(3, 4, loads)
	return s
}

func TestSpaceSwitchesAProbeOffAndOn(t *testing.T) {
	s := small(t, twoLoads)
	s.selectRow("malloc")
	s.press("space")
	if !slices.Equal(s.src.removed, []probes.ID{1}) {
		t.Fatalf("removed %v, want the probe of malloc", s.src.removed)
	}
	if got := s.rowText("malloc"); !strings.Contains(got, "not probed") || !strings.Contains(got, "○") {
		t.Errorf("the row reads %q", got)
	}
	s.publish(twoLoads[1:], func(sn *probes.Snapshot) { sn.Probes[0].Probe.ID = 2 })
	s.press("space")
	if len(s.src.placed) != 1 || s.src.placed[0].Kind != probes.Entry || s.src.placed[0].Function.Name != "malloc" {
		t.Fatalf("placed %v, want an entry probe on malloc", s.src.placed)
	}
	if got := s.rowText("malloc"); !strings.Contains(got, "placing") {
		t.Errorf("the row reads %q", got)
	}
	s.publish(twoLoads, func(sn *probes.Snapshot) {
		sn.Probes[0].Probe.ID, sn.Probes[1].Probe.ID = 3, 2
		slices.Reverse(sn.Probes)
	})
	if got := s.rowText("malloc"); !strings.Contains(got, "entry") || strings.Contains(got, "plac") {
		t.Errorf("the row reads %q", got)
	}
	if len(s.src.placed) != 1 || len(s.src.removed) != 1 {
		t.Errorf("placed %d and removed %d times", len(s.src.placed), len(s.src.removed))
	}
}

func TestRTimesACountedFunctionWithoutAGap(t *testing.T) {
	s := small(t, twoLoads)
	s.selectRow("malloc")
	s.press("r")
	if len(s.src.placed) != 1 || s.src.placed[0].Kind != probes.Return {
		t.Fatalf("placed %v, want a return probe", s.src.placed)
	}
	if len(s.src.removed) != 0 {
		t.Fatal("the entry probe went before the new one counted")
	}
	timedToo := append(slices.Clone(twoLoads), load{"malloc", probes.Return, 1000, [][3]float64{{1, 80, 1}}, probes.Attached, "", -1})
	s.publish(timedToo, nil)
	if !slices.Equal(s.src.removed, []probes.ID{1}) {
		t.Fatalf("removed %v, want the entry probe", s.src.removed)
	}
	if got := s.rowText("malloc"); !strings.Contains(got, "ret") {
		t.Errorf("the row reads %q", got)
	}
	if n := len(s.rows); n != 2 {
		t.Errorf("%d rows, want 2: one a function", n)
	}
	if got := len(slices.DeleteFunc(slices.Clone(s.byKey[keyOf(function("malloc"))].trail.rates), func(v float64) bool { return v != v })); got < 3 {
		t.Errorf("the row forgot its history: %d seconds", got)
	}
}

func TestReturnThatFailsLeavesTheEntryProbe(t *testing.T) {
	s := small(t, twoLoads)
	s.selectRow("malloc")
	s.press("r")
	failing := append(slices.Clone(twoLoads), load{"malloc", probes.Return, 0, nil, probes.Failed, "no room for another frame", -1})
	s.publish(failing, nil)
	if !slices.Equal(s.src.removed, []probes.ID{3}) {
		t.Fatalf("removed %v, want the failed one only", s.src.removed)
	}
	if got := s.rowText("malloc"); !strings.Contains(got, "entry") {
		t.Errorf("the row reads %q", got)
	}
	if !strings.Contains(s.text(), "malloc cannot be timed: no room for another frame") {
		t.Error("the screen does not say why")
	}
	s.publish(failing, nil)
	if len(s.src.placed) != 1 {
		t.Errorf("it was tried %d times", len(s.src.placed))
	}
}

func TestDTakesTheRowAwayAndUBringsItBack(t *testing.T) {
	s := small(t, twoLoads)
	s.selectRow("malloc")
	s.press("d")
	if len(s.rows) != 1 || !slices.Equal(s.src.removed, []probes.ID{1}) {
		t.Fatalf("%d rows, removed %v", len(s.rows), s.src.removed)
	}
	s.publish(twoLoads, nil) // the collector is a snapshot behind
	if len(s.rows) != 1 {
		t.Fatal("the row came back by itself")
	}
	s.press("u")
	if len(s.src.placed) != 1 || s.src.placed[0].Kind != probes.Entry {
		t.Fatalf("placed %v, want malloc again", s.src.placed)
	}
}

func TestFoundFunctionIsPlacedWithTab(t *testing.T) {
	s := newScreen(t, 120, 40, &fakeSource{snap: snapshotAt(1, 4, nil)}, Options{})
	s.press("/", "r", "e", "a", "l", "l", "tab")
	if len(s.src.placed) != 1 || s.src.placed[0].Function.Name != "realloc" || s.src.placed[0].Kind != probes.Entry {
		t.Fatalf("placed %v, want an entry probe on realloc", s.src.placed)
	}
	s.press("ctrl+u")
	s.press("f", "r", "e", "e", "ctrl+r")
	if len(s.src.placed) != 2 || s.src.placed[1].Function.Name != "free" || s.src.placed[1].Kind != probes.Return {
		t.Fatalf("placed %v, want a return probe on free", s.src.placed)
	}
	s.press("enter")
	if s.dialog != nil || s.selected.name != "free" {
		t.Errorf("enter does not watch the function: %v", s.selected)
	}
}

func TestEnterInTheFinderCountsWhatWasLookedFor(t *testing.T) {
	s := small(t, twoLoads)
	s.press("/", "enter")
	if len(s.src.placed) != 0 {
		t.Fatalf("nothing was typed, and %v was placed", s.src.placed)
	}
	s.press("/", "f", "r", "e", "e", "enter")
	if len(s.src.placed) != 1 || s.src.placed[0].Function.Name != "free" || s.selected.name != "free" {
		t.Fatalf("placed %v, selected %s", s.src.placed, s.selected.name)
	}
	s.press("/", "m", "e", "m", "c", "p", "y", "tab", "ctrl+u", "r", "e", "a", "l", "l", "enter")
	if len(s.src.placed) != 2 || s.src.placed[1].Function.Name != "memcpy" {
		t.Errorf("after tab, enter only leaves: placed %v", s.src.placed)
	}
	s.press("/", "m", "a", "l", "l", "o", "c", "enter")
	if len(s.src.removed) != 0 || s.selected.name != "malloc" {
		t.Errorf("enter on what is probed removed %v, selected %s", s.src.removed, s.selected.name)
	}
}

func TestSpaceIsTextInTheFinder(t *testing.T) {
	s := newScreen(t, 120, 40, &fakeSource{snap: snapshotAt(1, 4, nil)}, Options{})
	s.press("/", "a", "space", "q")
	if got := s.dialog.(*finder).input.Value(); got != "a q" || len(s.src.placed) != 0 {
		t.Errorf("typed %q, placed %d", got, len(s.src.placed))
	}
}

func TestOldSearchDoesNotOverwriteANewOne(t *testing.T) {
	s := newScreen(t, 120, 40, &fakeSource{snap: snapshotAt(1, 4, nil)}, Options{})
	s.press("/")
	f := s.dialog.(*finder)
	_, first := s.Update(keyPress("m")) // its search runs beside the screen
	s.Update(keyPress("y"))             // typed before it is done
	s.run(first)
	if f.query != "my" || f.running {
		t.Errorf("shown is the search for %q, running %v", f.query, f.running)
	}
}

func TestAskingProbeWaitsForAYesOnceAFile(t *testing.T) {
	s := small(t, twoLoads)
	s.src.finding = probes.Finding{Verdict: probes.Asks, Reason: "placing can stall every fork()"}
	s.selectRow("malloc")
	s.press("r")
	if len(s.src.placed) != 0 || !strings.Contains(s.text(), "placing can stall every fork()") {
		t.Fatalf("placed %v without asking", s.src.placed)
	}
	s.press("enter")
	if s.dialog != nil || len(s.src.placed) != 0 {
		t.Fatal("enter is not the harmless choice")
	}
	s.press("r", "y")
	if len(s.src.placed) != 1 || !s.src.placed[0].Accepted {
		t.Fatalf("placed %v after the yes", s.src.placed)
	}
	s.press("/", "f", "r", "e", "e", "tab")
	if len(s.src.placed) != 2 {
		t.Error("it asked for the same file again")
	}
	s.press("esc", "/", "l", "o", "g", "_", "tab")
	if len(s.src.placed) != 2 || !strings.Contains(s.text(), "place it?") {
		t.Error("it did not ask for another file")
	}
	s.press("esc", "esc")
	if slices.ContainsFunc(s.rows, func(r *row) bool { return r.name == "log_write_up_to" }) {
		t.Error("the function that was declined has a row")
	}
}

func TestRefusedProbeSaysWhyAndTheWayOut(t *testing.T) {
	s := small(t, twoLoads)
	s.src.finding = probes.Finding{Verdict: probes.Refuses, Reason: "a Go program moves its stacks", Way: "count it with space"}
	s.press("/", "f", "r", "e", "e", "ctrl+r", "enter")
	if len(s.src.placed) != 0 {
		t.Fatalf("placed %v", s.src.placed)
	}
	if got := s.rowText("free"); !strings.Contains(got, "×") || !strings.Contains(got, "a Go program moves its stacks") {
		t.Errorf("the row reads %q", got)
	}
	if !strings.Contains(s.text(), "count it with space") {
		t.Error("the way out is not on the screen")
	}
}

func TestPlaceThatFailsAltogetherSaysSo(t *testing.T) {
	s := small(t, twoLoads)
	s.src.err = errors.New("probing needs root: run sudo uprobetop")
	s.press("/", "f", "r", "e", "e", "tab", "esc")
	if got := s.rowText("free"); !strings.Contains(got, "probing needs root") {
		t.Errorf("the row reads %q", got)
	}
}

func TestFrozenPictureStandsWhileCountingGoesOn(t *testing.T) {
	s := small(t, twoLoads)
	s.press("p")
	before := strings.Split(s.text(), "\n")[1:]
	s.runFor(40, 4, twoLoads)
	after := strings.Split(s.text(), "\n")
	if !slices.Equal(before, after[1:]) {
		t.Errorf("the picture moved: %s", firstDifference(strings.Join(before, "\n"), strings.Join(after[1:], "\n")))
	}
	if !strings.Contains(after[0], "‖ frozen, 40.0s behind") {
		t.Errorf("the header reads %q", after[0])
	}
	s.press("p")
	if s.shown != s.snap || strings.Contains(s.text(), "frozen") {
		t.Error("p does not thaw")
	}
}

func TestWindowCountsOnlyItsSeconds(t *testing.T) {
	s := small(t, twoLoads)
	s.runFor(57, 4, twoLoads)
	s.selectRow("buf_page_get_gen")
	for _, w := range []struct {
		key     string
		seconds float64
	}{{"[", 10}, {"]", 30}, {"]", 60}} {
		s.press(w.key)
		if got := float64(s.selected.num.calls); got < w.seconds*9 || got > w.seconds*11.5 {
			t.Errorf("window of %v s: %v calls at 10 a second", w.seconds, got)
		}
	}
	if got := s.selected.num.calls; got != s.selected.stat.Returned {
		t.Errorf("since start: %d calls, returned %d", got, s.selected.stat.Returned)
	}
}

func TestLateSnapshotIsTold(t *testing.T) {
	s := small(t, twoLoads)
	s.Update(tickMsg(s.time.Add(2100 * time.Millisecond)))
	if got := strings.Split(s.text(), "\n")[0]; !strings.Contains(got, "○ 2.1s late") {
		t.Errorf("the header reads %q", got)
	}
	if !strings.Contains(s.text(), "no snapshot for 2.1s: the host is busy; totals stay exact") {
		t.Error("no banner")
	}
	s.time = s.time.Add(2100 * time.Millisecond)
	s.publish(twoLoads, nil)
	if got := s.text(); strings.Contains(got, "s late") || strings.Contains(got, "the host is busy") {
		t.Error("it is still called late")
	}
}

func TestGoneTargetKeepsItsNumbers(t *testing.T) {
	s := small(t, twoLoads)
	s.publish(twoLoads, func(sn *probes.Snapshot) {
		sn.Gone = true
		for i := range sn.Probes {
			sn.Probes[i].State = probes.Gone
		}
	})
	if got := s.rowText("malloc"); !strings.Contains(got, "the target has ended, after ") {
		t.Errorf("the row reads %q", got)
	}
	if !strings.Contains(s.text(), "mysqld 2841 has ended; its numbers stay until you leave") {
		t.Error("no banner")
	}
	s.press("esc")
	s.publish(twoLoads, func(sn *probes.Snapshot) { sn.Gone = true })
	if strings.Contains(s.text(), "until you leave") {
		t.Error("the banner came back after esc")
	}
}

func TestNothingNewNothingDrawn(t *testing.T) {
	s := small(t, twoLoads)
	first := s.View().Content
	s.Update(tickMsg(s.time.Add(50 * time.Millisecond)))
	if s.dirty {
		t.Error("a tick without a new snapshot asks for a drawing")
	}
	if s.View().Content != first {
		t.Error("it draws something else")
	}
}

func TestWideSignsTurnTheScreenToASCII(t *testing.T) {
	for column, ascii := range map[int]bool{1: false, 2: true} {
		s := small(t, twoLoads)
		s.Update(tea.CursorPositionMsg{X: column, Y: 7})
		if got := !strings.Contains(s.text(), "◉"); got != ascii {
			t.Errorf("the cursor at %d after one sign: ASCII %v", column, got)
		}
	}
}

func TestQuitKeys(t *testing.T) {
	for _, k := range []string{"q", "ctrl+c"} {
		s := small(t, twoLoads)
		_, cmd := s.Update(keyPress(k))
		if cmd == nil {
			t.Fatalf("%s does nothing", k)
		}
		if _, ok := cmd().(tea.QuitMsg); !ok {
			t.Errorf("%s does not quit", k)
		}
	}
	s := small(t, twoLoads)
	if _, cmd := s.Update(keyPress("esc")); cmd != nil {
		t.Error("esc does something that it should not")
	}
}

func TestClickSelectsTogglesAndSorts(t *testing.T) {
	s := small(t, twoLoads)
	s.View()
	click := func(text string, dx int) {
		t.Helper()
		s.dirty = true
		s.View()
		for y, line := range strings.Split(s.text(), "\n") {
			if i := strings.Index(line, text); i >= 0 {
				x := len([]rune(line[:i])) + dx
				s.send(tea.MouseClickMsg{X: x, Y: y, Button: tea.MouseLeft})
				return
			}
		}
		t.Fatalf("%q is not on the screen", text)
	}
	click("malloc", 2)
	if s.selected.name != "malloc" {
		t.Errorf("selected is %s", s.selected.name)
	}
	click("2 CPUs", 1)
	if s.viewAt != 1 {
		t.Errorf("view %d", s.viewAt)
	}
	click("HITS /s", 1)
	if s.rows[0].name != "malloc" {
		t.Errorf("not sorted by hits: %s is first", s.rows[0].name)
	}
	click("malloc", -2)
	if !slices.Equal(s.src.removed, []probes.ID{1}) {
		t.Errorf("a click on the sign removed %v", s.src.removed)
	}
}

func TestOrderIsCalm(t *testing.T) {
	loads := []load{
		{"malloc", probes.Entry, 0, nil, probes.Attached, "", -1},
		{"free", probes.Entry, 0, nil, probes.Attached, "", -1},
	}
	s := newScreen(t, 120, 40, &fakeSource{snap: snapshotAt(0, 4, loads)}, Options{})
	var hits [2]uint64
	second := func(malloc, free uint64) {
		hits[0], hits[1] = hits[0]+malloc, hits[1]+free
		for range 4 {
			s.publish(loads, func(sn *probes.Snapshot) {
				sn.Probes[0].Hits, sn.Probes[1].Hits = hits[0], hits[1]
			})
		}
	}
	for range 5 {
		second(1000, 980)
	}
	if s.rows[0].name != "malloc" {
		t.Fatalf("%s is first", s.rows[0].name)
	}
	for i := range 10 { // they take turns within 10 %
		if second(1000, 950+100*uint64(i%2)); s.rows[0].name != "malloc" {
			t.Fatal("rows that are nearly equal change places")
		}
	}
	if second(1000, 2000); s.rows[0].name != "malloc" {
		t.Error("a lead of one second was enough")
	}
	for range 4 {
		second(1000, 2000)
	}
	if s.rows[0].name != "free" {
		t.Error("a lead of 100 % for five seconds was not enough")
	}
	s.press("j", "k")
	for range 2 {
		second(9000, 2000)
	}
	if s.rows[0].name != "free" {
		t.Error("the rows moved right after a movement of the cursor")
	}
}

// TestHelpAndKeyBarAreTheTable checks that what is told can be done.
func TestHelpAndKeyBarAreTheTable(t *testing.T) {
	s := small(t, twoLoads)
	seen := map[string]bool{}
	for _, b := range keys() {
		if b.do == nil || len(b.keys) == 0 || b.show == "" {
			t.Errorf("binding %q is not complete", b.show)
		}
		for _, k := range b.keys {
			if seen[k] {
				t.Errorf("%q is bound twice", k)
			}
			seen[k] = true
		}
	}
	for _, forbidden := range []string{"ctrl+a", "ctrl+b", "ctrl+s", "ctrl+q"} {
		if seen[forbidden] {
			t.Errorf("%s belongs to screen, tmux or the terminal", forbidden)
		}
	}
	s.press("?")
	help := s.text()
	for _, b := range keys() {
		if b.help != "" && !strings.Contains(help, b.help) {
			t.Errorf("the help does not say %q", b.help)
		}
	}
	s.press("f", "r", "e", "e", "z", "enter")
	if !s.frozen || s.dialog != nil {
		t.Error("enter does not run the entry that was found")
	}
}

func TestProbeThatNeverAppearsIsNotPlacedForEver(t *testing.T) {
	s := small(t, twoLoads)
	s.press("/", "f", "r", "e", "e", "tab", "esc")
	for range 8 {
		s.publish(twoLoads, nil)
	}
	if len(s.src.placed) != 1 {
		t.Errorf("placed %d times", len(s.src.placed))
	}
	if got := s.rowText("free"); !strings.Contains(got, "its probe is gone") {
		t.Errorf("the row reads %q", got)
	}
}

func TestWhatIsNotExactIsToldInTheTotals(t *testing.T) {
	s := small(t, twoLoads)
	s.publish(twoLoads, func(sn *probes.Snapshot) { sn.Unfollowed = 3 })
	if got := strings.Split(s.text(), "\n")[1]; !strings.Contains(got, "? not exact: 3 processes not followed") {
		t.Errorf("the totals read %q", got)
	}
	s.publish(twoLoads, func(sn *probes.Snapshot) {
		for i := range sn.Probes {
			p := *sn.Probes[i].Probe
			p.Points = []symbols.Point{{Again: true}}
			sn.Probes[i].Probe, sn.Probes[i].Missed = &p, probes.Missed{}
		}
	})
	if got := strings.Split(s.text(), "\n")[1]; !strings.Contains(got, "? a call can hit twice") {
		t.Errorf("the totals read %q", got)
	}
}

func TestBooksThatDoNotBalanceAtRestAreToldInTheTotals(t *testing.T) {
	loads := []load{twoLoads[0], {"row_search_mvcc", probes.Return, 500, [][3]float64{{1, 900, 1}}, probes.Attached, "", -1}}
	s := small(t, loads)
	if got := strings.Split(s.text(), "\n")[1]; !strings.Contains(got, "✓ exact") {
		t.Fatalf("the totals read %q", got)
	}
	still := snapshotAt(3, 4, loads)
	for i := range 12 {
		at := time.Duration(3250+250*i) * time.Millisecond
		s.publish(loads, func(sn *probes.Snapshot) {
			*sn = *still
			sn.Seq, sn.Elapsed = uint64(100+i), at
			sn.Probes = slices.Clone(still.Probes)
			sn.Probes[1].InFlight -= 3 // three calls got lost
		})
	}
	if got := strings.Split(s.text(), "\n")[1]; !strings.Contains(got, "? not exact: row_search_mvcc does not balance") {
		t.Errorf("the totals read %q", got)
	}
	s.selectRow("row_search_mvcc")
	s.press("4")
	if !strings.Contains(s.text(), "3 hits are unaccounted for") {
		t.Error("the ledger does not say by how much")
	}
}

// On a small screen a view has no room beside the table: its digit has it fill the screen.
func TestDigitFillsSmallScreen(t *testing.T) {
	s := watching(t, 60, 12)
	s.press("esc", "6")
	if got := s.text(); !strings.Contains(got, "6 inside") {
		t.Errorf("after 6 it reads\n%s", got)
	}
	s.press("5", "esc")
	if got := s.text(); strings.Contains(got, "esc back") {
		t.Errorf("after esc it reads\n%s", got)
	}
}
