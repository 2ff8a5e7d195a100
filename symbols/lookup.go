package symbols

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ianlancetaylor/demangle"
)

// Lookup finds the functions that have exactly this name. It tries, and stops
// at the first that finds any: the name as it stands in a symbol table, alone
// or as name@VERSION or name@@VERSION; the name as the demangler prints it; and
// that without the parameters. A name without a version means the default one. It
// may have several functions: static ones of different source files, overloads.
func (f *File) Lookup(name string) []*Function {
	if name == "" {
		return nil
	}
	if fns := f.lookupRaw(name); len(fns) > 0 {
		return newest(fns, name)
	}
	if base, version, ok := strings.Cut(name, "@"); ok {
		must, isDefault := strings.CutPrefix(version, "@")
		fns := f.having(base, func(s Symbol) bool {
			return s.Name == base && s.Version == must && (s.Default || !isDefault) && must != ""
		})
		if len(fns) > 0 {
			return fns
		}
	}
	return f.lookupDemangled(name)
}

// lookupRaw finds a raw name without version, by an index made at the first
// need: a pattern or a completion can ask for thousands.
func (f *File) lookupRaw(name string) []*Function {
	f.names.rawOnce.Do(func() {
		f.names.raw = make(map[string][]int32, len(f.Functions))
		for i := range f.Functions {
			fn := &f.Functions[i]
			f.names.raw[fn.Name] = append(f.names.raw[fn.Name], int32(i))
			for _, a := range fn.Aliases {
				is := f.names.raw[a.Name]
				// The versions of one name at one address are one function.
				if len(is) == 0 || is[len(is)-1] != int32(i) {
					f.names.raw[a.Name] = append(is, int32(i))
				}
			}
		}
	})
	var fns []*Function
	for _, i := range f.names.raw[name] {
		fns = append(fns, &f.Functions[i])
	}
	slices.SortStableFunc(fns, func(a, b *Function) int { return cmp.Compare(a.age(name), b.age(name)) })
	return fns
}

// newest leaves out what name meant only for programs linked long ago, unless it
// means nothing else. They are sorted by age.
func newest(fns []*Function, name string) []*Function {
	least := fns[0].age(name)
	end := slices.IndexFunc(fns, func(f *Function) bool { return f.age(name) > least })
	if end < 0 {
		return fns
	}
	return fns[:end]
}

// age is 0 for the function that name means when a program is linked today, 1
// for one without versions, 2 for an older version.
func (f *Function) age(name string) int {
	age := 2
	each := func(s Symbol) {
		switch {
		case s.Name != name:
		case s.Default:
			age = 0
		case s.Version == "":
			age = min(age, 1)
		}
	}
	each(f.Symbol)
	for _, a := range f.Aliases {
		each(a)
	}
	return age
}

// having is those of the functions called base that have a symbol as wanted.
func (f *File) having(base string, want func(Symbol) bool) []*Function {
	var fns []*Function
	for _, fn := range f.lookupRaw(base) {
		if want(fn.Symbol) || slices.ContainsFunc(fn.Aliases, want) {
			fns = append(fns, fn)
		}
	}
	return fns
}

// lookupDemangled finds a name as the demangler prints it. Demangling all names
// of a large program takes a second; most names hold an identifier that must
// stand in the mangled form as it is, and then only those that have it are
// looked at.
func (f *File) lookupDemangled(name string) []*Function {
	var whole, bare []*Function
	look := func(fn *Function, raw, shown string) {
		switch {
		case !strings.Contains(shown, name):
		case shown == name:
			whole = appendNew(whole, fn)
		// Only the few that contain the name are demangled once more.
		case mangled(raw) && Printable(demangled(raw, demangle.NoParams)) == name:
			bare = appendNew(bare, fn)
		}
	}
	if !strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf || identifier(byte(r)) }) {
		return nil // a pattern of signs alone
	}
	if id := cmp.Or(spelled(name), wordOf(name)); id != "" {
		for i := range f.Functions {
			fn := &f.Functions[i]
			for _, s := range fn.symbols() {
				if strings.Contains(s.Name, id) {
					look(fn, s.Name, s.demangled())
				}
			}
		}
	} else {
		es := f.entries()
		for i := range es {
			look(&f.Functions[es[i].fn], es[i].raw(f), es[i].name)
		}
	}
	if len(whole) > 0 {
		return whole
	}
	slices.SortStableFunc(bare, func(a, b *Function) int { return cmp.Compare(a.age(a.Name), b.age(b.Name)) })
	return bare
}

