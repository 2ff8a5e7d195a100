package probes

import (
	"context"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"uprobetop/bpf/bpftest"
	"uprobetop/symbols"
)

// What takes no breakpoint is refused, whoever asks and in whatever company, or
// found out by asking the kernel at once, although nobody maps the file; the
// others stand.
func TestFirstInstruction(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("x86-64 only")
	}
	f := open(t, bpftest.Compile(t, "testdata/first.c"))
	c := newCollectorHere(t, Config{})
	var rs []Request
	for _, name := range []string{"vex2", "locked", "plain", "ports", "vex3", "enters", "evex", "repeats", "swaps", "vexfs", "endless"} {
		for _, kind := range []Kind{Entry, Return} {
			r := request(t, f, kind, name)
			r.Accepted = true // no answer makes it right
			rs = append(rs, r)
		}
	}
	if err := c.Place(context.Background(), rs...); err != nil {
		t.Fatal(err)
	}
	says := map[string]string{
		"vex2": "AVX", "vex3": "AVX", "evex": "AVX", "enters": "system call", "repeats": "every round",
		"vexfs": "AVX", "swaps": "take for a nop", "locked": "refuses to step", "ports": "refuses to step",
	}
	s := collect(t, c)
	for i := range s.Probes {
		p := &s.Probes[i]
		want := Refused
		switch p.Function.Name {
		case "plain":
			want = Attached
		case "endless": // not known here: the kernel is asked
			want = Failed
		}
		if p.State != want || !strings.Contains(p.Note, says[p.Function.Name]) {
			t.Errorf("%s %s is %s: %s", p.Kind, p.Function.Name, p.State, p.Note)
		}
	}
}

// Of the host's libc, nothing that begins so is ever let through; malloc is.
func TestLibcFindings(t *testing.T) {
	out, err := exec.Command("ldd", "/bin/sh").Output()
	if err != nil {
		t.Skipf("ldd: %v", err)
	}
	var path string
	for field := range strings.FieldsSeq(string(out)) {
		if strings.Contains(field, "/libc.so") {
			path = field
		}
	}
	if path == "" {
		t.Skip("sh uses no shared libc")
	}
	f := open(t, path)
	refused := 0
	for i := range f.Functions {
		r := Request{Kind: Entry, File: f, Function: &f.Functions[i]}
		code, err := f.Code(r.Function, 1)
		if err != nil {
			t.Fatal(err)
		}
		bad := r.Function.Place != symbols.InFile || x86(f) && (code[0] == 0xc4 || code[0] == 0xc5 || code[0] == 0x62)
		if got := Check(r, Hazards{}).Verdict; bad && got != Refuses || got == Asks {
			t.Errorf("%s: verdict %d", r.Function.Name, got)
		}
		if bad {
			refused++
		}
	}
	for _, name := range []string{"_setjmp", "getcontext", "vfork"} {
		if v := Check(request(t, f, Return, name), Hazards{}); v.Verdict != Refuses || !strings.Contains(v.Reason, "more than once") {
			t.Errorf("%s: %+v", name, v)
		}
	}
	if v := Check(request(t, f, Return, "malloc"), Hazards{}); v.Verdict != Fine {
		t.Errorf("malloc: %+v", v)
	}
	if refused == 0 {
		t.Errorf("%s has nothing to refuse, not even memset", path)
	}
	if v := Check(request(t, f, Return, "malloc"), Hazards{Unwinds: "/x/libstdc++.so.6"}); v.Verdict != Asks || !strings.Contains(v.Reason, "libstdc++") {
		t.Errorf("malloc of a program with exceptions: %+v", v)
	}
}
