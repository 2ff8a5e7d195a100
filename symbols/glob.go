package symbols

import (
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// IsGlob tells whether a text has a sign that makes it a pattern: * ? or [. A
// name can have them, too: look for that first.
func IsGlob(text string) bool { return strings.ContainsAny(text, "*?[") }

// Glob finds the functions that a pattern means, in order of address: * is any
// number of letters, ? one, [a-z] one of these, [!a-z] none of them. Any name of
// a function may match, as it stands in the symbol table, as the demangler prints
// it, or that without parameters and result. Functions that have the name only in
// an old version are counted apart, in old, unless the pattern has an @: then it
// is held against name@VERSION.
func (f *File) Glob(pattern string) (fns []*Function, old int) {
	for _, m := range f.globbed(pattern) {
		if m.old {
			old++
		} else {
			fns = append(fns, m.Function)
		}
	}
	return fns, old
}

// globbed is one function that a pattern matches.
type globbed struct {
	*Function
	old bool // by the name of an old version alone
}

// globbed finds all that a pattern matches, on every CPU.
func (f *File) globbed(pattern string) []globbed {
	g := newGlob(pattern)
	workers := min(runtime.GOMAXPROCS(0), 1+len(f.Functions)/1024)
	parts := make([][]globbed, workers)
	var wg sync.WaitGroup
	for w := range workers {
		part := f.Functions[len(f.Functions)*w/workers : len(f.Functions)*(w+1)/workers]
		wg.Go(func() {
			for i := range part {
				if found, old := g.function(&part[i]); found || old {
					parts[w] = append(parts[w], globbed{&part[i], !found})
				}
			}
		})
	}
	wg.Wait()
	return slices.Concat(parts...)
}

// glob is a pattern and what is known of it beforehand.
type glob struct {
	pattern  string
	versions bool   // it is about versions, too
	needs    string // stands in every mangled name that can match; may be empty
}

func newGlob(pattern string) *glob {
	return &glob{pattern: pattern, versions: strings.Contains(pattern, "@"), needs: wordOf(pattern)}
}

// function matches all names of a function, first those that cost little.
func (g *glob) function(fn *Function) (found, old bool) {
	for _, match := range []func(Symbol) bool{g.raw, g.demangled} {
		for _, s := range fn.symbols() {
			switch {
			case !match(s):
			case s.old() && !g.versions:
				old = true
			default:
				return true, false
			}
		}
	}
	return false, old
}

func (g *glob) raw(s Symbol) bool { return g.fits(s.Name, s) }

func (g *glob) demangled(s Symbol) bool {
	if !mangled(s.Name) || !strings.Contains(s.Name, g.needs) {
		return false
	}
	name := Printable(demangled(s.Name))
	if g.fits(name, s) {
		return true
	}
	bare := withoutParameters(name)
	return g.fits(bare, s) || g.fits(withoutResult(bare), s)
}

// fits holds one form of a symbol's name against the pattern.
func (g *glob) fits(name string, s Symbol) bool {
	if globMatch(g.pattern, name) {
		return true
	}
	return g.versions && s.Version != "" &&
		(globMatch(g.pattern, name+"@"+s.Version) || s.Default && globMatch(g.pattern, name+"@@"+s.Version))
}

// withoutParameters takes the last list in parentheses away, and what follows it.
func withoutParameters(name string) string {
	end := strings.LastIndexByte(name, ')')
	if end < 0 || strings.Contains(name[end:], "::") || strings.Contains(name[end:], "[clone ") {
		return name
	}
	depth := 0
	for i := end; i > 0; i-- {
		switch name[i] {
		case ')':
			depth++
		case '(':
			if depth--; depth == 0 {
				return name[:i]
			}
		}
	}
	return name
}

// withoutResult takes away the type that the demangler writes before the name of
// a template's function: void f<int>.
func withoutResult(name string) string {
	depth, from := 0, 0
	for i := 0; i < len(name); i++ {
		switch name[i] {
		case '<', '(', '{':
			depth++
		case '>', ')', '}':
			depth--
		case ' ':
			if depth == 0 && !strings.HasSuffix(name[:i], "operator") {
				from = i + 1
			}
		}
	}
	return name[from:]
}

// added are the words that the demangler writes without the mangled name having
// them: of abbreviations, types and descriptions.
const added = "std allocator basic_string string char_traits basic_istream basic_ostream basic_iostream " +
	"istream ostream iostream operator anonymous namespace unnamed lambda closure shim impl dyn " +
	"void wchar_t bool char signed unsigned short int long __int128 float double __float128 " +
	"char8_t char16_t char32_t decimal32 decimal64 decimal128 half bfloat16_t _BitInt _Float _Accum _Fract _Sat " +
	"nullptr_t nullptr true false auto decltype const volatile restrict noexcept throw transaction_safe " +
	"_Complex _Imaginary __vector sizeof alignof typeid new delete co_await enable_if requires typename template " +
	"class struct union enum friend this static_cast dynamic_cast const_cast reinterpret_cast default arg parm " +
	"vtable VTT typeinfo name for construction non-virtual thunk to covariant return guard variable reference " +
	"temporary TLS init initializer wrapper function transaction clone hidden alias global constructors " +
	"destructors keyed module parameter object block invocation in string literal java Class " +
	"usize isize u16 u32 u64 u128 i16 i32 i64 i128 f16 f32 f64 f128 str char never unsafe extern mut as fn ull abi binder allocated type operand subobject"

// wordOf is the longest piece of a pattern that every mangled name has whose
// demangled one can match: Isolate of *::Isolate::N*. It saves the demangling of all
// names without it, which for a large program takes a second. Empty if there is none.
func wordOf(pattern string) string {
	if end := strings.IndexAny(pattern, "[@"); end >= 0 {
		pattern = pattern[:end] // what follows may be a class, or a version
	}
	longest := ""
	notInWord := func(r rune) bool { return r >= utf8.RuneSelf || !identifier(byte(r)) }
	for _, word := range strings.FieldsFunc(pattern, notInWord) {
		if len(word) > 2 && len(word) > len(longest) && !digit(word[0]) && !strings.Contains(added, word) {
			longest = word
		}
	}
	return longest
}

// globMatch holds a name against a pattern. Of several * only the last is tried
// again, so that a hostile name takes no more than the product of both lengths.
func globMatch(pattern, name string) bool {
	star, again := -1, 0 // where to go on after a mismatch
	for p, n := 0, 0; n < len(name) || p < len(pattern); {
		if p < len(pattern) {
			if pattern[p] == '*' {
				star, again = p+1, n
				p++
				continue
			}
			if n < len(name) {
				if letters, signs := globOne(pattern[p:], name[n:]); letters > 0 {
					p, n = p+signs, n+letters
					continue
				}
			}
		}
		if star < 0 || again >= len(name) {
			return false
		}
		again++
		p, n = star, again
	}
	return true
}

// globOne matches the first sign of a pattern, which is no *, with the first
// letter of a name, and returns how many bytes each is long: 0, 0 if it does not.
func globOne(pattern, name string) (letters, signs int) {
	switch pattern[0] {
	case '?':
		_, letters = utf8.DecodeRuneInString(name)
		return letters, 1
	case '[':
		end := strings.IndexByte(pattern[1:], ']')
		if end == 0 || end == 1 && (pattern[1] == '!' || pattern[1] == '^') { // []a] and [!]a] hold a ]
			if next := strings.IndexByte(pattern[end+2:], ']'); next >= 0 {
				end += next + 1
			}
		}
		if end > 0 {
			r, n := utf8.DecodeRuneInString(name)
			if inClass(pattern[1:1+end], r) {
				return n, end + 2
			}
			return 0, 0
		}
	}
	if pattern[0] == name[0] {
		return 1, 1
	}
	return 0, 0
}

// inClass tells whether a class such as a-z_ or !0-9 has a letter.
func inClass(class string, r rune) bool {
	set := []rune(class)
	not := len(set) > 1 && (set[0] == '!' || set[0] == '^')
	if not {
		set = set[1:]
	}
	in := false
	for len(set) > 0 {
		from, to := set[0], set[0]
		set = set[1:]
		if len(set) > 1 && set[0] == '-' {
			to, set = set[1], set[2:]
		}
		in = in || from <= r && r <= to
	}
	return in != not
}
