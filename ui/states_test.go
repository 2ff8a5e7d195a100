package ui

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"uprobetop/probes"
)

// placingFree has free placed by a source that does not get it done, and returns
// what waits for it.
func placingFree(t *testing.T, w, h int) (*screen, tea.Cmd) {
	t.Helper()
	s := newScreen(t, w, h, &fakeSource{snap: snapshotAt(0, 4, twoLoads)}, Options{})
	s.runFor(3, 4, twoLoads)
	s.src.stuck = true
	s.press("/", "f", "r", "e", "e")
	_, check := s.Update(keyPress("tab"))
	_, place := s.Update(check())
	s.press("esc")
	s.selected = s.byKey[keyOf(function("free"))]
	return s, place
}

func (s *screen) placed(done, of int) {
	s.publish(twoLoads, func(sn *probes.Snapshot) { sn.Placing = probes.Progress{Done: done, Of: of} })
}

func TestPlacingShowsHowFarItIsAndEscGivesUp(t *testing.T) {
	for _, tt := range []struct {
		w    int
		want string
	}{{120, "placing 2 of 4 points  ━━━━━━━━━━──────────"}, {80, "placing 2 of 4 points  ━"}, {60, "placing 2 of 4"}} {
		s, place := placingFree(t, tt.w, 40)
		if got := s.rowText("free"); !strings.Contains(got, "placing") || strings.Contains(got, "give up") {
			t.Errorf("at once the row reads %q", got)
		}
		s.placed(2, 4)
		if got := s.rowText("free"); !strings.Contains(got, tt.want) || strings.Contains(got, "esc give up") != (tt.w >= 76) {
			t.Errorf("%d wide the row reads %q", tt.w, got)
		}
		s.zoomed = true
		s.press("esc")
		if !s.zoomed {
			t.Error("esc did something else too")
		}
		s.zoomed = false
		if got := s.rowText("free"); !strings.Contains(got, "given up") || !strings.Contains(got, "○") {
			t.Errorf("after esc the row reads %q", got)
		}
		s.run(place) // it returns, because its context ended
		if got := s.rowText("free"); !strings.Contains(got, "given up") || s.banner.text != "" {
			t.Errorf("in the end the row reads %q, the banner %q", got, s.banner.text)
		}
		s.src.stuck = false
		s.press("space")
		s.publish(twoLoads, nil)
		s.publish(twoLoads, nil) // the first that can hold what came of the last try
		if len(s.src.placed) != 1 {
			t.Errorf("space does not try again: %v", s.src.placed)
		}
	}
}

// What was placed although it was given up is taken away again.
func TestGivenUpButPlacedIsTakenAway(t *testing.T) {
	s, place := placingFree(t, 120, 40)
	s.placed(0, 0)
	s.press("esc")
	s.run(place)
	three := append(slices.Clone(twoLoads), load{"free", probes.Entry, 10, nil, probes.Attached, "", -1})
	s.publish(three, nil)
	if !slices.Equal(s.src.removed, []probes.ID{3}) {
		t.Errorf("removed %v", s.src.removed)
	}
	s.publish(twoLoads, nil)
	if got := s.rowText("free"); !strings.Contains(got, "given up") {
		t.Errorf("the row reads %q", got)
	}
}

// Off and on again while the kernel still works: it is asked once more.
func TestSpaceWhileItIsPlaced(t *testing.T) {
	s, place := placingFree(t, 120, 40)
	s.press("space")
	if got := s.rowText("free"); !strings.Contains(got, "given up") {
		t.Errorf("after space the row reads %q", got)
	}
	s.src.stuck = false
	s.press("space")
	s.run(place) // it ends: its context did
	for range 3 {
		s.publish(twoLoads, nil)
	}
	if len(s.src.placed) != 1 || s.banner.text != "" {
		t.Errorf("placed %v, the banner says %q", s.src.placed, s.banner.text)
	}
}

func TestGivingUpTheLatencyKeepsTheCount(t *testing.T) {
	s := small(t, twoLoads)
	s.selectRow("malloc")
	s.src.stuck = true
	_, check := s.Update(keyPress("r"))
	_, place := s.Update(check())
	s.publish(twoLoads, nil)
	if got := s.rowText("malloc"); !strings.Contains(got, "◌") || !strings.Contains(s.text(), "esc give up") {
		t.Errorf("the row reads %q, and nothing of giving up", got)
	}
	s.press("esc")
	s.run(place)
	s.publish(twoLoads, nil)
	if got := s.rowText("malloc"); !strings.Contains(got, "entry") || !strings.Contains(got, "●") {
		t.Errorf("the row reads %q", got)
	}
	if len(s.src.removed) != 0 {
		t.Errorf("removed %v", s.src.removed)
	}
	s.publish(twoLoads, func(sn *probes.Snapshot) { sn.Probes[0].State = probes.Stopped })
	if got := s.rowText("malloc"); !strings.Contains(got, "stopped, after") {
		t.Errorf("stopped later, the row reads %q", got)
	}
}

