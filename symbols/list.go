package symbols

import (
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"
)

// Listed is a function as a list shows it.
type Listed struct {
	*Function
	Shown string   // its best name, as Demangled gives it
	Other []string // those of its aliases that read differently, likewise
}

// Versioned is the name with its version, where the symbol has one:
// pthread_cond_signal@@GLIBC_2.3.2.
func (l *Listed) Versioned() string {
	if l.Default {
		return l.Shown + "@@" + Printable(l.Version)
	}
	return l.Shown
}

// Old says that a program that is linked today gets another function by the name.
func (l *Listed) Old() bool { return l.old() }

// List is the functions that a pattern means, or all of them if it is empty. A
// pattern with *, ? or [ is that of Glob, unless it is the whole name of a
// function, and means old versions, too; any other is a part of a name, of which
// the case of letters counts only if one is upper case, as in Search. It is held
// against every name of a function, demangled and as it stands in the table. The
// functions come in the order of their names, an exact name first, and of the
// versions of one the default first.
func (f *File) List(pattern string) []Listed {
	var bs []block
	var found []keyed
	if IsGlob(pattern) {
		d := demangling{f: f, spent: new(atomic.Int64)}
		for i, number := range f.chosen(pattern) {
			bs = append(bs, d.block(number, number+1))
			found = append(found, f.keyed(bs[i].entries, i, 0, false))
		}
	} else {
		bs = f.blocks()
		found = f.withPart(newPart(pattern), bs)
	}
	(&ordering{f, bs}).sort(found)
	list := make([]Listed, len(found))
	const each = 4096 // functions
	inParallel((len(list)+each-1)/each, func() func(i int) {
		return func(i int) {
			for j := i * each; j < min((i+1)*each, len(list)); j++ {
				list[j] = f.listed(bs, &found[j])
			}
		}
	})
	return list
}

// withPart is the functions of which a name has a part.
func (f *File) withPart(p part, bs []block) []keyed {
	parts := make([][]keyed, len(bs))
	inParallel(len(bs), func() func(i int) {
		return func(i int) {
			if p.text == "" {
				parts[i] = make([]keyed, 0, min(blockFunctions, len(bs[i].entries)))
			}
			for slot, es := range bs[i].byFunction() {
				if fits, exact := p.match(&f.Functions[es[0].fn], &bs[i], es); fits {
					parts[i] = append(parts[i], f.keyed(es, i, slot, exact))
				}
			}
		}
	})
	return slices.Concat(parts...)
}

// chosen is the functions, by number, that a pattern with signs means: those that
// have it as their name, or else those that it matches.
func (f *File) chosen(pattern string) (numbers []int) {
	fns := f.Lookup(pattern)
	if len(fns) == 0 {
		for _, m := range f.globbed(pattern) {
			fns = append(fns, m.Function)
		}
	}
	for _, fn := range fns {
		if i := f.index(fn); i >= 0 {
			numbers = append(numbers, i)
		}
	}
	return numbers
}

// index is the place of a function in f.Functions, or -1 if it is not of this file.
func (f *File) index(fn *Function) int {
	at, size := uintptr(unsafe.Pointer(fn)), unsafe.Sizeof(*fn)
	first := uintptr(unsafe.Pointer(unsafe.SliceData(f.Functions)))
	if i := int((at - first) / size); at >= first && i < len(f.Functions) {
		return i
	}
	return -1
}

// listed is a function with its names, which are in blocks.
func (f *File) listed(bs []block, k *keyed) Listed {
	b := &bs[k.block]
	l := Listed{Function: &f.Functions[k.fn], Shown: b.text[k.from:k.to]}
	if k.versioned {
		l.Shown = b.name(b.entries[k.slot])
	}
	if k.several {
		for _, e := range b.entries[k.slot+1:] {
			if e.fn != k.fn {
				break
			}
			l.Other = append(l.Other, b.name(e))
		}
	}
	return l
}

// part is a part of a name that a person typed, made ready.
type part struct {
	text  string
	lower bool // the case of letters does not count
}

func newPart(text string) part { return part{text: text, lower: lowerASCII(text) == text} }

// match looks at all names of a function; es are those that read differently.
func (p *part) match(fn *Function, b *block, es []entry) (fits, exact bool) {
	if p.text == "" {
		return true, false
	}
	try := func(name string, index func(name, text string) int) {
		exact = exact || name == p.text || strings.HasPrefix(name, p.text) && withoutParameters(name) == p.text
		fits = fits || exact || index(name, p.text) >= 0
	}
	for _, e := range es {
		if p.lower {
			try(b.name(e), indexFold)
		} else {
			try(b.name(e), strings.Index)
		}
	}
	for _, s := range fn.symbols() {
		try(s.Name, strings.Index)
		if s.Version != "" && strings.Contains(p.text, "@") {
			try(s.String(), strings.Index)
		}
	}
	return fits, exact
}

// byFunction is the names of each function that read differently, the best first,
// with the slot at which they begin.
func (b *block) byFunction() iter.Seq2[int, []entry] {
	return func(yield func(int, []entry) bool) {
		for from, to := 0, 0; from < len(b.entries); from = to {
			for to = from + 1; to < len(b.entries) && b.entries[to].fn == b.entries[from].fn; {
				to++
			}
			if !yield(from, b.entries[from:to]) {
				return
			}
		}
	}
}

func holds(name string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(name, p) {
			return false
		}
	}
	return true
}

// abbreviated are the scopes for which a mangled name may have a sign.
var abbreviated = map[string]bool{
	"std": true, "allocator": true, "string": true, "basic_string": true,
	"istream": true, "ostream": true, "iostream": true,
	"basic_istream": true, "basic_ostream": true, "basic_iostream": true,
}

// scopes are those of the scopes with which a demangled name begins that stand as
// they are in its mangled form: v8 and Isolate of v8::Isolate::New.
func scopes(name string) (ids []string) {
	for {
		id, rest, ok := strings.Cut(name, "::")
		if !ok || strings.ContainsFunc(id, func(r rune) bool { return r >= 0x80 || !identifier(byte(r)) }) {
			return ids
		}
		if id != "" && !abbreviated[id] {
			ids = append(ids, id)
		}
		name = rest
	}
}
