package ui

import (
	"strings"
	"testing"

	"uprobetop/symbols"
	"uprobetop/ui/chart"
)

// What the compiler made of a function stays told, and raw names lose their middle.
func TestShortenKeepsTheEnd(t *testing.T) {
	for _, tt := range []struct {
		name string
		w    int
		want string
	}{
		{"inventory::Order::slow(int) [clone .isra.0]", 24, "Order::slow.isra.0"},
		{"inventory::Order::slow(int) [clone .isra.0] [clone .cold]", 24, "Order::slow.isra.0.cold"},
		{"inventory::Order::slow(int) [clone .isra.0]", 10, "slow.isr…"},
		{"_ZN4shop9inventory5Order3addEi", 15, "_ZN4sho…r3addEi"},
		{"_RNvCs123_4shop3add", 8, "_RNv…add"},
		{"(anonymous namespace)::inventory::run(int)", 15, "inventory::run"},
	} {
		got := shorten(tt.name, tt.w, '…')
		if got != tt.want || chart.Width(got) > tt.w {
			t.Errorf("%s in %d cells: %q, want %q", tt.name, tt.w, got, tt.want)
		}
	}
}

// alike are functions whose names are the same once they are cut: overloads, a clone,
// templates, namespaces, and two that have one name.
var alike = []string{
	"_ZN4shop9inventory5Order3addEi",
	"_ZN4shop9inventory5Order3addERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
	"_ZN4shop9inventory5Order19total_of_everythingEi",
	"_ZN4shop9inventory5Order19total_of_everythingEi.cold",
	"_ZN4shop9inventory5Order19total_of_everythingEi.isra.0.cold",
	"_ZN4shop9inventory5ShelfIiE6insertEv",
	"_ZN4shop9inventory5ShelfIlE6insertEv",
	"_ZN4shop9inventory5OrderC1Ev",
	"_ZN4shop9inventory5OrderC2Ev",
	"_ZN4shop3oneL12very_long_nameEv",
	"_ZN4shop3twoL12very_long_nameEv",
	"init",
}

// No two rows of a table read alike, at any size, with either kind of names.
func TestRowsAreToldApart(t *testing.T) {
	a := &symbols.File{Path: "/usr/bin/shop", Dev: 1, Ino: 21, Functions: functions(alike...)}
	b := &symbols.File{Path: "/usr/lib/libshop.so", Dev: 1, Ino: 22, Functions: functions("init")}
	s := newScreen(t, 120, 40, &fakeSource{snap: snapshotAt(1, 2, nil)}, Options{})
	for _, f := range []*symbols.File{a, b} {
		for i := range f.Functions {
			s.rowFor(f, &f.Functions[i])
		}
	}
	for range 2 {
		for w := 18; w < 60; w++ {
			seen := map[string]string{}
			for r, name := range s.shortNames(w) {
				if seen[name] != "" || chart.Width(name) > w {
					t.Errorf("in %d cells %s and %s read %q", w, r.name, seen[name], name)
				}
				seen[name] = r.name
			}
		}
		s.press("n")
	}
	if got := s.shortNames(30)[s.byKey[keyOf(a, &a.Functions[1])]]; !strings.HasPrefix(got, "add(") {
		t.Errorf("an overload reads %q", got)
	}
	s.dropRow(s.byKey[keyOf(b, &b.Functions[0])])
	if got := s.shortNames(30)[s.byKey[keyOf(a, &a.Functions[len(alike)-1])]]; got != "init" {
		t.Errorf("a name that is the only one reads %q", got)
	}
}

// The names have room at every size where the charts have some.
func TestNameColumnHasRoom(t *testing.T) {
	s := watching(t, 118, 40)
	for w := 118; w <= 320; w++ {
		if s.resize(w, 40); s.nameEnd-5 < 30 {
			t.Errorf("%d cells wide the names have %d", w, s.nameEnd-5)
		}
	}
}
