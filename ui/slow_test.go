package ui

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"uprobetop/probes"
)

// looking is a screen with slow calls, on the view of them.
func looking(t *testing.T, w, h int) *screen {
	t.Helper()
	s := watching(t, w, h)
	s.src.calls = slowAt
	s.press("esc", "3")
	s.runFor(30, 64, mysqlLoad)
	s.View()
	return s
}

func TestThresholdIsChosenOnceSomebodyLooks(t *testing.T) {
	s := watching(t, 120, 40)
	if len(s.src.told) != 0 {
		t.Fatalf("nobody looked, and %v was asked for", s.src.told)
	}
	s.press("3")
	s.runFor(1, 64, mysqlLoad)
	want := report{1, 50 * time.Microsecond} // below the p99 of 65.4µs
	if !slices.Equal(s.src.told, []report{want}) {
		t.Fatalf("told %v, want %v", s.src.told, want)
	}
	if got := s.text(); !strings.Contains(got, "over 50µs, near the p99  + - threshold") || !strings.Contains(got, "No call took 50µs or longer since ") {
		t.Errorf("the screen does not tell the threshold:\n%s", got)
	}
	s.press("1")
	s.runFor(5, 64, mysqlLoad)
	if len(s.src.told) != 1 {
		t.Errorf("after leaving the view %v was asked for", s.src.told)
	}
}

// A pane that is there because the screen is wide has nothing reported.
func TestWideScreenReportsNothingByItself(t *testing.T) {
	s := watching(t, 200, 50)
	s.runFor(2, 64, mysqlLoad)
	if len(s.src.told) != 0 || !strings.Contains(s.text(), "3 report calls near the p99 and above") {
		t.Errorf("told %v", s.src.told)
	}
	s.press("3")
	s.runFor(1, 64, mysqlLoad)
	if len(s.src.told) != 1 {
		t.Errorf("told %v", s.src.told)
	}
}

func TestPlusAndMinusStepTheThreshold(t *testing.T) {
	s := looking(t, 120, 40)
	var got []time.Duration
	for _, k := range []string{"+", "+", "+", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-", "+"} {
		s.press(k)
		got = append(got, s.src.told[len(s.src.told)-1].over)
	}
	const us = time.Microsecond
	want := []time.Duration{
		100 * us, 200 * us, 500 * us, 200 * us, 100 * us, 50 * us, 20 * us, 10 * us, 5 * us, 2 * us, us,
		500, 200, 500,
	}
	if !slices.Equal(got, want) {
		t.Errorf("stepped to %v, want %v", got, want)
	}
	s.press("-", "-", "-")
	if !strings.Contains(s.text(), " every call  + - threshold") {
		t.Error("below the least threshold not every call is reported")
	}
	s.press("+")
	if got := s.src.told[len(s.src.told)-1].over; got != 100 {
		t.Errorf("from every call to %v", got)
	}
}

// A threshold that is changed while the collector still takes the last one over
// is told when that is done, and only one is told at a time.
func TestThresholdsAreToldInOrder(t *testing.T) {
	s := looking(t, 120, 40)
	n := len(s.src.told)
	_, first := s.Update(keyPress("+"))
	_, second := s.Update(keyPress("+"))
	_, third := s.Update(keyPress("+"))
	if second != nil || third != nil {
		t.Fatal("two thresholds are told at once")
	}
	s.run(first)
	want := []report{{1, 100 * time.Microsecond}, {1, 500 * time.Microsecond}}
	if got := s.src.told[n:]; !slices.Equal(got, want) {
		t.Errorf("told %v, want %v", got, want)
	}
}

func TestThresholdOfTheCommandLineHoldsForEveryTimedProbe(t *testing.T) {
	src := &fakeSource{snap: snapshotAt(0, 4, mysqlLoad)}
	s := newScreen(t, 120, 40, src, Options{Slow: 5 * time.Millisecond})
	s.runFor(5, 4, mysqlLoad)
	want := []report{{1, 5 * time.Millisecond}, {4, 5 * time.Millisecond}, {5, 5 * time.Millisecond}}
	slices.SortFunc(src.told, func(a, b report) int { return int(a.id) - int(b.id) })
	if !slices.Equal(src.told, want) {
		t.Errorf("told %v, want %v", src.told, want)
	}
}

func TestReportThatFailsIsTold(t *testing.T) {
	s := watching(t, 120, 40)
	s.press("esc")
	s.src.err = errors.New("this kernel has no room for it")
	s.press("3")
	s.runFor(1, 64, mysqlLoad)
	if !strings.Contains(s.text(), "the calls of buf_page_get_gen cannot be reported: this kernel has no room for it") {
		t.Error("the screen says nothing")
	}
	if len(s.src.told) != 1 {
		t.Errorf("asked %d times", len(s.src.told))
	}
}

