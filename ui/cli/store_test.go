package cli

import (
	"strings"
	"testing"

	"uprobetop/probes"
	"uprobetop/probes/hist"
)

// What a store does not know is a dash, and the verdict has it together.
func TestTableWithoutFrames(t *testing.T) {
	s := manyProbes(1)
	s.InFlight = probes.SessionStore
	s.Probes[0] = probes.Stats{
		Probe: s.Probes[0].Probe, State: probes.Attached, Hits: 7, Missed: probes.Missed{Depth: 4},
		Latency: &hist.Histogram{}, NoFrames: true, Unreturned: 3,
	}
	s.Probes[0].Kind = probes.Return
	var out strings.Builder
	if err := table(&out, s, false, nil); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"uprobe_multi, in-flight store session\n", "–          –        –       4  f0\n", "\nexact: every hit is counted\n",
		"\n3 calls of f0 have not returned: in flight or unwound, which session cookies do not tell apart\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, out.String())
		}
	}
}

func TestInFlightIsAWord(t *testing.T) {
	r := finish(t, program("stat", "--inflight", "best", "/bin/true", "main"), nil)
	if r.status != 2 || r.errors != "uprobetop: there is no store \"best\" for calls in flight: use auto, task, session or hash\n" {
		t.Errorf("%+v", r)
	}
}
