package ui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"uprobetop/bpf/bpftest"
	"uprobetop/probes"
	"uprobetop/symbols"
)

// marking is a screen on a program with usdt probes.
func marking(t *testing.T) (*screen, *symbols.File) {
	t.Helper()
	f, err := symbols.Open(bpftest.Compile(t, "../probes/testdata/markers.c"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	src := &fakeSource{snap: &probes.Snapshot{CPUs: 2, Kernel: "6.18.44"}}
	s := newScreen(t, 120, 40, src, Options{})
	s.target.Files = []*symbols.File{f}
	s.send(tea.ColorProfileMsg{Profile: colorprofile.TrueColor})
	return s, f
}

// count lets a usdt probe be hit.
func (s *screen) count(p *probes.Probe, note string) {
	for i := range 8 {
		last := s.src.snap
		next := &probes.Snapshot{Seq: last.Seq + 1, Elapsed: last.Elapsed + 250e6, Interval: 250e6, CPUs: 2, Kernel: last.Kernel}
		next.Probes = []probes.Stats{{
			Probe: p, State: probes.Attached, Note: note, Hits: uint64(i * 100), Rate: 400, Counted: next.Elapsed,
			PerCPU: []probes.CPUStats{{CPU: 0, Hits: uint64(i * 100), Rate: 400}},
		}}
		s.src.snap = next
		s.pull(250e6)
	}
}

// A usdt probe is found by its name, told apart by sign and word, and counted; nobody is
// offered its latency.
func TestUsdt(t *testing.T) {
	s, f := marking(t)
	s.press("/")
	for _, key := range "two" {
		s.press(string(key))
	}
	if text := s.text(); !strings.Contains(text, "◆ usdt, 2 sites, arguments -4") {
		t.Errorf("the search shows\n%s", text)
	}
	s.press("tab", "enter")
	if len(s.src.placed) != 1 || s.src.placed[0].Kind != probes.USDT || s.src.placed[0].Function.Name != "demo:two" {
		t.Fatalf("%+v is asked for", s.src.placed)
	}
	fn := s.src.placed[0].Function
	s.count(&probes.Probe{ID: 1, Kind: probes.USDT, File: f, Function: fn, Points: f.Points(fn)}, "not counted at 1 of its 3 sites: because")
	for _, want := range []string{"◆ demo:two", "usdt", "it has no return", "not counted at 1 of its 3 sites"} {
		if text := s.text(); !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for range 4 { // the views
		s.press("tab")
		if text := s.text(); strings.Contains(text, "A uprobe") || strings.Contains(text, "measure its latency") {
			t.Errorf("a usdt probe is taken for a function:\n%s", text)
		}
	}
	s.src.finding = probes.Check(probes.Request{Kind: probes.Return, File: f, Function: fn}, probes.Hazards{})
	s.press("r")
	if text := s.text(); !strings.Contains(text, "demo:two cannot be timed: a usdt probe is a point in the code and has no return  ") {
		t.Errorf("r says\n%s", text)
	}
	if len(s.src.placed) != 1 {
		t.Errorf("%+v is asked for", s.src.placed)
	}
	s.press("space")
	if len(s.src.removed) != 1 {
		t.Errorf("%v is taken away", s.src.removed)
	}
}

// Names without code of their own are rows of their own, though none has an offset.
func TestRowsWithoutCode(t *testing.T) {
	s, f := marking(t)
	one, two := f.Lookup("getc"), f.Lookup("strtol")
	if len(one) != 1 || len(two) != 1 {
		t.Skip("the C library has other names")
	}
	if s.rowFor(f, one[0]) == s.rowFor(f, two[0]) {
		t.Error("two imports are one row")
	}
}