// Two rows that leave while they are placed are dropped in one tick.
func TestRowsThatLeaveTogether(t *testing.T) {
	s := small(t, twoLoads)
	for _, r := range s.rows {
		r.leaving, r.want, r.settled = true, off, s.snap.Seq+1
	}
	s.publish(twoLoads, nil)
	if len(s.rows) != 0 {
		t.Errorf("%d rows are left", len(s.rows))
	}
}

func TestSentencesInThreeLengths(t *testing.T) {
	gone := []load{{"malloc", probes.Entry, 1000, nil, probes.Attached, "", -1}}
	for _, tt := range []struct {
		state probes.State
		note  string
		want  [3]string // from 100, from 76, below
	}{
		{probes.Gone, "", [3]string{"gone: the target has ended, after 3,", "gone, after 3,", "gone: 3."}},
		{probes.Stopped, "", [3]string{"stopped, after 3,", "stopped, after 3,", "stopped: 3."}},
		{probes.Failed, "no breakpoint", [3]string{"cannot be placed: no breakpoint", "no breakpoint", "no breakpoint"}},
		{probes.Refused, "it would hang", [3]string{"cannot be placed: it would hang", "it would hang", "it would hang"}},
		{probes.Placing, "", [3]string{"placing: the kernel is being asked", "placing", "placing"}},
	} {
		for i, w := range []int{100, 80, 60} {
			s := newScreen(t, w, 24, &fakeSource{snap: snapshotAt(0, 4, gone)}, Options{})
			s.runFor(3, 4, gone)
			s.publish(gone, func(sn *probes.Snapshot) { sn.Probes[0].State, sn.Probes[0].Note = tt.state, tt.note })
			if got := s.rowText("malloc"); !strings.Contains(got, " "+tt.want[i]) {
				t.Errorf("%v at %d: the row reads %q, want %q", tt.state, w, got, tt.want[i])
			}
			checkSize(t, tt.want[i], s.View().Content, w, 24)
		}
	}
}

// goneScreen is one whose target has ended, and runs again.
func goneScreen(t *testing.T, w int, answer func() (string, bool)) *screen {
	t.Helper()
	s := newScreen(t, w, 24, &fakeSource{snap: snapshotAt(0, 4, mysqlLoad)}, Options{Successor: answer})
	s.runFor(3, 4, mysqlLoad)
	s.press("esc")
	s.run(s.askSuccessor())
	if s.successor.label != "" {
		t.Fatal("a successor of a target that runs")
	}
	s.publish(mysqlLoad, func(sn *probes.Snapshot) {
		sn.Gone = true
		for i := range sn.Probes {
			if sn.Probes[i].State == probes.Attached {
				sn.Probes[i].State = probes.Gone
			}
		}
	})
	return s
}

func TestTargetThatRunsAgainCanBeFollowed(t *testing.T) {
	asked, runs := 0, false
	answer := func() (string, bool) { asked++; return "mysqld 3011", runs }
	s := goneScreen(t, 120, answer)
	s.run(s.askSuccessor())
	if !strings.Contains(s.text(), "mysqld 2841 has ended; its numbers stay until you leave") || strings.Contains(s.text(), "follow it") {
		t.Fatalf("while nothing runs again the screen says\n%s", s.text())
	}
	if _, cmd := s.Update(keyPress("o")); cmd != nil {
		t.Error("o follows nobody")
	}
	if s.run(s.askSuccessor()); asked != 1 {
		t.Errorf("asked %d times within a second", asked)
	}
	runs = true
	for range 4 {
		s.publish(mysqlLoad, func(sn *probes.Snapshot) { sn.Gone = true })
	}
	s.run(s.askSuccessor())
	if !strings.Contains(s.text(), "mysqld 2841 has ended and runs again as 3011") || !strings.Contains(s.text(), "o follow it") {
		t.Fatalf("the screen says\n%s", s.text())
	}
	_, cmd := s.Update(keyPress("o"))
	if _, ok := cmd().(tea.QuitMsg); !ok || !s.outcome.Follow {
		t.Error("o does not leave the screen")
	}
	var names []string
	for _, r := range s.outcome.Wanted {
		names = append(names, r.Kind.String()+":"+r.Function.Name)
	}
	for _, want := range []string{"uretprobe:buf_page_get_gen", "uprobe:malloc", "uprobe:getaddrinfo"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not wanted of the successor: %v", want, names)
		}
	}
}

