package symbols

import (
	"os"
	"strings"
	"testing"
)

// The identifiers by which a demangled name is looked up stand in its mangled
// form, for every name of whatever large programs are here.
func TestSpelled(t *testing.T) {
	for name, want := range map[string]string{
		"work(int)":                     "work",
		"node::fs::Open":                "Open",
		"a::b<c::d>::e<f>(g::h)":        "e",
		"core::fmt::Formatter::pad":     "pad",
		"Foo::Foo(int)":                 "",
		"std::vector<int>::~vector()":   "",
		"Foo::operator()(int) const":    "",
		"operator new(unsigned long)":   "",
		"a::{lambda()#1}::operator()()": "",
		"main::main::{{closure}}":       "",
	} {
		if got := spelled(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	for _, path := range []string{"/usr/bin/node", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/proc/self/exe"} {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := range f.Functions {
			s := f.Functions[i].Symbol
			shown := s.demangled()
			if id := spelled(shown); mangled(s.Name) && id != "" && !strings.Contains(s.Name, id) {
				t.Errorf("%s: %q does not hold %q of %q", path, s.Name, id, shown)
			}
			if ids := scopes(shown); mangled(s.Name) && !holds(s.Name, ids) {
				t.Errorf("%s: %q does not hold all of %q of %q", path, s.Name, ids, shown)
			}
		}
		f.Close()
	}
}
