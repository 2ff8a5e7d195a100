package ui

import (
	"strings"
	"testing"
	"time"
)

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
