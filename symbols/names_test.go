package symbols

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"malloc":                "malloc",
		"":                      "",
		"a b":                   "a b",
		"größe":                 "größe",
		"函数":                    "函数",
		"\uFFFD":                "\uFFFD",
		"\x1b[31mred":           `\x1b[31mred`,
		"a\nb\tc\x00\x7f":       `a\x0ab\x09c\x00\x7f`,
		"\u009b31m":             `\u009b31m`,
		"bad\xff\xc3":           `bad\xff\xc3`,
		"\u202Eexe.txt":         `\u202eexe.txt`,
		"zero\u200bwidth\ufeff": `zero\u200bwidth\ufeff`,
		"\U000e0001":            `\U000e0001`,
	} {
		if got := Printable(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

func TestDemangled(t *testing.T) {
	for raw, want := range map[string]string{
		"malloc":           "malloc",
		"_Z3addii":         "add(int, int)",
		"_ZN3foo3barEv":    "foo::bar()",
		"_ZN3foo3barEPKc":  "foo::bar(char const*)",
		"_ZN3foo3barC2Ev":  "foo::bar::bar()",
		"_Znotmangled":     "_Znotmangled",
		"_Z":               "_Z",
		"_ZN3foo3barEv\n":  `_ZN3foo3barEv\x0a`,
		"_Z4\x1b[2Jv":      `\x1b[2J()`,
		"main.(*T).Method": "main.(*T).Method",
		// Rust, the older and the newer form: without the hash.
		"_ZN4core3fmt5write17h0123456789abcdefE":               "core::fmt::write",
		"_ZN5alloc4sync12Arc$LT$T$GT$3new17hece24b43464058e6E": "alloc::sync::Arc<T>::new",
		"_RNvNtCslNYArtu3iFV_5alloc5boxed14box_new_uninit":     "alloc::boxed::box_new_uninit",
	} {
		f := Function{Symbol: Symbol{Name: raw}}
		if got := f.Demangled(); got != want {
			t.Errorf("%q reads %q, want %q", raw, got, want)
		}
	}
}

// named is a file that has functions of these names and no code.
func named(names ...string) *File {
	f := &File{Path: "named"}
	for i, n := range names {
		parts := strings.Split(n, "=")
		fn := Function{Symbol: Symbol{Name: parts[0]}, Addr: Addr(i)}
		for _, a := range parts[1:] {
			fn.Aliases = append(fn.Aliases, Symbol{Name: a})
		}
		f.Functions = append(f.Functions, fn)
	}
	return f
}

func TestLookup(t *testing.T) {
	f := named("_ZN3foo3barEi", "_ZN3foo3barEv", "foo::bar", "_Z3addii", "twin", "twin", "_ZN3foo3bazEv=_ZN3foo4quuxEv",
		"_ZN4core3fmt5write17h0123456789abcdefE", "_ZN4core3fmt5write17hfedcba9876543210E")
	for name, want := range map[string][]int{
		"_ZN3foo3barEi":    {0},
		"foo::bar(int)":    {0},
		"foo::bar()":       {1},
		"foo::bar":         {2}, // a raw name wins over demangled ones
		"add":              {3},
		"add(int, int)":    {3},
		"twin":             {4, 5},
		"foo::quux":        {6},
		"foo::baz":         {6},
		"core::fmt::write": {7, 8},
		"foo::ba":          nil,
		"bar":              nil,
		"ad":               nil,
		"":                 nil,
	} {
		var got []int
		for _, fn := range f.Lookup(name) {
			got = append(got, int(fn.Addr))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q names %v, want %v", name, got, want)
		}
	}
	old := &File{Functions: []Function{
		{Symbol: Symbol{Name: "_ZN3foo3barEv", Version: "V1"}},
		{Symbol: Symbol{Name: "_ZN3foo3barEv", Version: "V2", Default: true}, Addr: 1},
	}}
	if fns := old.Lookup("foo::bar"); len(fns) != 2 || fns[0].Version != "V2" {
		t.Errorf("the default is not first: %v", fns)
	}
	if fn := one(t, old, "foo::bar()@V1"); fn.Version != "V1" {
		t.Errorf("got %v", fn)
	}
	if fn := one(t, old, "foo::bar()"); fn.Version != "V2" {
		t.Errorf("got %v", fn)
	}
}

func TestNearest(t *testing.T) {
	f := named("malloc", "calloc", "free", "pthread_cond_signal", "pthread_mutex_lock", "_ZN4shop6Basket7addItemEi", "memcpy", "a", "\x1bfree")
	for name, want := range map[string]string{
		"maloc":        "malloc",
		"mlaloc":       "malloc",
		"MALLOC":       "malloc",
		"fre":          "free",
		"cond_signal":  "pthread_cond_signal",
		"additm":       "shop::Basket::addItem(int)",
		"memcpyy":      "memcpy",
		"zzzzzzzzzzzz": "",
		"":             "",
		"b":            "",
		"fx":           "",
	} {
		first := ""
		if got := f.Nearest(name, 3); len(got) > 0 {
			first = got[0]
		}
		if first != want {
			t.Errorf("nearest to %q is %q, want %q", name, first, want)
		}
	}
	if got := f.Nearest("malloc", 2); !slices.Equal(got, []string{"malloc", "calloc"}) {
		t.Errorf("got %q", got)
	}
	if got := f.Nearest("malloc", 0); got != nil {
		t.Errorf("got %q", got)
	}
}

func TestDistance(t *testing.T) {
	var d distance
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "abc", 0}, {"abc", "", 3}, {"abc", "acb", 1}, {"abc", "abd", 1}, {"abc", "xabc", 1}, {"kitten", "sitting", 3}, {"abcdefghij", "", 9}} {
		if got := d.between(c.a, c.b, 8); got != c.want {
			t.Errorf("%q to %q is %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

// marked writes a match with its spans in brackets.
func marked(m Match) string {
	s, end := "", 0
	for _, span := range m.Spans {
		s += m.Name[end:span[0]] + "[" + m.Name[span[0]:span[1]] + "]"
		end = span[1]
	}
	return s + m.Name[end:]
}

func TestSearch(t *testing.T) {
	f := named("malloc", "malloc_trim", "__libc_malloc", "xmalloc", "emallocate", "malloc_usable_size",
		"_ZN4shop6Basket7addItemEi", "_ZN4shop5priceEi", "SSL_read", "ssl_read_internal", "free=cfree", "größe_x", "_Z6mallocv")
	for _, c := range []struct {
		query string
		limit int
		want  []string
		total int
	}{
		{"malloc", 3, []string{"[malloc]", "[malloc]()", "[malloc]_trim"}, 7},
		{"malloc", 99, []string{"[malloc]", "[malloc]()", "[malloc]_trim", "[malloc]_usable_size", "__libc_[malloc]", "x[malloc]", "e[malloc]ate"}, 7},
		{"MALLOC", 9, nil, 0},
		{"ssl_read", 9, []string{"[SSL_read]", "[ssl_read]_internal"}, 2},
		{"SSL", 9, []string{"[SSL]_read"}, 1},
		{"item", 9, []string{"shop::Basket::add[Item](int)"}, 1},
		{"shop int", 9, []string{"[shop]::price([int])", "[shop]::Basket::addItem([int])"}, 2},
		{"int shop", 1, []string{"[shop]::price([int])"}, 2},
		{"shop price zzz", 9, nil, 0},
		{"cfree", 9, []string{"[cfree]"}, 1},
		{"free", 9, []string{"[free]"}, 1},
		{"mall allo", 1, []string{"[mallo]c"}, 7},
		{"größe", 9, []string{"[größe]_x"}, 1},
		{"  free ", 9, []string{"[free]"}, 1},
		{"", 2, []string{"free", "malloc"}, 13},
		{"malloc", 0, nil, 7},
		{"malloc", -1, nil, 7},
	} {
		ms, total := Search([]*File{f}, c.query, c.limit)
		var got []string
		for _, m := range ms {
			got = append(got, marked(m))
			if m.File != f || m.Function == nil {
				t.Errorf("%q: a match without its function", c.query)
			}
		}
		if total != c.total || !slices.Equal(got, c.want) {
			t.Errorf("%q gives %d: %q\nwant %d: %q", c.query, total, got, c.total, c.want)
		}
	}
}

// TestSearchKeepsTheBest compares the best of many, kept in little room, with
// the beginning of all of them.
func TestSearchKeepsTheBest(t *testing.T) {
	var names []string
	for i := range 5000 {
		names = append(names, fmt.Sprintf("%sab%d", strings.Repeat("x", i*7919%23), i*7919%5000))
	}
	a, b := named(names[:2500]...), named(names[2500:]...)
	all, n := Search([]*File{a, b}, "ab", 10_000)
	if n != 5000 || len(all) != 5000 {
		t.Fatalf("%d of %d", len(all), n)
	}
	some, n := Search([]*File{a, b}, "ab", 50)
	if n != 5000 || len(some) != 50 {
		t.Fatalf("%d of %d", len(some), n)
	}
	for i := range some {
		if some[i].Function != all[i].Function {
			t.Fatalf("number %d is %s, want %s", i, some[i].Name, all[i].Name)
		}
	}
}

// TestNamesTogether makes the caches from many goroutines: the race detector
// looks on.
func TestNamesTogether(t *testing.T) {
	var names []string
	for i := range 5000 {
		names = append(names, fmt.Sprintf("_ZN3foo%dbar%dEi", len(fmt.Sprint(i))+3, i))
	}
	f := named(names...)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, n := Search([]*File{f}, "foo bar", 10); n != 5000 {
				t.Errorf("%d found", n)
			}
			if fns := f.Lookup("foo::bar77(int)"); len(fns) != 1 {
				t.Errorf("%d found", len(fns))
			}
			f.Nearest("bar12x", 2)
		})
	}
	wg.Wait()
}

func TestCPlusPlus(t *testing.T) {
	f := mustOpen(t, build(t, "g++", "shop.cc"))
	if fns := f.Lookup("shop::price"); len(fns) != 2 {
		t.Errorf("shop::price is found %d times, want both overloads", len(fns))
	}
	for _, name := range []string{"shop::price(int)", "shop::Basket::addItem", "shop::Basket::operator()", "int shop::twice<int>(int)", "main"} {
		one(t, f, name)
	}
	ms, _ := Search([]*File{f}, "price", 2)
	if len(ms) != 2 || marked(ms[0]) != "shop::[price](int)" {
		t.Errorf("got %v", ms)
	}
}

func TestRust(t *testing.T) {
	if _, err := exec.LookPath("rustc"); err != nil {
		t.Skip("no rustc here")
	}
	dir := t.TempDir()
	run(t, "rustc", "-O", "--crate-name", "market", "-o", dir+"/it", "testdata/shop.rs")
	f := mustOpen(t, dir+"/it")
	if !f.Unwinds {
		t.Error("a Rust program can panic")
	}
	if fn := one(t, f, "market::shop::price"); fn.Demangled() != "market::shop::price" {
		t.Errorf("got %s", fn.Demangled())
	}
}

func FuzzPrintable(f *testing.F) {
	f.Add("\x1b]0;x\x07")
	f.Add("_Z4\x1b[2Jv")
	f.Fuzz(func(t *testing.T, s string) {
		fn := Function{Symbol: Symbol{Name: s, Version: s}}
		for _, got := range []string{Printable(s), fn.Demangled(), fn.String()} {
			if got != Printable(got) || !utf8.ValidString(got) {
				t.Errorf("%q becomes %q", s, got)
			}
		}
	})
}

func TestNearestOfAny(t *testing.T) {
	among := []string{"web", "db", "web-debug", "", "Web2"}
	if got := Nearest("wbe", among, 3); !slices.Equal(got, []string{"web"}) {
		t.Errorf("%q", got)
	}
	if got := Nearest("web", among, 2); !slices.Equal(got, []string{"web", "Web2"}) {
		t.Errorf("%q", got)
	}
	if got := Nearest("", among, 2); got != nil {
		t.Errorf("%q", got)
	}
}

// A name that one table has with its version and another without is one name.
func TestSetNames(t *testing.T) {
	v := func(name string) symbol { return symbol{Symbol: Symbol{Name: name, Version: "V1", Default: true}} }
	bare := func(name string) symbol { return symbol{Symbol: Symbol{Name: name}, rank: notDynamic} }
	var fn Function
	fn.setNames([]symbol{bare("a"), v("b"), v("a"), bare("c"), bare("b")})
	if got := fmt.Sprint(fn.Symbol, fn.Aliases); got != "a@@V1 [b@@V1 c]" {
		t.Error(got)
	}
}
