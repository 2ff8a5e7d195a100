package cli

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"uprobetop/probes"
)

// A command is held until both counts have begun: they agree exactly, and it is said.
func TestStatAudit(t *testing.T) {
	requireBPF(t)
	calls := target(t, "calls")
	r := run(t, "stat", "--audit", "-r", calls, "work", "run", "--", calls, "16", "500")
	if r.status != 0 || !strings.Contains(r.out, "\nexact: every hit is counted\naudit: an independent count of each point agrees exactly\n") {
		t.Errorf("status %d, it prints\n%s%s", r.status, r.out, r.errors)
	}
	r = run(t, "stat", "--audit", "-o", "json", calls, "work", "--", calls, "16", "500")
	var last struct {
		Probes []struct {
			Audit *struct {
				Min, Max uint64
				Agrees   bool
			}
		}
	}
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatalf("%v in %q", err, r.out)
	}
	if a := last.Probes[0].Audit; a == nil || a.Min != 8000 || a.Max != 8000 || !a.Agrees {
		t.Errorf("%+v of 8000 calls", a)
	}
}

// Somebody else who maps the target hits it, too: both counts see that.
func TestStatAuditOfProcess(t *testing.T) {
	requireBPF(t)
	path := target(t, "allocs")
	libs, _ := privateLibc(t, path)
	a, b := startWaiting(t, libs, path, "8", "3000"), startWaiting(t, libs, path, "2", "500")
	cmd := program("stat", "--audit", "-p", strconv.Itoa(a.Process.Pid), "libc", "malloc")
	r := finish(t, cmd, func() {
		waitForProbe(t, cmd.Process.Pid)
		b.work(t)
		a.work(t)
		a.in.Close()
	})
	if r.status != 0 || !strings.Contains(r.out, "1,000 hits of malloc by others are left out\n") || !strings.Contains(r.out, "audit: an independent count of each point agrees") {
		t.Errorf("status %d, it prints\n%s%s", r.status, r.out, r.errors)
	}
}

// What the audit says is in words.
func TestAudited(t *testing.T) {
	audit := func(least, most uint64, agrees bool) *probes.Audit {
		return &probes.Audit{Min: least, Max: most, Agrees: agrees}
	}
	for _, c := range []struct {
		audits []*probes.Audit
		exact  bool
		want   []string
	}{
		{[]*probes.Audit{nil, nil}, true, nil},
		{[]*probes.Audit{audit(1, 1, true), audit(0, 0, true)}, true, []string{"audit: an independent count of each point agrees exactly"}},
		{[]*probes.Audit{audit(1, 1, true), audit(5, 1005, true)}, true, []string{"audit: an independent count of each point agrees, to within 1,000 hits at its beginning and end"}},
		{
			[]*probes.Audit{audit(1, 1, true), audit(900000, 1120000, true)},
			true,
			[]string{"audit: an independent count of each point agrees, to within 220,000 hits (at most 22 %) at its beginning and end: run longer for a closer check, or start the program after --"},
		},
		{[]*probes.Audit{audit(1000003, 1000003, false), nil}, false, []string{"audit: 1,000,003 hits of f0 were seen by the kernel and 1,000,000 by us, 3 too few"}},
		{[]*probes.Audit{audit(10, 20, false), audit(1, 1, true)}, false, []string{"audit: 10 to 20 hits of f0 were seen by the kernel and 1,000,000 by us, 999,980 too many"}},
		{[]*probes.Audit{{Partly: true}, nil}, true, []string{"audit: the kernel's own count of f0 did not run all the time, and says nothing"}},
	} {
		s := manyProbes(len(c.audits))
		for i := range s.Probes {
			s.Probes[i].Hits, s.Probes[i].Audit = 999999, c.audits[i]
			s.Probes[i].Filtered = 1
		}
		names := map[probes.ID]string{}
		for i := range s.Probes {
			names[s.Probes[i].ID] = "f" + strconv.Itoa(i)
		}
		if got, exact := audited(s, names); exact != c.exact || !slices.Equal(got, c.want) {
			t.Errorf("it says %q, %v, want %q", got, exact, c.want)
		}
	}
}
