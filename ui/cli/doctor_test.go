package cli

import (
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"
)

type doctorObject struct {
	Schema, Verdict string
	Ready           bool
	Checks          []struct{ Name, Status, Found, Means, Remedy string }
}

func TestDoctor(t *testing.T) {
	requireBPF(t)
	r := run(t, "doctor")
	if r.status != 0 || !strings.HasPrefix(r.out, "ready: a probe was placed by uprobe_multi, and every call was counted\n") || r.errors != "" {
		t.Errorf("%+v", r)
	}
	var o doctorObject
	r = run(t, "doctor", "-o", "json")
	if err := json.Unmarshal([]byte(r.out), &o); err != nil || strings.Count(r.out, "\n") != 1 {
		t.Fatalf("%v: %+v", err, r)
	}
	if !o.Ready || o.Schema != "uprobetop/1" || len(o.Checks) < 20 || r.status != 0 {
		t.Errorf("%+v", o)
	}
}

// A user without rights is told what to do.
func TestDoctorAsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become another")
	}
	const nobody = 65534
	as := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	cmd := program("doctor", "-o", "json")
	cmd.Dir, cmd.SysProcAttr = "/", as
	r := finish(t, cmd, nil)
	var o doctorObject
	if err := json.Unmarshal([]byte(r.out), &o); err != nil {
		t.Fatalf("%v: %+v", err, r)
	}
	if o.Ready || r.status != 1 || r.errors != "" || o.Verdict != "not ready: CAP_BPF (not held): run sudo uprobetop" {
		t.Errorf("%+v %s", r, o.Verdict)
	}
	for _, c := range o.Checks {
		if c.Status == "missing" && c.Remedy == "" && c.Name != "a probe on uprobetop" || c.Status != "missing" && c.Remedy != "" {
			t.Errorf("%+v", c)
		}
	}
	cmd = program("doctor")
	cmd.Dir, cmd.SysProcAttr = "/", as
	if r := finish(t, cmd, nil); r.status != 1 || !strings.HasPrefix(r.out, "not ready: CAP_BPF") ||
		!strings.Contains(r.out, "missing  CAP_PERFMON") || !strings.Contains(r.out, ": run sudo uprobetop\n") {
		t.Errorf("%+v", r)
	}
}

func TestDoctorBadInput(t *testing.T) {
	for _, args := range [][]string{{"doctor", "now"}, {"doctor", "-o", "csv"}} {
		if r := run(t, args...); r.status != 2 || r.out != "" || strings.Count(r.errors, "\n") != 1 {
			t.Errorf("%v: %+v", args, r)
		}
	}
}
