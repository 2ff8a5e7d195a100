package cli

import (
	"slices"
	"strings"
	"testing"
)

// A list has what the compiler made of a function as rows of their own, and says so.
func TestListClones(t *testing.T) {
	path := target(t, "clones")
	r := run(t, "list", path, "s*")
	rows := functionColumn(r.out)
	if !strings.Contains(r.out, ".cold") || !strings.Contains(r.out, ".constprop") {
		t.Skip("this gcc makes no such clones")
	}
	has := func(text string) bool {
		return slices.ContainsFunc(rows, func(row string) bool { return strings.HasPrefix(row, text) })
	}
	if !slices.Contains(rows, "split") || !has("split.cold (clone of split made by the compiler; counts only: it is a piece") ||
		!has("scaled.constprop.0 (clone of scaled made by the compiler)") {
		t.Errorf("%s\n%s", r.out, r.errors)
	}
}