// spelled is the identifier that every mangled form of a demangled name holds
// as it is: the function's own, ::bar( of Foo::bar(int). It is empty where there
// may be none: operators, lambdas, and constructors, whose class can be
// abbreviated.
func spelled(name string) string {
	last := leaf(name)
	end := 0
	for end < len(last) && identifier(last[end]) {
		end++
	}
	id, rest := last[:end], last[end:]
	if id == "" || digit(id[0]) || strings.HasPrefix(id, "operator") || rest != "" && rest[0] != '<' && rest[0] != '[' {
		return ""
	}
	before := strings.TrimSuffix(name[:strings.LastIndex(name, last)], "::")
	if class, _, _ := strings.Cut(leaf(before), "<"); class == id {
		return ""
	}
	return id
}

func identifier(c byte) bool {
	return c == '_' || digit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// raw is the name as it stands in the symbol table.
func (e *entry) raw(f *File) string {
	if e.alias >= 0 {
		return f.Functions[e.fn].Aliases[e.alias].Name
	}
	return f.Functions[e.fn].Name
}

// appendNew appends fn unless it is the last: the names of one function stand
// side by side.
func appendNew(fns []*Function, fn *Function) []*Function {
	if n := len(fns); n > 0 && fns[n-1] == fn {
		return fns
	}
	return append(fns, fn)
}

// Nearest is up to n names of functions that someone who typed name may have
// meant, the nearest first: few letters apart from it, or containing it.
func (f *File) Nearest(name string, n int) []string {
	const longest = 128 // bytes that are compared
	want := lowerASCII(strings.TrimSpace(name))
	want = want[:min(len(want), longest)]
	if want == "" || n <= 0 {
		return nil
	}
	type near struct {
		name string
		far  int
	}
	far := max(1, min((len(want)+1)/3, 8)) // edits that are still near
	var d distance
	var found []near
	seen := make(map[string]bool)
	es := f.entries()
	for i := range es {
		e := &es[i]
		score := -1
		for _, part := range []string{e.lower, leaf(e.lower)} {
			if edits := d.between(want, part, far); edits <= far && (score < 0 || 4*edits < score) {
				score = 4 * edits
			}
		}
		if score < 0 && len(want) > 2 && strings.Contains(e.lower, want) {
			score = 5 + min(len(e.name)-len(want), 1000)/4
		}
		if score >= 0 && !seen[e.name] {
			seen[e.name] = true
			found = append(found, near{e.name, score})
		}
	}
	slices.SortFunc(found, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.far, b.far), cmp.Compare(len(a.name), len(b.name)), strings.Compare(a.name, b.name))
	})
	var names []string
	for _, f := range found[:min(n, len(found))] {
		names = append(names, f.name)
	}
	return names
}

// leaf is the last part of a demangled name, without the parameters: what
// people type of a::b<c>::d(e).
func leaf(name string) string {
	from, end := lastPart(name)
	return name[from:end]
}

// lastPart is where the leaf of a name begins and ends.
func lastPart(name string) (from, end int) {
	depth := 0
	for i := 0; i < len(name); i++ {
		switch name[i] {
		case '<':
			depth++
		case '>':
			depth--
		case ':':
			if depth == 0 {
				from = i + 1
			}
		case '(':
			if depth == 0 && i > from {
				return from, i
			}
		}
	}
	return from, len(name)
}

// distance computes edit distances, with one row that is used again.
type distance struct{ row []int }

// between is the number of bytes to insert, take away, change or swap with the
// next to make b of a; or more than far, if it is more.
func (d *distance) between(a, b string, far int) int {
	if len(a)-len(b) > far || len(b)-len(a) > far {
		return far + 1
	}
	n := len(b) + 1
	if cap(d.row) < 3*n {
		d.row = make([]int, 3*n)
	}
	above2, above, row := d.row[:n], d.row[n:2*n], d.row[2*n:3*n]
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		least := i
		for j := 1; j < n; j++ {
			change := above[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, above[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], above2[j-2]+1)
			}
			least = min(least, row[j])
		}
		if least > far {
			return far + 1
		}
		above2, above, row = above, row, above2
	}
	return above[len(b)]
}
