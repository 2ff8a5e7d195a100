package symbols

import (
	"maps"
	"slices"
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// Complete is names of functions that begin with prefix, each as Lookup takes it:
// without parameters unless the prefix goes into them, in order. If there are more
// than about limit, it is some, which begin alike no further than all do: a shell
// puts what its choices have in common on the line.
func (f *File) Complete(prefix string, limit int) []string {
	c := newCompletion(prefix, limit)
	for i := range f.Functions {
		for s := range f.Functions[i].symbols() {
			c.add(s.Name)
		}
		if c.full() {
			break
		}
	}
	return slices.Sorted(maps.Keys(c.seen))
}

// spelledAsIs says whether the begin of a last part stands in every mangled name
// of it. Operators, and what has an abbreviation, do not.
func spelledAsIs(begin string) bool {
	for i := range len(begin) {
		if !identifier(begin[i]) {
			return false
		}
	}
	for name := range abbreviated {
		if strings.HasPrefix(name, begin) {
			return false
		}
	}
	return !strings.HasPrefix("operator", begin) && !strings.HasPrefix(begin, "operator")
}

// completion collects names that begin with a prefix.
type completion struct {
	prefix  string
	spelled []string // what every mangled form that matches holds
	limit   int
	seen    map[string]bool
	common  string // what those seen begin with
}

func newCompletion(prefix string, limit int) *completion {
	c := &completion{prefix: prefix, spelled: scopes(prefix), limit: limit, seen: map[string]bool{}}
	if last := prefix[1+strings.LastIndexByte(prefix, ':'):]; spelledAsIs(last) {
		c.spelled = append(c.spelled, last)
	}
	return c
}

func (c *completion) full() bool { return len(c.seen) >= c.limit && len(c.common) <= len(c.prefix) }

func (c *completion) add(raw string) {
	name := raw
	if mangled(raw) && !mangled(c.prefix) {
		if !holds(raw, c.spelled) {
			return
		}
		name = demangled(raw, demangle.NoParams)
		if !strings.HasPrefix(name, c.prefix) && strings.Contains(c.prefix, "(") {
			name = demangled(raw)
		}
	}
	if !strings.HasPrefix(name, c.prefix) || Printable(name) != name {
		return
	}
	common := commonPrefix(name, c.common)
	if len(c.seen) == 0 {
		common = name
	}
	if len(c.seen) < c.limit || len(common) < len(c.common) {
		c.seen[name], c.common = true, common
	}
}

func commonPrefix(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return a[:n]
}