// The windows of a target that has ended end with it.
func TestNumbersOfAGoneTargetStay(t *testing.T) {
	s := goneScreen(t, 120, nil)
	was := s.snap
	before := strings.Split(s.text(), "\n")[1:]
	for i := range 60 {
		s.publish(mysqlLoad, func(sn *probes.Snapshot) {
			*sn = *was
			sn.Seq, sn.Elapsed = was.Seq+1+uint64(i), was.Elapsed+time.Duration(i+1)*time.Second
		})
	}
	after := strings.Split(s.text(), "\n")[1:]
	if !slices.Equal(before, after) {
		t.Errorf("the numbers moved: %s", firstDifference(strings.Join(before, "\n"), strings.Join(after, "\n")))
	}
	s.press("[", "[")
	if s.selected.num.calls == 0 {
		t.Error("its last 10 s are empty")
	}
}

// What counts no more has no rate now, and no key measures more of it.
func TestCountOfAGoneTargetHasNoRate(t *testing.T) {
	s := goneScreen(t, 120, nil)
	was := s.text()
	s.selectRow("malloc")
	if got := s.text(); got == was || !strings.Contains(got, " hits in 3s ") || strings.Contains(got, ", now ") || strings.Contains(got, "measure its latency too") {
		t.Errorf("the screen says\n%s", got)
	}
}

// The views of a uprobe in a recording offer no key that measures more.
func TestUprobeOfARecordingOffersNothing(t *testing.T) {
	s := newScreen(t, 120, 40, &fakeSource{snap: snapshotAt(0, 4, twoLoads)}, Options{Recorded: true})
	s.runFor(3, 4, twoLoads)
	s.selectRow("malloc")
	if got := s.text(); !strings.Contains(got, ", now ") || strings.Contains(got, "measure its latency too") {
		t.Errorf("the screen says\n%s", got)
	}
	s.press("3")
	if got := s.text(); !strings.Contains(got, "A uprobe does not see its calls return.") || strings.Contains(got, "press r") {
		t.Errorf("the screen says\n%s", got)
	}
}

func TestNewsOfTheSuccessorFitsASmallScreen(t *testing.T) {
	s := goneScreen(t, 60, func() (string, bool) { return "mysqld 3011", true })
	s.run(s.askSuccessor())
	if !strings.Contains(s.text(), "ended, runs again as 3011") || !strings.Contains(s.text(), "o follow it") {
		t.Errorf("the screen says\n%s", s.text())
	}
}

func TestRecordingPlacesNothing(t *testing.T) {
	loads := append(slices.Clone(twoLoads), load{"free", probes.Entry, 0, nil, probes.Failed, "no breakpoint", -1})
	s := newScreen(t, 120, 40, &fakeSource{snap: snapshotAt(0, 4, loads)}, Options{
		Recorded: true, Banner: "a recording of the demo: probing needs root",
	})
	s.runFor(3, 4, loads)
	if got := s.text(); !strings.Contains(got, "▸ replay 1×") || !strings.Contains(got, "a recording of the demo: probing needs root") {
		t.Errorf("the screen says\n%s", got)
	}
	s.press("3")
	s.runFor(1, 4, twoLoads)
	for _, k := range []string{"space", "r", "d"} {
		s.press("esc", "esc", k)
		if !strings.Contains(s.text(), "this is a recording: nothing can be placed") {
			t.Errorf("%s says nothing", k)
		}
	}
	if len(s.src.placed)+len(s.src.removed)+len(s.src.told) != 0 {
		t.Errorf("placed %v, removed %v, told %v", s.src.placed, s.src.removed, s.src.told)
	}
	s.publish(twoLoads[1:], func(sn *probes.Snapshot) { sn.Probes[0].Probe.ID = 2 })
	if got := s.rowText("malloc"); !strings.Contains(got, "not probed") {
		t.Errorf("a probe that was taken away in it reads %q", got)
	}
}

