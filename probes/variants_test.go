package probes

import (
	"strings"
	"testing"
)

// What to do about an IFUNC of which nobody tells what it chose is what can be done.
func TestWayToVariants(t *testing.T) {
	many := strings.Fields("a b c d e")
	for _, c := range []struct {
		names     []string
		ofProcess bool
		want      string
	}{
		{[]string{"time_syscall"}, true, "most likely the kernel's own code is used (vDSO), which is in no file: probe a function that calls it"},
		{[]string{"turn_a", "turn_b"}, true, "probe the variant that is used: turn_a, turn_b"},
		{[]string{"turn_a"}, false, "start the program and name it with -p, or probe the variant that is used: turn_a"},
		{many, true, "it is one of 5 variants: try again once it was called"},
		{many, false, "it is one of 5 variants: start the program and name it with -p"},
	} {
		if got := wayToVariants(c.names, c.ofProcess); got != c.want {
			t.Errorf("%q: %s, want %s", c.names, got, c.want)
		}
	}
}
