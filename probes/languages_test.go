package probes

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"uprobetop/bpf/bpftest"
	"uprobetop/symbols"
)

// Clones are functions of their own, counted apart from what they are made of. A
// return probe on a piece that is jumped to would change the program's data.
func TestKernelClones(t *testing.T) {
	target := bpftest.Build(t, "clones")
	f := open(t, target)
	if len(f.Lookup("split.cold")) == 0 || len(f.Lookup("scaled.constprop.0")) == 0 {
		t.Skip("this gcc makes no such clones")
	}
	said := truth(t, target)
	for _, kind := range []Kind{Entry, Return} {
		c := newCollectorHere(t, Config{})
		cold := request(t, f, Return, "split.cold")
		cold.Accepted = true
		if finding := c.Check(cold); finding.Verdict != Refuses || !strings.Contains(finding.Reason, "jumped to") {
			t.Fatalf("a return probe on split.cold: %+v", finding)
		}
		place(t, c, request(t, f, kind, "split"), request(t, f, Entry, "split.cold"), request(t, f, kind, "scaled.constprop.0"))
		again := truth(t, target)
		equal(t, "sum", again["sum"], said["sum"])
		s := finish(t, c)
		for i := range s.Probes {
			p := &s.Probes[i]
			equal(t, p.Function.Name, p.Hits, said[p.Function.Name])
			checkBooks(t, p)
		}
	}
}

// compiled builds a source of testdata with a compiler.
func compiled(t *testing.T, source, compiler string, flags ...string) string {
	t.Helper()
	return bpftest.CompileWith(t, "program", compiler, append(slices.Clone(flags), filepath.Join("testdata", source))...)
}

// What people type for functions of C++ and Rust is found, listed readably, and
// counted exactly: a program says how often it called what.
func TestKernelLanguages(t *testing.T) {
	for name, c := range map[string]struct {
		build func(t *testing.T) string
		names map[string]string // as listed, by what the program calls it; several with | between
	}{
		"C++": {func(t *testing.T) string { return compiled(t, "tills.cc", "g++", "-O1") }, map[string]string{
			"int": "shop::price(int)", "text": "shop::price(char const*)", "twice<int>": "int shop::twice<int>(int)",
			"twice<double>": "double shop::twice<double>(double)", "add": "shop::Basket::add(int)",
			"const": "shop::Basket::add(int) const", "call": "shop::Basket::operator()(int)", "new": "shop::Basket::Basket(int)",
		}},
		"Rust v0": {func(t *testing.T) string { return compiled(t, "tills.rs", "rustc", "-Csymbol-mangling-version=v0") }, map[string]string{
			"price": "tills::shop::price", "add": "<tills::shop::Basket>::add", "ring": "<tills::shop::Basket as tills::shop::Till>::ring",
			"twice": "tills::shop::twice::<u32>|tills::shop::twice::<u64>",
		}},
		"Rust legacy": {func(t *testing.T) string {
			return compiled(t, "tills.rs", "rustc", "-Zunstable-options", "-Csymbol-mangling-version=legacy")
		}, map[string]string{
			"price": "tills::shop::price", "add": "tills::shop::Basket::add", "ring": "<tills::shop::Basket as tills::shop::Till>::ring",
			"twice": "tills::shop::twice",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			target := c.build(t)
			f := open(t, target)
			var rs []Request
			said := map[string]string{}
			for short, names := range c.names {
				for listed := range strings.SplitSeq(names, "|") {
					fns := f.Lookup(listed)
					if len(fns) == 0 {
						t.Fatalf("%s is not found, but %v", listed, near(f, "shop"))
					}
					said[listed] = short
					for _, fn := range fns {
						if shown := fn.Demangled(); shown != listed {
							t.Errorf("%s is shown as %s", listed, shown)
						}
						rs = append(rs, Request{File: f, Function: fn})
					}
				}
			}
			if found := f.List("shop::"); len(found) < len(c.names) {
				t.Errorf("shop:: finds %d functions, want %d at least", len(found), len(c.names))
			}
			collector := newCollectorHere(t, Config{})
			place(t, collector, rs...)
			calls := truth(t, target)
			s := finish(t, collector)
			hits := map[string]uint64{}
			for i := range s.Probes {
				hits[said[s.Probes[i].Function.Demangled()]] += s.Probes[i].Hits
			}
			for short, n := range calls {
				equal(t, short, hits[short], n)
			}
			if len(calls) != len(c.names) {
				t.Errorf("the program tells of %d functions, want %d", len(calls), len(c.names))
			}
		})
	}
}

func near(f *symbols.File, part string) (names []string) {
	for _, fn := range f.List(part) {
		names = append(names, fn.Shown)
	}
	slices.Sort(names)
	return names
}
