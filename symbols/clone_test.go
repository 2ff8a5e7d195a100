package symbols

import "testing"

// What compilers add to names makes a clone; what looks like it is none.
func TestCloneOf(t *testing.T) {
	f := &File{}
	for name, of := range map[string]string{
		"foo": "", "foo.part.0": "foo", "foo.cold": "foo", "foo.isra.0.cold": "foo", "foo.constprop.0": "foo", "foo.cold.1": "foo",
		"_ZN3foo3barEv.cold": "_ZN3foo3barEv", ".cold": "", "foo.llvm.1234": "", "foo.bar": "", "api.v2.part": "",
	} {
		if got := f.CloneOf(&Function{Symbol: Symbol{Name: name}}); got != of {
			t.Errorf("%s is a clone of %q, want %q", name, got, of)
		}
	}
	if of := (&File{Go: true}).CloneOf(&Function{Symbol: Symbol{Name: "main.cold"}}); of != "" {
		t.Errorf("Go's main.cold is a clone of %q", of)
	}
}

// What a list says of a clone is what the demangler makes of the raw name.
func TestListedCloneOf(t *testing.T) {
	f := named("foo.part.0", "_Z3bari.isra.0.cold", "_ZN1aC2ILi1EEEv.cold", "_RNvC1a4main.cold", "_RNv.cold", "_Zq.cold",
		"_ZN4core3ptr4drop17h0123456789abcdefE.cold", "plain", "_Z3barv")
	clones := 0
	for _, l := range f.List("") {
		want := ""
		if raw := f.CloneOf(l.Function); raw != "" {
			want = Symbol{Name: raw}.Demangled()
			clones++
		}
		if got := l.CloneOf(f); got != want {
			t.Errorf("%s is a clone of %q, want %q", l.Name, got, want)
		}
	}
	if clones != 7 {
		t.Errorf("%d clones, want 7", clones)
	}
}

// A name means the function and never a clone of it; a pattern can mean both.
func TestClonesAreNotFolded(t *testing.T) {
	f := named("foo", "foo.part.0", "foo.cold", "_Z3bari", "_Z3bari.cold")
	for text, want := range map[string]int{"foo": 1, "foo.cold": 1, "bar": 1, "bar(int)": 1, "_Z3bari": 1} {
		if n := len(f.Lookup(text)); n != want {
			t.Errorf("%s is %d functions, want %d", text, n, want)
		}
	}
	for pattern, want := range map[string]int{"foo*": 3, "?oo": 1, "ba?": 1, "bar*": 2, "*.cold*": 2} {
		if fns, _ := f.Glob(pattern); len(fns) != want {
			t.Errorf("%s matches %d functions, want %d", pattern, len(fns), want)
		}
	}
}
