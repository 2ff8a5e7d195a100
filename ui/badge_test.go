package ui

import (
	"strings"
	"testing"

	"uprobetop/symbols"
)

// That a target runs another file than the one on disk is told at every width.
func TestBadge(t *testing.T) {
	for _, c := range []struct {
		replaced string
		size     [2]int
		want     string
	}{
		{symbols.Overwritten, [2]int{120, 40}, "libc.so.6 replaced on disk"},
		{symbols.Deleted, [2]int{120, 40}, "libc.so.6 deleted from disk"},
		{symbols.Overwritten, [2]int{60, 12}, "1 old file "},
		{"", [2]int{120, 40}, ""},
	} {
		old := &symbols.File{Path: libc.Path, Functions: libc.Functions, Replaced: c.replaced}
		s := watching(t, c.size[0], c.size[1])
		s.target.Files = []*symbols.File{old, mysqld}
		header, _, _ := strings.Cut(s.text(), "\n")
		if !strings.Contains(header, c.want) || c.want == "" && strings.Contains(header, "disk") {
			t.Errorf("%q, %v: %q", c.replaced, c.size, header)
		}
	}
}
