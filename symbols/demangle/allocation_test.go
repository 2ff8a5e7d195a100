//go:build !race

package demangle

import "testing"

// TestNoAllocation: a list has hundreds of thousands of names.
func TestNoAllocation(t *testing.T) {
	buf := make([]byte, 0, maxOutput)
	var names []string
	for _, name := range lines(t, "testdata/shapes") {
		if _, ok := Append(buf, name); ok {
			names = append(names, name)
		}
	}
	allocations := testing.AllocsPerRun(10, func() {
		for _, name := range names {
			Append(buf, name)
		}
	})
	if allocations > 50 { // a collection may empty the pool; with -race it forgets at random
		t.Errorf("%v allocations for %d names", allocations, len(names))
	}
}
