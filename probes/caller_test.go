package probes

import (
	"debug/elf"
	"strings"
	"testing"

	"uprobetop/bpf/bpftest"
)

// A return probe goes only where the return address is known to be: the unwind table
// tells, and names where there is none.
func TestCaller(t *testing.T) {
	cases := map[string]string{
		"main": "", "called": "", "whole": "", "jumped": "", "called.cold.1": "",
		"silent": "no unwind entry", "bare": "no unwind entry",
		"middle": "is a piece of", "inner": "is a piece of",
		"piece": "jumped to", "signalled": "jumped to", "_start": "jumped to",
		"dlsym": "who called it",
	}
	for _, flags := range [][]string{{"-O1"}, {"-static"}, {"-no-pie", "-Wl,--no-eh-frame-hdr"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			f := open(t, bpftest.Compile(t, "testdata/callers.c", flags...))
			if f.Machine != elf.EM_X86_64 {
				t.Skip("x86-64 only")
			}
			for name, says := range cases {
				r := request(t, f, Return, name)
				want := Refuses
				switch {
				case says == "":
					want = Fine
				case strings.HasPrefix(says, "no unwind"):
					want = Asks
				}
				if v := Check(r, Hazards{}); v.Verdict != want || !strings.Contains(v.Reason, says) {
					t.Errorf("%s: %+v, want %q", name, v, says)
				}
				if r.Kind = Entry; Check(r, Hazards{}).Verdict != Fine {
					t.Errorf("%s is not counted: %+v", name, Check(r, Hazards{}))
				}
			}
		})
	}
}

// Return probes on all that is let through change nothing of what a program says.
func TestKernelCallers(t *testing.T) {
	target := bpftest.Compile(t, "testdata/callers.c")
	f := open(t, target)
	said := truth(t, target)
	c := newCollectorHere(t, Config{})
	for i := range f.Functions {
		if name := f.Functions[i].Name; name != "main" {
			if err := c.Place(t.Context(), Request{Kind: Return, File: f, Function: &f.Functions[i], Accepted: name == "silent"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	equal(t, "sum", truth(t, target)["sum"], said["sum"])
	s := finish(t, c)
	for i := range s.Probes {
		switch p := &s.Probes[i]; p.Function.Name {
		case "called", "silent", "whole", "jumped":
			equal(t, p.Function.Name, p.Hits, 1000)
		}
	}
}
