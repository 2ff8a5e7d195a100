package probes

import (
	"os/exec"
	"strings"
	"testing"
)

// An exception or panic that passes a return probe ends the process: who asks for
// one is warned, and who says yes sees calls that ended with their thread. Entries
// alone change nothing.
func TestKernelUnwinds(t *testing.T) {
	for name, build := range map[string]func(t *testing.T) string{
		"C++":  func(t *testing.T) string { return compiled(t, "throws.cc", "g++", "-O1") },
		"Rust": func(t *testing.T) string { return compiled(t, "panics.rs", "rustc", "-O") },
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, build(t))
			const n = 20
			c := newCollectorHere(t, Config{})
			asked := request(t, f, Return, "passed")
			if finding := c.Check(asked); finding.Verdict != Asks || !strings.Contains(finding.Reason, "exceptions") {
				t.Fatalf("a return probe: %+v", finding)
			}
			entry := newCollectorHere(t, Config{})
			place(t, entry, request(t, f, Entry, "passed"))
			equal(t, "caught", truth(t, f.Path, "20")["caught"], n)
			equal(t, "hits", finish(t, entry).Probes[0].Hits, n)

			asked.Accepted = true
			place(t, c, asked)
			err := exec.Command(f.Path, "20").Run()
			p := &finish(t, c).Probes[0]
			if err == nil { // a kernel that makes it right
				checkLedger(t, p, want{hits: n, jump: p.Unwound.Jump, exit: n - p.Unwound.Jump})
				return
			}
			t.Logf("it ends: %v", err)
			checkLedger(t, p, want{hits: 1, exit: 1})
		})
	}
}