func TestRaisingTheThresholdDropsWhatIsBelow(t *testing.T) {
	s := looking(t, 120, 40)
	s.press("+", "+", "+") // 500µs
	calls := s.slowCalls(s.selected)
	if len(calls) == 0 {
		t.Fatal("none is left")
	}
	for _, c := range calls {
		if c.Latency < 500*time.Microsecond {
			t.Errorf("a call of %v is still there", c.Latency)
		}
	}
}

// What the collector reports at the old threshold, until it has taken the new one
// over, is not listed under the new one; nor is it after a clear, or its undo.
func TestCallsBelowANewThresholdAreNotListed(t *testing.T) {
	const us = time.Microsecond
	s := looking(t, 120, 40)
	s.src.calls = func(seconds float64) []probes.Call {
		return []probes.Call{{Probe: 1, Start: uint64(seconds * 4), Latency: 60 * us}, {Probe: 1, Start: uint64(seconds*4) + 1, Latency: 700 * us}}
	}
	_, told := s.Update(keyPress("+"))
	s.press("+", "+") // 500µs, while 100µs is being told
	check := func(after string) {
		t.Helper()
		for range 2 {
			calls := s.slowCalls(s.selected)
			if len(calls) == 0 {
				t.Errorf("%s no call is listed", after)
			}
			for _, c := range calls {
				if c.Latency < 500*us {
					t.Errorf("%s a call of %v is listed", after, c.Latency)
				}
			}
			s.press("y")
		}
	}
	check("at once")
	s.runFor(2, 64, mysqlLoad)
	check("before the collector knows")
	s.run(told)
	s.runFor(2, 64, mysqlLoad)
	check("then")
	if n := s.past.calls[1].reported; n != uint64(len(s.past.calls[1].newest)) {
		t.Errorf("%d are counted, %d are listed", n, len(s.past.calls[1].newest))
	}
	s.press("c")
	s.runFor(2, 64, mysqlLoad)
	check("after a clear")
	s.press("-")
	s.press("+")
	s.press("u")
	check("after its undo")
	s.press("c", "-", "-", "+", "+", "u")
	s.runFor(1, 64, mysqlLoad)
	check("after another")
}

// A clear is undone at the threshold that was set meanwhile.
func TestUndoneClearHasTheNewThreshold(t *testing.T) {
	s := looking(t, 120, 40)
	s.press("c", "+", "+", "+", "u")
	if l := s.past.calls[1]; l.least != 500*time.Microsecond || len(l.newest) == 0 ||
		slices.ContainsFunc(l.newest, func(c probes.Call) bool { return c.Latency < l.least }) {
		t.Errorf("over %v there are %v", l.least, l.newest)
	}
}

func TestCallLogIsBoundedAndKeepsTheSlowest(t *testing.T) {
	l := &callLog{}
	for i := range 5000 {
		l.add(probes.Call{Start: uint64(i), Latency: time.Duration(i * 7919 % 5000)})
	}
	newest, slowest := l.inOrder(false), l.inOrder(true)
	if len(newest) != keepNewest || newest[0].Start != 4999 || newest[keepNewest-1].Start != 4500 {
		t.Errorf("%d newest, from %d to %d", len(newest), newest[0].Start, newest[len(newest)-1].Start)
	}
	for i, c := range slowest {
		if c.Latency != time.Duration(4999-i) {
			t.Fatalf("the slowest but %d took %d", i, c.Latency)
		}
	}
	if len(slowest) != keepSlowest || l.reported != 5000 || cap(l.newest) > 4*keepNewest {
		t.Errorf("%d slowest, %d reported, room for %d", len(slowest), l.reported, cap(l.newest))
	}
}

func TestSelectedCallStaysWhileOthersCome(t *testing.T) {
	s := looking(t, 120, 40)
	s.press("right", "right", "right", "left")
	calls := s.slowCalls(s.selected)
	at := s.charts.slow.selected(calls)
	was := idOf(&calls[at])
	s.runFor(7, 64, mysqlLoad)
	calls = s.slowCalls(s.selected)
	now := s.charts.slow.selected(calls)
	if at != 2 || idOf(&calls[now]) != was || now <= at {
		t.Errorf("selected was %d (%v), is %d (%v)", at, was, now, idOf(&calls[now]))
	}
	s.press("y")
	if at := s.charts.slow.selected(s.slowCalls(s.selected)); at != 0 {
		t.Errorf("in the other order call %d is selected", at)
	}
	for range 2 * keepNewest {
		s.press("right")
	}
	calls = s.slowCalls(s.selected)
	at = s.charts.slow.selected(calls)
	if at != len(calls)-1 {
		t.Errorf("the end is %d of %d", at, len(calls))
	}
}

