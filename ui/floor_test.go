package ui

import (
	"strings"
	"testing"
	"time"

	"uprobetop/probes"
)

// What the probe itself takes is marked in the histogram and stands among the
// statistics, once it is known.
func TestTheProbesOwnShare(t *testing.T) {
	for _, w := range []int{120, 300} {
		s := watching(t, w, 40)
		if strings.Contains(s.text(), "own share") {
			t.Errorf("at %d cells something is marked that nobody measured", w)
		}
		for i := range s.src.snap.Probes {
			s.src.snap.Probes[i].Floor = probes.Floor{Class: probes.Nop5, Min: 310, P50: 331}
		}
		s.pull(250 * time.Millisecond)
		for _, want := range []string{"▴ the probe's own share ", "probe's own         331ns"} {
			if !strings.Contains(s.text(), want) {
				t.Errorf("at %d cells there is no %q:\n%s", w, want, s.text())
			}
		}
	}
}
