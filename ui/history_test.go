package ui

import (
	"math"
	"testing"
)

// A tick that comes 3 s late, of loads that go on as before, leaves the row's history
// as it would have been.
func TestLateTickOnTheScreen(t *testing.T) {
	s := watching(t, 120, 40)
	loads := mysqlLoad
	for _, at := range []float64{41, 42, 45, 46} {
		snap := snapshotAt(at, 64, loads)
		snap.Seq = s.src.snap.Seq + 1
		s.src.snap = snap
		s.pull(1e9)
	}
	for _, r := range s.rows {
		if r.name != "malloc" || r.stat == nil {
			continue
		}
		rates := r.trail.rates[len(r.trail.rates)-6:] // of the seconds 41 to 46
		if end := r.trail.first + len(r.trail.rates) - 1; end != 46 {
			t.Errorf("the history ends at second %d", end)
		}
		for i, rate := range rates {
			if math.IsNaN(rate) || math.Abs(rate/loads[1].rate-1) > 0.3 {
				t.Errorf("second %d: %v a second", 41+i, rate)
			}
		}
		if rates[2] != rates[3] || rates[3] != rates[4] {
			t.Errorf("the late seconds have %v", rates[2:5])
		}
		return
	}
	t.Error("there is no row")
}
