package symbols

import (
	"cmp"
	"hash/maphash"
	"math/bits"
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
	if fns := f.lookupGo(name); len(fns) > 0 {
		return fns
	}
	return f.lookupDemangled(name)
}

// lookupRaw finds a raw name without version, by an index made at the first
// need: a pattern or a completion can ask for thousands.
func (f *File) lookupRaw(name string) []*Function {
	f.names.rawOnce.Do(func() { f.names.raw = newRawIndex(f.Functions) })
	var fns []*Function
	raw := &f.names.raw
	for at := *raw.head(name); at != 0; at = raw.names[at].next {
		e := raw.names[at]
		// The versions of one name at one address are one function.
		if fn := &f.Functions[e.fn]; e.symbol(fn).Name == name {
			fns = appendNew(fns, fn)
		}
	}
	if len(fns) > 1 {
		slices.SortStableFunc(fns, func(a, b *Function) int { return cmp.Compare(a.age(name), b.age(name)) })
	}
	return fns
}

// rawIndex finds raw names: all names with the same hash hang together, those of the
// first function first. A map of strings takes five times as long to make.
type rawIndex struct {
	seed  maphash.Seed
	heads []int32 // into names; as many as a power of two
	names []rawName
}

type rawName struct {
	fn    int32 // index into File.Functions
	alias int32 // index into its Aliases, or -1
	next  int32 // index of the next with its hash; 0 is none
}

func newRawIndex(fns []Function) rawIndex {
	n := len(fns)
	for i := range fns {
		n += len(fns[i].Aliases)
	}
	x := rawIndex{seed: maphash.MakeSeed(), heads: make([]int32, 1<<bits.Len(uint(n))), names: make([]rawName, 1, n+1)}
	for i := len(fns) - 1; i >= 0; i-- {
		for a := len(fns[i].Aliases) - 1; a >= -1; a-- {
			e := rawName{fn: int32(i), alias: int32(a)}
			head := x.head(e.symbol(&fns[i]).Name)
			e.next, *head = *head, int32(len(x.names))
			x.names = append(x.names, e)
		}
	}
	return x
}

// head is where those begin that have the hash of a name.
func (x *rawIndex) head(name string) *int32 {
	return &x.heads[maphash.String(x.seed, name)&uint64(len(x.heads)-1)]
}

func (e *rawName) symbol(fn *Function) *Symbol {
	if e.alias >= 0 {
		return &fn.Aliases[e.alias]
	}
	return &fn.Symbol
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

// OnlyOld tells that a function has a name in old versions alone: it is not what the
// name means when a program is linked today, if it means anything then.
func (f *Function) OnlyOld(name string) bool {
	found := false
	for _, s := range f.symbols() {
		if s.Name == name {
			if found = true; !s.old() {
				return false
			}
		}
	}
	return found
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
		case mangled(raw) && !strings.Contains(shown, "[clone ") && Printable(demangled(raw, demangle.NoParams)) == name:
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
		for _, b := range f.blocks() {
			for _, e := range b.entries {
				look(&f.Functions[e.fn], e.raw(f), b.name(e))
			}
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
func (e entry) raw(f *File) string {
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
