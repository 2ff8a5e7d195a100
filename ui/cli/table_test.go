package cli

import (
	"fmt"
	"strings"
	"testing"

	"uprobetop/probes"
	"uprobetop/symbols"
)

func manyProbes(n int) *probes.Snapshot {
	s := &probes.Snapshot{Final: true, Kernel: "6.18", Method: "uprobe_multi"}
	for i := range n {
		p := &probes.Probe{
			ID: probes.ID(i), File: &symbols.File{},
			Function: &symbols.Function{Symbol: symbols.Symbol{Name: fmt.Sprintf("f%d", i)}},
		}
		s.Probes = append(s.Probes, probes.Stats{Probe: p, State: probes.Attached, Hits: uint64(i % 3), Filtered: 1})
	}
	return s
}

// A pattern's many functions are sorted by hits and said in few lines; a few
// functions stay as they were named.
func TestTableOfMany(t *testing.T) {
	var few, many strings.Builder
	if err := table(&few, manyProbes(4)); err != nil {
		t.Fatal(err)
	}
	if err := table(&many, manyProbes(300)); err != nil {
		t.Fatal(err)
	}
	functions := func(text string) (names []string) {
		for line := range strings.Lines(text) {
			if f := strings.Fields(line); len(f) == 3 && strings.HasPrefix(f[2], "f") {
				names = append(names, f[2])
			}
		}
		return names
	}
	if got := strings.Join(functions(few.String()), " "); got != "f0 f1 f2 f3" {
		t.Errorf("few: %s", got)
	}
	got := functions(many.String())
	if len(got) != 200 || got[0] != "f2" || got[99] != "f299" || got[100] != "f1" {
		t.Errorf("many: %d, %s", len(got), got)
	}
	for _, note := range []string{
		"no call reached f0, f3, f6, f9 and 96 more: not called, or inlined into the callers\n",
		"300 hits of f0, f1, f2, f3 and 296 more by others are left out\n",
	} {
		if strings.Count(many.String(), note) != 1 {
			t.Errorf("it does not say %q:\n%s", note, many.String())
		}
	}
}
