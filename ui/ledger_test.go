package ui

import (
	"strings"
	"testing"
	"time"

	"uprobetop/probes"
)

// Where the store keeps no frames the ledger has one term for what it does not tell
// apart, and adds up, also after a clear.
func TestLedgerWithoutFrames(t *testing.T) {
	s := watching(t, 120, 40)
	framed := func(sn *probes.Snapshot) {
		sn.InFlight = probes.SessionStore
		for i := range sn.Probes {
			if p := &sn.Probes[i]; p.Latency != nil {
				p.NoFrames, p.Unreturned = true, p.InFlight+int64(p.Unwound.Total())
				p.InFlight, p.Unwound = 0, probes.Unwound{}
			}
		}
	}
	s.publish(mysqlLoad, framed)
	s.selectRow("buf_page_get_gen")
	s.press("4")
	text := s.text()
	for _, want := range []string{"hits = returned + unreturned + missed", "the books balance", "uprobe_multi, session", "in flight or unwound: they cannot be told apart"} {
		if !strings.Contains(text, want) {
			t.Errorf("the ledger does not say %q:\n%s", want, text)
		}
	}
	for _, not := range []string{"jumped over", "no_slot"} {
		if strings.Contains(text, not) {
			t.Errorf("the ledger says %q, which is not known", not)
		}
	}
	if _, known := inFlight(s.selected); known {
		t.Error("the column says how many are in flight")
	}
	for _, g := range s.statistics(s.selected, 20) {
		for _, line := range g {
			if (line.name == "in flight" || line.name == "unwound") && line.value != string(s.th.Dash) {
				t.Errorf("%s reads %s", line.name, line.value)
			}
		}
	}
	s.press("c")
	s.publish(mysqlLoad, framed)
	if !strings.Contains(s.text(), "hits + open = returned + unreturned + missed") {
		t.Errorf("after a clear the ledger reads\n%s", s.text())
	}
}

// Books that stay off while nobody calls are said to be; the term that is wrong is
// shown as it was counted.
func TestLedgerThatIsOff(t *testing.T) {
	s := small(t, twoLoads)
	s.selectRow("buf_page_get_gen")
	for i := range 8 { // at rest: the same numbers again, three frames that were never taken off
		snap := *s.src.snap
		snap.Seq++
		snap.Elapsed += time.Second
		snap.At = snap.At.Add(time.Second)
		snap.Probes = append(snap.Probes[:0:0], snap.Probes...)
		for j := range snap.Probes {
			if i == 0 && snap.Probes[j].Latency != nil {
				snap.Probes[j].InFlight += 3
			}
		}
		s.src.snap = &snap
		s.pull(time.Second)
	}
	s.press("4")
	text := s.text()
	if !strings.Contains(text, "the books do not balance: -3 hits are unaccounted for") || strings.Contains(text, "the books balance") {
		t.Errorf("the ledger:\n%s", text)
	}
}
