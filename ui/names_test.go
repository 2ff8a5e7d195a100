package ui

import (
	"strings"
	"testing"
)

// A key turns the names into those of the symbol table and back, in the rows and while
// one looks for a function.
func TestRawNames(t *testing.T) {
	const shown, raw = "Item_func_memcmp::cmp_copy(Item*)", "_ZN16Item_func_memcmp8cmp_copyEP4Item"
	s := watching(t, 140, 40)
	row := s.rowFor(mysqld, mysqld.Lookup(raw)[0])
	has := func(name string, want bool) {
		t.Helper()
		if strings.Contains(s.text(), name) != want {
			t.Errorf("%s is on the screen: %v\n%s", name, !want, s.text())
		}
	}
	if row.name != shown {
		t.Fatalf("the row is called %s", row.name)
	}
	s.press("n")
	if row.name != raw {
		t.Errorf("the row is called %s", row.name)
	}
	s.press("/", "c", "m", "p", "_")
	has("○ "+raw, true)
	has("○ "+shown, false)
	s.press("ctrl+t")
	has("○ "+shown, true)
	s.press("esc", "n", "n")
	if row.name != shown {
		t.Errorf("the row is called %s", row.name)
	}
	if again := s.rowFor(libc, &libc.Functions[0]); again.name != "malloc" {
		t.Errorf("malloc is called %s", again.name)
	}
}
