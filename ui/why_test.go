package ui

import (
	"strings"
	"testing"

	"uprobetop/probes"
)

func uncalledAnswer(*probes.Stats) probes.Explanation {
	return probes.Explanation{
		Causes: []string{
			"no call reached this address: not called, or inlined into its callers",
			"its breakpoint is in place in mysqld 2841",
			"mysqld has a getaddrinfo of its own, which may have the calls: probe mysqld:getaddrinfo, too",
		},
		Checks: []probes.Checked{
			{OK: true, What: "file", Text: "libc.so.6, mapped by 1 process"},
			{OK: true, What: "mapping", Text: "private and executable: the kernel could place it"},
			{OK: true, What: "breakpoint", Text: "cc at 0x7f1ab010f2a0 in the memory of mysqld 2841"},
			{OK: true, What: "filter", Text: "no hit was left out"},
		},
	}
}

func sharedAnswer(*probes.Stats) probes.Explanation {
	return probes.Explanation{
		Proven: true,
		Causes: []string{"libc.so.6 is mapped shared by mysqld 2841: into such mappings the kernel puts no breakpoint"},
		Checks: []probes.Checked{
			{OK: true, What: "file", Text: "libc.so.6, mapped by 1 process"},
			{OK: false, What: "filter", Text: "leaves 12 hits out"},
		},
	}
}

// The w key asks beside the screen, the answer leaves with esc or with the first hit, and
// a row that has numbers is not asked.
func TestWhy(t *testing.T) {
	s := watching(t, 120, 40)
	var asked []string
	s.opts.Why = func(st *probes.Stats) probes.Explanation {
		asked = append(asked, st.Function.Name)
		return sharedAnswer(st)
	}
	s.selectRow("malloc")
	if s.press("w"); len(asked) != 0 {
		t.Errorf("asked for %v", asked)
	}
	s.selectRow("getaddrinfo")
	_, look := s.Update(keyPress("w"))
	if got := s.text(); !strings.Contains(got, "are being looked at") {
		t.Errorf("while it is looked:\n%s", got)
	}
	s.press("esc") // nobody wants to know any more
	s.run(look)
	if got := s.text(); strings.Contains(got, "mapped shared") {
		t.Errorf("after esc:\n%s", got)
	}
	s.press("w")
	if got := s.text(); !strings.Contains(got, "mapped shared by mysqld 2841") || len(asked) != 2 {
		t.Errorf("asked for %v:\n%s", asked, got)
	}
	s.publish(mysqlLoad, func(sn *probes.Snapshot) { sn.Probes[5].Hits = 1 })
	if got := s.text(); strings.Contains(got, "mapped shared") {
		t.Errorf("after a hit:\n%s", got)
	}
}
