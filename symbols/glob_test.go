package symbols

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestGlobMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"*", "", true},
		{"*", "malloc", true},
		{"", "", true},
		{"", "a", false},
		{"malloc", "malloc", true},
		{"mal*", "malloc", true},
		{"*loc", "malloc", true},
		{"*a*o*", "malloc", true},
		{"*a*x*", "malloc", false},
		{"m?lloc", "malloc", true},
		{"malloc?", "malloc", false},
		{"größ?", "größe", true},
		{"gr??e", "größe", true},
		{"*?", "", false},
		{"[mc]alloc", "calloc", true},
		{"[!m]alloc", "calloc", true},
		{"[^m]alloc", "malloc", false},
		{"[a-m]alloc", "malloc", true},
		{"[a-l]alloc", "malloc", false},
		{"[]x]", "]", true},
		{"[!]x]", "]", false},
		{"[a-]", "-", true},
		{"operator[[]]", "operator[]", true},
		{"main.*.Serve", "main.(*Server).Serve", true},
		{"*/http.*", "net/http.Serve", true},
		{"*\x1b*", "a\x1bb", true},
		{"[z-a]", "m", false},
		{"operator[]*", "operator[](int)", true}, // no class: nothing is in it
		{"a[b", "a[b", true},
		{"**********b", strings.Repeat("a", 1000), false},
		{"*a*a*a*a*a*a*a*a*a*b", strings.Repeat("a", maxName), false},
	} {
		if got := globMatch(c.pattern, c.name); got != c.want {
			t.Errorf("%q and %.40q: %v", c.pattern, c.name, got)
		}
	}
}

func FuzzGlobMatch(f *testing.F) {
	f.Add("m*[a-c]?", "malloc")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if !globMatch(pattern+"*", name) && globMatch(pattern, name) {
			t.Errorf("%q matches %q, and followed by * it does not", pattern, name)
		}
	})
}

func TestGlob(t *testing.T) {
	f := named("malloc", "calloc=__libc_calloc", "free", "_ZN3foo3barEv", "_ZN3foo3bazEi", "_ZNK3foo5callsclEi",
		"_Z3addIiEvT_", "_ZN2v87Isolate3NewEv", "main.(*T).Method", "operator*")
	f.Functions = append(f.Functions,
		Function{Symbol: Symbol{Name: "wait", Version: "V1"}, Addr: 100},
		Function{Symbol: Symbol{Name: "wait", Version: "V2", Default: true}, Addr: 101},
		Function{Symbol: Symbol{Name: "wait", Version: "V1"}, Addr: 102, Aliases: []Symbol{{Name: "waits"}}},
	)
	for pattern, want := range map[string]string{
		"*alloc":         "malloc calloc",
		"__libc_*":       "calloc",
		"?alloc":         "malloc calloc",
		"foo::*":         "_ZN3foo3barEv _ZN3foo3bazEi _ZNK3foo5callsclEi",
		"foo::ba?":       "_ZN3foo3barEv _ZN3foo3bazEi", // without the parameters
		"foo::ba?()":     "_ZN3foo3barEv",
		"*::operator()":  "_ZNK3foo5callsclEi",
		"add<*>":         "_Z3addIiEvT_", // without the result
		"void add<*":     "_Z3addIiEvT_",
		"v8::Isolate::*": "_ZN2v87Isolate3NewEv",
		"*solate::*":     "_ZN2v87Isolate3NewEv",
		"_ZN3foo*":       "_ZN3foo3barEv _ZN3foo3bazEi",
		"wait*":          "wait wait",
		"wait@*":         "wait wait wait",
		"wait@V1":        "wait wait",
		"wait@@*":        "wait",
		"nothing*":       "",
	} {
		fns, _ := f.Glob(pattern)
		var got []string
		for _, fn := range fns {
			got = append(got, fn.Name)
		}
		if !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s is %q, want %q", pattern, got, want)
		}
	}
	for pattern, want := range map[string]int{"wai?": 2, "wait*": 1, "wait@*": 0, "*": 1} {
		if _, old := f.Glob(pattern); old != want {
			t.Errorf("%s leaves out %d old ones, want %d", pattern, old, want)
		}
	}
}

// The word by which the names of a pattern are looked through stands in the
// mangled form of each that matches, for whatever large programs are here.
func TestWordOf(t *testing.T) {
	for pattern, want := range map[string]string{
		"v8::Isolate::*": "Isolate", "*": "", "std::allocator<*": "", "*tor*": "", "pthread_cond_*": "pthread_cond_",
		"a::b[cdefg]hijk": "", "int*": "", "größe": "", "*größer": "", "x1::*": "", "operator new*": "",
	} {
		if got := wordOf(pattern); got != want {
			t.Errorf("%q: %q, want %q", pattern, got, want)
		}
	}
	paths := []string{"/usr/bin/node", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/proc/self/exe"}
	t.Run("rust", func(t *testing.T) {
		out := filepath.Join(t.TempDir(), "shop")
		run(t, "rustc", "-Csymbol-mangling-version=v0", "-o", out, "testdata/shop.rs")
		checkWords(t, out)
	})
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil {
			checkWords(t, path)
		}
	}
}

func checkWords(t *testing.T, path string) {
	t.Helper()
	f := mustOpen(t, path)
	for i := range f.Functions {
		s := f.Functions[i].Symbol
		if !mangled(s.Name) {
			continue
		}
		words := strings.FieldsFunc(demangled(s.Name), func(r rune) bool { return r >= 0x80 || !identifier(byte(r)) })
		for _, word := range words {
			if wordOf(word) != "" && !strings.Contains(s.Name, word) {
				t.Errorf("%s: %q does not hold %q of %q", path, s.Name, word, s.demangled())
			}
		}
	}
}

func BenchmarkGlob(b *testing.B) {
	f := mustOpen(b, large(b))
	for _, pattern := range []string{"*", "v8::Isolate::*", "*Isolate*", "?????"} {
		b.Run("pattern="+pattern, func(b *testing.B) {
			for b.Loop() {
				fns, _ := f.Glob(pattern)
				b.ReportMetric(float64(len(fns)), "functions")
			}
		})
	}
}