func TestMouseSelectsAndScrollsCalls(t *testing.T) {
	s := looking(t, 120, 40)
	calls := s.slowCalls(s.selected)
	third := calls[2].At.Format("15:04:05.000")
	for y, line := range strings.Split(s.text(), "\n") {
		if strings.Contains(line, third) {
			s.send(tea.MouseClickMsg{X: 60, Y: y, Button: tea.MouseLeft})
			s.send(tea.MouseWheelMsg{X: 60, Y: y, Button: tea.MouseWheelDown})
		}
	}
	if at := s.charts.slow.selected(s.slowCalls(s.selected)); at != 3 || s.selected != s.rows[0] {
		t.Errorf("call %d of row %s is selected", at, s.selected.name)
	}
	s.send(tea.MouseWheelMsg{X: 60, Y: 5, Button: tea.MouseWheelDown})
	if s.selected != s.rows[1] {
		t.Error("over the table the wheel does not move in it")
	}
}

func TestCallsOfAFrozenPictureStay(t *testing.T) {
	s := looking(t, 120, 40)
	s.press("p")
	before := strings.Split(s.text(), "\n")[12:]
	s.runFor(30, 64, mysqlLoad)
	if after := strings.Split(s.text(), "\n")[12:]; !slices.Equal(before, after) {
		t.Errorf("the calls moved: %s", firstDifference(strings.Join(before, "\n"), strings.Join(after, "\n")))
	}
	n := len(s.held.calls[1].newest)
	s.press("p")
	if len(s.past.calls[1].newest) <= n {
		t.Error("the calls that came meanwhile are lost")
	}
}

func TestWhatTheListIsNotIsTold(t *testing.T) {
	s := looking(t, 120, 40)
	s.publish(mysqlLoad, func(sn *probes.Snapshot) { sn.HeldBack, sn.Lost.Calls = 214, 12 })
	calls := len(s.past.calls[1].newest)
	for _, want := range []string{
		itoa(calls) + " of " + itoa(calls+214+12) + " shown",
		"214 held back by the limiter, all of them in the histogram", "12 lost: the ring was full",
	} {
		if !strings.Contains(s.text(), want) {
			t.Errorf("the screen does not say %q:\n%s", want, s.text())
		}
	}
	s.press("+")
	if strings.Contains(s.text(), "held back") || strings.Contains(s.text(), "12 lost: ") {
		t.Error("what was withheld of another threshold is told")
	}
	if s.past.skipped != 0 {
		t.Errorf("%d ticks were not seen", s.past.skipped)
	}
	s.publish(mysqlLoad, func(sn *probes.Snapshot) { sn.Seq, sn.HeldBack, sn.Lost.Calls = sn.Seq+3, 214, 12 })
	if !strings.Contains(s.text(), "3 ticks not seen by the screen") {
		t.Error("the screen does not say what it has not seen")
	}
}

func TestRecordingWithoutSlowCalls(t *testing.T) {
	s := newScreen(t, 120, 40, &fakeSource{snap: snapshotAt(0, 4, mysqlLoad)}, Options{Recorded: true})
	s.runFor(3, 4, mysqlLoad)
	s.press("3")
	if !strings.Contains(s.text(), "No slow call of it is in the recording so far.") {
		t.Errorf("the screen says\n%s", s.text())
	}
}

func TestUprobeHasNoSlowCalls(t *testing.T) {
	s := looking(t, 120, 40)
	s.selectRow("malloc")
	if !strings.Contains(s.text(), "press r: calls are timed with a return probe") {
		t.Error("the view does not say what to do")
	}
	s.press("+", "-", "right")
	if len(s.src.told) != 1 {
		t.Errorf("told %v", s.src.told)
	}
}

func TestNamesOfThreadsReachNoTerminalRaw(t *testing.T) {
	s := looking(t, 120, 40)
	s.src.calls = func(seconds float64) []probes.Call {
		c := slowAt(1)[0]
		c.Comm, c.Start = "a\x1b[31m\nc\u202e\u009b31m\x7fd", uint64(seconds*4)
		return []probes.Call{c}
	}
	s.runFor(3, 64, mysqlLoad)
	if i := strings.IndexFunc(s.text(), func(r rune) bool { return r != '\n' && (unicode.IsControl(r) || r == 0x202e) }); i >= 0 {
		t.Errorf("a control character is drawn:\n%q", s.text()[i:i+20])
	}
}

