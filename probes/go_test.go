package probes

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"uprobetop/symbols"
)

// goProgram builds a Go source of testdata.
func goProgram(t testing.TB, source string, flags ...string) string {
	t.Helper()
	path, err := exec.LookPath("go")
	if err != nil {
		t.Skip("there is no Go compiler")
	}
	out := filepath.Join(t.TempDir(), "program")
	args := append(append([]string{"build", "-o", out}, flags...), filepath.Join("testdata", source))
	if msg, err := exec.Command(path, args...).CombinedOutput(); err != nil {
		t.Fatalf("go %v: %v\n%s", args, err, msg)
	}
	return out
}

// The entries of Go functions are calls, however often a stack grows and whoever
// preempts whom: the breakpoint stands behind the check that begins the function again.
func TestKernelGo(t *testing.T) {
	target := goProgram(t, "stacks/main.go")
	f := open(t, target)
	c := newCollectorHere(t, Config{})
	var rs []Request
	for _, name := range []string{"main.small", "main.big", "main.huge", "main.(*tree).walk", "main.sum", "main.leaf", "main.apply", "main.twice.func1", "main.(*list[...]).push"} {
		rs = append(rs, requests(t, f, name)...)
	}
	// The point behind the check by its own name stands beside the function's.
	small := rs[0].Function
	behind := uint64(f.Points(small)[0].Offset - small.Offset)
	if behind == 0 {
		t.Fatal("main.small has no stack check")
	}
	point, err := f.Inside(small, behind)
	if err != nil {
		t.Fatal(err)
	}
	rs = append(rs, Request{File: f, Function: point})
	place(t, c, rs...)
	said := truth(t, target)
	s := finish(t, c)
	hits := map[string]uint64{}
	for i := range s.Probes {
		p := &s.Probes[i]
		if p.HitsAgain() || p.Note != "" {
			t.Errorf("%s is marked: %q", p.Function.Name, p.Note)
		}
		hits[goName(p.Function)] += p.Hits
	}
	said[point.Name] = said["main.small"]
	for name, n := range said {
		equal(t, name, hits[name], n)
	}
}

// requests is what a text means, of entries.
func requests(t testing.TB, f *symbols.File, text string) (rs []Request) {
	t.Helper()
	fns := f.Lookup(text)
	if len(fns) == 0 {
		t.Fatalf("there is no %s", text)
	}
	for _, fn := range fns {
		rs = append(rs, Request{File: f, Function: fn})
	}
	return rs
}

// goName is a function's name without type arguments.
func goName(fn *symbols.Function) string {
	return regexp.MustCompile(`\[[^]]*\]`).ReplaceAllString(fn.Name, "")
}
