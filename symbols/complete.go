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
		for _, s := range f.Functions[i].symbols() {
			c.add(s.Name)
		}
		if c.full() {
			break
		}
	}
	return slices.Sorted(maps.Keys(c.seen))
}

// written is how the demangled form of a raw name begins, as far as that can be
// read from it as it stands: v8::Isolate::New of _ZN2v87Isolate3NewEv, add of
// _Z3addii. It is empty where that begins with a sign.
func written(raw string) string {
	rest, nested := strings.CutPrefix(raw, "_ZN")
	if nested {
		rest = strings.TrimLeft(rest, "KV") // const, volatile
	} else {
		rest = strings.TrimPrefix(rest, "_Z")
	}
	var path []byte
	if after, ok := strings.CutPrefix(rest, "St"); ok {
		path, rest = []byte("std"), after
	}
	for {
		n, digits := 0, 0
		for digits < min(len(rest), 5) && digit(rest[digits]) {
			n = n*10 + int(rest[digits]-'0')
			digits++
		}
		if n == 0 || digits+n > len(rest) {
			return string(path)
		}
		id := rest[digits : digits+n]
		rest = rest[digits+n:]
		if strings.HasPrefix(id, "_GLOBAL_") || strings.ContainsAny(id, "$.") {
			return string(path)
		}
		if path != nil {
			path = append(path, "::"...)
		}
		if path = append(path, id...); !nested {
			return string(path) // what follows is parameters
		}
	}
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
	return &completion{prefix: prefix, spelled: scopes(prefix), limit: limit, seen: map[string]bool{}}
}

func (c *completion) full() bool { return len(c.seen) >= c.limit && len(c.common) <= len(c.prefix) }

func (c *completion) add(raw string) {
	name := raw
	if mangled(raw) && !mangled(c.prefix) {
		begin := written(raw)
		if !strings.HasPrefix(begin, c.prefix) && !strings.HasPrefix(c.prefix, begin) || !holds(raw, c.spelled) {
			return
		}
		if strings.Contains(raw, ".") && strings.Contains(demangled(raw), " [clone ") {
			return // without the clone's mark the name is another function's, or nobody's
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