// The search of a recording offers nothing that it cannot do, and says so when it
// is asked for.
func TestSearchOfARecordingPlacesNothing(t *testing.T) {
	for _, size := range [][2]int{{60, 12}, {80, 24}, {120, 40}} {
		s := newScreen(t, size[0], size[1], &fakeSource{snap: snapshotAt(0, 4, twoLoads)}, Options{Recorded: true})
		s.runFor(3, 4, twoLoads)
		if got := s.text(); strings.Contains(got, "space count") || strings.Contains(got, "r latency") {
			t.Errorf("%v: the screen offers to place:\n%s", size, got)
		}
		s.press("/", "f", "r", "e", "e")
		if got := s.text(); strings.Contains(got, "tab count") || strings.Contains(got, "ctrl-r latency") || !strings.Contains(got, "esc back") {
			t.Errorf("%v: the search offers to place:\n%s", size, got)
		}
		for _, k := range []string{"tab", "ctrl+r"} {
			if s.press(k); !strings.Contains(s.text(), "─ this is a recording: nothing can be placed ─") {
				t.Errorf("%v: %s says nothing:\n%s", size, k, s.text())
			}
			if s.press("up"); strings.Contains(s.text(), "nothing can be placed") {
				t.Errorf("%v: it stays", size)
			}
		}
		s.press("enter")
		if len(s.rows) != 2 || s.dialog != nil || !strings.Contains(s.text(), "nothing can be placed") {
			t.Errorf("%v: enter leaves %d rows and\n%s", size, len(s.rows), s.text())
		}
	}
}

// A banner says that somebody waits for the target, where there is room.
func TestWaitingForTheTargetIsTold(t *testing.T) {
	nobody := func() (string, bool) { return "", false }
	const stay, waits = "mysqld 2841 has ended; its numbers stay", "; waits for the same command to run again"
	for _, tt := range []struct {
		w      int
		answer func() (string, bool)
		want   string
	}{
		{120, nobody, stay + " until you leave" + waits + " "},
		{120, nil, stay + " until you leave "},
		{80, nobody, stay + " until you leave "},
		{60, nobody, stay + " "},
	} {
		if got := goneScreen(t, tt.w, tt.answer).text(); !strings.Contains(got, tt.want) {
			t.Errorf("%d wide the screen does not say %q:\n%s", tt.w, tt.want, got)
		}
	}
	s := goneScreen(t, 60, nobody)
	s.target.Label = "a-program-with-a-name 19716"
	s.warnAbout()
	if got := s.text(); !strings.Contains(got, " ended; its numbers stay ") {
		t.Errorf("of a long name the screen says\n%s", got)
	}
}

func TestScenesOfTheDemo(t *testing.T) {
	var set []int
	var fails error
	s := newScreen(t, 120, 40, &fakeSource{snap: snapshotAt(0, 4, twoLoads)}, Options{
		Scenes:   []Scene{{"calm"}, {"lock storm"}, {"slow disk"}},
		SetScene: func(i int) error { set = append(set, i); return fails },
	})
	if !strings.Contains(s.text(), "scene: calm  S next") {
		t.Fatalf("the totals read %q", strings.Split(s.text(), "\n")[1])
	}
	_, first := s.Update(keyPress("S"))
	if _, second := s.Update(keyPress("S")); second != nil {
		t.Error("two scenes are set at once")
	}
	s.run(first)
	fails = errors.New("the demo does not answer")
	s.press("S")
	if !strings.Contains(s.text(), "scene: lock storm") || !strings.Contains(s.text(), "the scene cannot be set: the demo does not answer") {
		t.Errorf("the screen says\n%s", s.text())
	}
	fails = nil
	s.press("S", "S")
	if !slices.Equal(set, []int{1, 2, 2, 0}) {
		t.Errorf("set %v", set)
	}
	s.press("?")
	if !strings.Contains(s.text(), "the demo's next scene") {
		t.Error("the help does not say it")
	}
}

// That no call reached an address is said of a probe that was never hit, and nothing is
// silent while threads are inside.
func TestSilent(t *testing.T) {
	hang := []load{{"buf_page_get_gen", probes.Return, 10, [][3]float64{{1, 900, 1}}, probes.Attached, "", -1}}
	for _, tt := range []struct {
		hits     uint64
		inFlight int64
		want     string
	}{
		{0, 0, "0 hits in 30 s: no call reached this address"},
		{20, 0, "no hit in 30 s, after 20 hits"},
		{20, 20, "≥38.0"},
	} {
		s := newScreen(t, 120, 40, &fakeSource{snap: snapshotAt(0, 4, hang)}, Options{})
		for range 200 {
			s.publish(hang, func(sn *probes.Snapshot) {
				st := &sn.Probes[0]
				st.Hits, st.InFlight, st.Returned = tt.hits, tt.inFlight, tt.hits-uint64(tt.inFlight)
				st.Oldest = 38 * time.Second * time.Duration(min(tt.inFlight, 1))
			})
		}
		if got := s.rowText("buf_page"); !strings.Contains(got, tt.want) || tt.hits > 0 && strings.Contains(got, "no call reached") {
			t.Errorf("%d hits, %d in flight: the row reads %q", tt.hits, tt.inFlight, got)
		}
	}
}
