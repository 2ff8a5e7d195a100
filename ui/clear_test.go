package ui

import (
	"slices"
	"strings"
	"testing"

	"uprobetop/probes"
)

func TestClearCountsFromZeroAndUBringsItBack(t *testing.T) {
	s := looking(t, 120, 40)
	r := s.selected
	before := s.snap.Find(1)
	s.press("c")
	if got := r.since(); got.Hits != 0 || got.Returned != 0 || got.Latency.Count() != 0 || r.num.calls != 0 {
		t.Errorf("after c there are %d hits, %d returned, %d calls", got.Hits, got.Returned, r.num.calls)
	}
	if n := len(s.past.calls[1].newest); n != 0 {
		t.Errorf("%d slow calls are still there", n)
	}
	s.runFor(5, 64, mysqlLoad)
	now, got := s.snap.Find(1), r.since()
	if got.Hits != now.Hits-before.Hits || got.Latency.Count() != now.Latency.Count()-before.Latency.Count() || got.InFlight != now.InFlight {
		t.Errorf("5 s later %d hits, %d calls, %d in flight", got.Hits, got.Latency.Count(), got.InFlight)
	}
	if r.num.calls != got.Latency.Count() {
		t.Errorf("the window has %d calls, since the clear there were %d", r.num.calls, got.Latency.Count())
	}
	var byCPU uint64
	for _, c := range got.PerCPU {
		byCPU += c.Hits
	}
	if byCPU != got.Hits {
		t.Errorf("%d hits by CPU, %d hits", byCPU, got.Hits)
	}
	s.press("4")
	if text := s.text(); !strings.Contains(text, "the books balance") || !strings.Contains(text, "+") || strings.Count(text, "since 14:0") != 2 {
		t.Errorf("the ledger after a clear:\n%s", text)
	}
	s.press("u")
	if r.since() != r.shown || r.num.calls == got.Latency.Count() || strings.Contains(s.text(), "since 14:0") {
		t.Error("u does not bring the numbers back")
	}
}

// The terms after a clear add up, with the calls that were open at it.
func TestLedgerAddsUpAfterAClear(t *testing.T) {
	s := small(t, twoLoads)
	s.selectRow("buf_page_get_gen")
	s.press("c")
	s.runFor(7, 4, twoLoads)
	st, open := s.selected.since(), open(s.selected.zero)
	left := int64(st.Hits) + open - int64(st.Returned) - st.InFlight - int64(st.Unwound.Total()) - int64(st.Missed.Total())
	if want := s.selected.shown.Balance(); left != want || st.Hits == 0 {
		t.Errorf("%d are left over, %d before the clear was thought of", left, want)
	}
}

// What was missed and lost before a clear is not told after it.
func TestClearForgetsWhatWasMissed(t *testing.T) {
	s := watching(t, 120, 40)
	missed := func(n uint64) {
		s.publish(mysqlLoad, func(sn *probes.Snapshot) { sn.Probes[0].Missed.Depth, sn.Lost.Cells = n, n })
	}
	missed(2)
	s.press("c")
	missed(2)
	if got := strings.Split(s.text(), "\n")[1]; !strings.Contains(got, "lost 0") || strings.Contains(got, "2 missed") {
		t.Errorf("the totals read %q", got)
	}
	missed(5)
	if got := strings.Split(s.text(), "\n")[1]; !strings.Contains(got, "3 missed") || !strings.Contains(got, "lost 3") {
		t.Errorf("the totals read %q", got)
	}
}

// Extremes cannot be subtracted: the largest since a clear is a bound, unless it
// is the largest of all.
func TestLargestSinceAClearIsABound(t *testing.T) {
	s := watching(t, 120, 40)
	s.press("c")
	s.publish(mysqlLoad, func(sn *probes.Snapshot) { // the largest is as before
		sn.Probes[0].Latency.Max = s.snap.Find(1).Latency.Max
	})
	if !s.selected.num.bound || !strings.Contains(s.text(), "≤") {
		t.Error("the largest is given as exact")
	}
	s.publish(mysqlLoad, func(sn *probes.Snapshot) {
		h := *sn.Probes[0].Latency
		h.Counts[400]++
		h.Max = 1 << 28
		sn.Probes[0].Latency = &h
	})
	if s.selected.num.bound || strings.Contains(s.text(), "≤") {
		t.Error("a new largest is called a bound")
	}
}

func TestWindowAfterAClearIsTheShorter(t *testing.T) {
	s := watching(t, 120, 40)
	s.press("c")
	s.runFor(12, 64, mysqlLoad)
	if name := s.windowName(); !strings.HasPrefix(name, "since 14:0") {
		t.Errorf("30 s, 12 s after the clear, is called %q", name)
	}
	s.press("[")
	if name := s.windowName(); name != "last 10s" {
		t.Errorf("10 s, 12 s after the clear, is called %q", name)
	}
	calls := s.selected.num.calls
	s.press("]")
	if s.selected.num.calls <= calls {
		t.Error("the window is not longer than 10 s")
	}
}

// Undo brings the calls back, with those that came since on top.
func TestUndoOfAClearKeepsTheNewCalls(t *testing.T) {
	s := looking(t, 120, 40)
	before := slices.Clone(s.past.calls[1].newest)
	s.press("c")
	s.runFor(8, 64, mysqlLoad)
	since := slices.Clone(s.past.calls[1].newest)
	s.press("u")
	got := s.past.calls[1]
	if want := len(before) + len(since); len(since) == 0 || len(got.newest) != want || got.reported != uint64(want) {
		t.Errorf("%d calls before, %d since, %d (%d reported) after", len(before), len(since), len(got.newest), got.reported)
	}
}

func TestClearThawsThePicture(t *testing.T) {
	s := small(t, twoLoads)
	s.press("p")
	s.runFor(3, 4, twoLoads)
	s.press("c")
	if s.frozen || s.selected.since().Hits != 0 {
		t.Error("a frozen picture cannot count from zero")
	}
}
