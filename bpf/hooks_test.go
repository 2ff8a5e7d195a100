package bpf

import "testing"

// An event that one of the pair saw is not missing, and what is not known to be seen is.
func TestBothSkipped(t *testing.T) {
	for _, c := range []struct {
		name            string
		skipped         [2]uint64
		alone, unmarked uint64
		want            uint64
	}{
		{"nothing was skipped", [2]uint64{0, 0}, 0, 0, 0},
		{"the first, and the second ran alone", [2]uint64{7, 0}, 7, 0, 0},
		{"the second", [2]uint64{0, 7}, 0, 0, 0},
		{"each at another event", [2]uint64{7, 4}, 7, 0, 0},
		{"both at two", [2]uint64{7, 4}, 5, 0, 2},
		{"both at all", [2]uint64{3, 3}, 0, 0, 3},
		{"a mark that could not be left", [2]uint64{7, 4}, 7, 1, 1},
		{"and nothing was skipped", [2]uint64{0, 0}, 1, 1, 0},
		{"a mark left for a second that was skipped", [2]uint64{1, 1}, 0, 1, 1},
	} {
		if got := bothSkipped(c.skipped, c.alone, c.unmarked); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
