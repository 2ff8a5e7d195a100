package ui

import (
	"strings"
	"testing"

	"uprobetop/symbols"
)

// findIn types into the finder of a target with one file.
func findIn(t *testing.T, path, query string) string {
	t.Helper()
	f, err := symbols.Open(path)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { f.Close() })
	s := newScreen(t, 120, 40, &fakeSource{snap: snapshotAt(1, 4, nil)}, Options{})
	s.target.Files = []*symbols.File{f}
	s.press("/")
	for _, r := range query {
		s.press(string(r))
	}
	return s.text()
}

// The finder says why something cannot be probed, what a hit costs, and that what a
// person looks for may be in no file.
func TestFinderSaysWhy(t *testing.T) {
	if got := findIn(t, "/usr/bin/perl", "perl_run"); !strings.Contains(got, "the first instruction is ") {
		t.Errorf("of a function:\n%s", got)
	}
	if got := findIn(t, "/bin/sh", "malloc"); !strings.Contains(got, "imported: its code is in ") || strings.Contains(got, "offset 0x0") {
		t.Errorf("of an import:\n%s", got)
	}
	got := findIn(t, "/usr/bin/perl", "no_such_sub")
	if !strings.Contains(got, "your own Perl functions are interpreted at run time") || !strings.Contains(got, "no function of the target has this in its name") {
		t.Errorf("of nothing:\n%s", got)
	}
}
