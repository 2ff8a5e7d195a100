package ui

import (
	"strings"
	"testing"

	"uprobetop/probes"
	"uprobetop/symbols"
)

// finding is a screen of some size with what was typed into the search.
func finding(t *testing.T, f *symbols.File, w, h int, query string) *screen {
	t.Helper()
	s := newScreen(t, w, h, &fakeSource{snap: snapshotAt(1, 4, nil)}, Options{})
	s.target.Files = []*symbols.File{f}
	s.press("/")
	for _, r := range query {
		s.press(string(r))
	}
	return s
}

// A raw name is found by its beginning, whichever way the names are shown.
func TestFindRawName(t *testing.T) {
	f := &symbols.File{Path: "/usr/bin/shop", Dev: 1, Ino: 21, Functions: functions(alike...)}
	s := finding(t, f, 120, 40, "_ZN4shop9inventory5Order3add")
	if got := s.text(); !strings.Contains(got, "▸ ○ shop::inventory::Order::add(int)") || !strings.Contains(got, " 2 of 12 names ") {
		t.Errorf("the search shows\n%s", got)
	}
	if s.press("ctrl+t"); !strings.Contains(s.text(), "▸ ○ _ZN4shop9inventory5Order3addEi") {
		t.Errorf("with raw names it shows\n%s", s.text())
	}
	match := s.dialog.(*finder).matches[0]
	if got := s.nameOfMatch(match, "_ZN4shop").Spans; len(got) != 1 || got[0] != [2]int{0, len("_ZN4shop")} {
		t.Errorf("marked are %v", got)
	}
	if got := finding(t, f, 120, 40, "5Order3add").text(); !strings.Contains(got, " 2 of 12 names ") {
		t.Errorf("of a part of a raw name the search shows\n%s", got)
	}
	if got := finding(t, f, 80, 24, "add").text(); !strings.Contains(got, "ctrl-t names") {
		t.Errorf("nothing tells of ctrl-t:\n%s", got)
	}
	s.press("esc", "?")
	if !strings.Contains(s.text(), "in find ctrl-t") {
		t.Errorf("the help does not tell of ctrl-t:\n%s", s.text())
	}
}

// Names that begin alike are told apart in the list.
func TestFoundNamesAreToldApart(t *testing.T) {
	f := &symbols.File{Path: "/usr/bin/shop", Dev: 1, Ino: 21, Functions: functions(alike...)}
	s := finding(t, f, 60, 12, "total")
	if got := s.text(); !strings.Contains(got, "[clone .cold]") || strings.Count(got, "shop::inventory::Order::total_of_ev…") > 0 {
		t.Errorf("the search shows\n%s", got)
	}
}

// usdt: is the prefix of a spec, as on the command line.
func TestFindUsdt(t *testing.T) {
	_, f := marking(t)
	for query, want := range map[string]string{
		"usdt:": " 4 of 4 usdt probes ", "usdt:tw": " 1 of 4 usdt probes ", "usdt:demo:two": " 1 of 4 usdt probes ", "usdt:nothing": " 0 of 4 usdt probes ",
	} {
		if got := finding(t, f, 80, 24, query).text(); !strings.Contains(got, want) {
			t.Errorf("%s shows\n%s", query, got)
		}
	}
}

// Why something cannot be probed is told before anybody tries, and when he did, at
// every size.
func TestReasonIsReadableAtEverySize(t *testing.T) {
	_, f := marking(t)
	imported := f.Lookup("getc")
	if len(imported) == 0 {
		t.Skip("the C library has other names")
	}
	for _, size := range [][2]int{{60, 12}, {80, 24}, {100, 20}, {120, 40}} {
		s := finding(t, f, size[0], size[1], "getc")
		if got := s.text(); !strings.Contains(got, "▸ – getc") || !strings.Contains(got, "imported: its code is in libc.so.6") {
			t.Errorf("%v: before\n%s", size, got)
		}
		s.src.finding = probes.Check(probes.Request{Kind: probes.Entry, File: f, Function: imported[0]}, probes.Hazards{})
		s.press("tab")
		if got := s.text(); !strings.Contains(got, "▸ × getc") || !strings.Contains(got, "imported: its code is in libc.so.6") {
			t.Errorf("%v: after tab\n%s", size, got)
		}
		s.press("esc")
		if got := s.text(); strings.Count(got, "imported: its code") > 2 {
			t.Errorf("%v: the same is told more than twice:\n%s", size, got)
		}
	}
}

// The latency of what counts already is refused where it was asked for, and that it
// counts is not denied.
func TestRefusedLatencyOfACountedProbe(t *testing.T) {
	s, f := marking(t)
	s.press("/", "t", "w", "o", "tab")
	fn := s.src.placed[0].Function
	s.count(&probes.Probe{ID: 1, Kind: probes.USDT, File: f, Function: fn, Points: f.Points(fn)}, "")
	s.src.finding = probes.Check(probes.Request{Kind: probes.Return, File: f, Function: fn}, probes.Hazards{})
	s.press("ctrl+r")
	if got := s.text(); !strings.Contains(got, "─ cannot be timed: a usdt probe is a point in the code and has no return ─") {
		t.Errorf("ctrl-r says\n%s", got)
	}
	if got := s.text(); !strings.Contains(got, "counts only: a usdt probe is a point in the code and has no return") {
		t.Errorf("the details do not say it:\n%s", got)
	}
	s.press("enter")
	if got := s.text(); !strings.Contains(got, "× demo:two cannot be timed: a usdt") || strings.Contains(got, "cannot be placed") {
		t.Errorf("the banner says\n%s", got)
	}
}