// What neither ran nor waited was blocked; no part has more than the call.
func TestPartsOfACall(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		thread               probes.ThreadStats
		on, waiting, blocked time.Duration
		sentence             string
	}{
		{probes.ThreadStats{OnCPU: ms / 5, Voluntary: 1}, ms / 5, 0, 6*ms - ms/5, "blocked 5.8 of 6.0ms"},
		{probes.ThreadStats{OnCPU: 6 * ms, Waiting: -1}, 6 * ms, 0, 0, "on CPU 6.0 of 6.0ms"},
		{probes.ThreadStats{OnCPU: ms, Waiting: 5 * ms, Involuntary: 2}, ms, 5 * ms, 0, "waiting for a CPU 5.0 of 6.0ms"},
		{probes.ThreadStats{OnCPU: 9 * ms, Waiting: ms, Voluntary: 1}, 5 * ms, ms, 0, "on CPU 5.0 of 6.0ms"},
		{probes.ThreadStats{OnCPU: ms, Waiting: 9 * ms, Voluntary: 1}, 0, 6 * ms, 0, "waiting for a CPU 6.0 of 6.0ms"},
	} {
		c := probes.Call{Latency: 6 * ms, Thread: &tt.thread}
		on, waiting, blocked := partsOf(&c)
		if on != tt.on || waiting != tt.waiting || blocked != tt.blocked {
			t.Errorf("%+v: %v, %v, %v", tt.thread, on, waiting, blocked)
		}
		if got := small(t, twoLoads).callSentence(&c); got != tt.sentence {
			t.Errorf("%+v: %q, want %q", tt.thread, got, tt.sentence)
		}
	}
}

func TestPartsAndRegistersAsPeopleReadThem(t *testing.T) {
	for _, tt := range []struct {
		d, whole time.Duration
		want     string
	}{
		{5900 * time.Microsecond, 6100 * time.Microsecond, "5.9 of 6.1ms"},
		{0, 800, "0 of 800ns"},
		{141 * time.Microsecond, 214 * time.Microsecond, "141 of 214µs"},
		{time.Second, 90 * time.Second, "1.0 of 90.0s"},
	} {
		if got := ofWhole(tt.d, tt.whole); got != tt.want {
			t.Errorf("%v of %v: %q, want %q", tt.d, tt.whole, got, tt.want)
		}
	}
	for v, want := range map[uint64]string{0: "0", 9: "9", 16: "0x10", 1<<64 - 11: "-11", 1 << 47: "0x800000000000"} {
		if got := register(v); got != want {
			t.Errorf("%#x: %q, want %q", v, got, want)
		}
	}
}

// A click does what is under it, in whichever pane of a wide screen that lies.
func TestMouseInThePanesOfAWideScreen(t *testing.T) {
	s := looking(t, 200, 50)
	click := func(text string, dx int) {
		t.Helper()
		s.dirty = true
		s.View()
		for y, line := range strings.Split(s.text(), "\n") {
			if i := strings.LastIndex(line, text); i >= 0 {
				s.send(tea.MouseClickMsg{X: len([]rune(line[:i])) + dx, Y: y, Button: tea.MouseLeft})
				return
			}
		}
		t.Fatalf("%q is not on the screen", text)
	}
	click("1 latency", 2)
	if s.viewAt != 0 {
		t.Errorf("a click on the latency shows view %d", s.viewAt)
	}
	click("[ last 30s ] ", 0) // of the rightmost pane
	if s.window() != 10*time.Second || s.viewAt != 0 {
		t.Errorf("a click on the window: %v, view %d", s.window(), s.viewAt)
	}
	click("2 CPUs", 2)
	if s.viewAt != 1 {
		t.Errorf("a click on the CPUs shows view %d", s.viewAt)
	}
	click("+ - threshold", 0)
	if s.selected.slow.over != 100*time.Microsecond {
		t.Errorf("a click on the + sets %v", s.selected.slow.over)
	}
	click("+ - threshold", 2)
	if s.selected.slow.over != 50*time.Microsecond {
		t.Errorf("a click on the - sets %v", s.selected.slow.over)
	}
}

// Time on CPU that can be wrong by much is marked, and who has no id here gets none.
func TestVagueAndOutside(t *testing.T) {
	s := looking(t, 120, 40)
	s.src.calls = func(seconds float64) []probes.Call {
		c := slowAt(1)[0]
		c.Start, c.PID, c.TID, c.Latency = uint64(seconds*4), 0, 0, 6*time.Millisecond
		c.Thread = &probes.ThreadStats{OnCPU: time.Millisecond, OnCPUError: 4 * time.Millisecond, Voluntary: 1}
		return []probes.Call{c}
	}
	s.runFor(1, 64, mysqlLoad)
	if text := s.text(); !strings.Contains(text, "═~") || !strings.Contains(text, "blocked 5.0 of 6.0ms, give or take 4.00ms") || !strings.Contains(text, "6.00ms       –") {
		t.Errorf("the screen says\n%s", text)
	}
	s.src.calls = slowAt
	if s = looking(t, 120, 40); strings.Contains(s.text(), "~") || strings.Contains(s.text(), "give or take") {
		t.Errorf("what is known is marked\n%s", s.text())
	}
}
