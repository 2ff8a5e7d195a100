package symbols

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ianlancetaylor/demangle"
)

func listedAs(t *testing.T, f *File, pattern string) string {
	t.Helper()
	list := f.List(pattern)
	var names []string
	for i := range list {
		names = append(names, list[i].Versioned())
	}
	return strings.Join(names, " | ")
}

func TestList(t *testing.T) {
	f := named("malloc", "mallinfo", "__malloc_hook", "SSL_read", "_ZN4shop5priceEi", "_ZN4shop5priceEPKc",
		"_ZN4shopmlERKS_", "main.(*T).Method")
	f.Functions[1].Aliases = []Symbol{{Name: "mallinfo_alias"}}
	for pattern, want := range map[string]string{
		"":                    "SSL_read | __malloc_hook | main.(*T).Method | mallinfo | malloc | shop::operator*(shop const&) | shop::price(char const*) | shop::price(int)",
		"malloc":              "malloc | __malloc_hook",
		"ssl":                 "SSL_read",
		"Ssl":                 "",
		"price":               "shop::price(char const*) | shop::price(int)",
		"shop::price":         "shop::price(char const*) | shop::price(int)",
		"_ZN4shop5priceEi":    "shop::price(int)",
		"_ZN4shop5*":          "shop::price(char const*) | shop::price(int)",
		"shop::*":             "shop::operator*(shop const&) | shop::price(char const*) | shop::price(int)",
		"shop::*(int)":        "shop::price(int)",
		"shop::operator*":     "shop::operator*(shop const&)",
		"main.(*T).Method":    "main.(*T).Method",
		"mall*":               "mallinfo | malloc",
		"*_alias":             "mallinfo",
		"no such":             "",
		"__malloc_hoo[a-z]":   "__malloc_hook",
		"MALLINFO":            "",
		"*(*T*":               "main.(*T).Method",
		"shop::operator[":     "",
		"shop::price(char c*": "shop::price(char const*)",
	} {
		if got := listedAs(t, f, pattern); got != want {
			t.Errorf("%q: %s\nwant %s", pattern, got, want)
		}
	}
}

// The default version stands before the old ones, whatever their addresses.
func TestListVersions(t *testing.T) {
	made := named("api", "api", "api")
	made.Functions[0].Version = "V9"
	made.Functions[1].Version, made.Functions[1].Default = "V2", true
	made.Functions[2].Version = "V1"
	if got := listedAs(t, made, "api"); got != "api@@V2 | api@V9 | api@V1" {
		t.Error(got)
	}
	f := mustOpen(t, prebuilt(t))
	if got := listedAs(t, f, "a*"); got != "api@@V2 | api@V1" {
		t.Error(got)
	}
	if list := f.List("api@@V2"); len(list) != 1 || list[0].Old() {
		t.Errorf("%v", list)
	}
	if list := f.List("api@V1"); len(list) != 1 || !list[0].Old() {
		t.Errorf("%v", list)
	}
}

// forLarge runs a test on what large programs are here.
func forLarge(t *testing.T, test func(t *testing.T, f *File)) {
	for _, path := range []string{"/usr/bin/node", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/proc/self/exe"} {
		if _, err := os.Stat(path); err == nil {
			t.Run(path, func(t *testing.T) { test(t, mustOpen(t, path)) })
		}
	}
}

// A clone has no name but the raw one: without its mark that is another function's.
func TestCompleteClones(t *testing.T) {
	f := named("_ZL6helperii.constprop.0", "_Z5hellov", "helm.isra.0")
	if got := f.Complete("hel", 9); !slices.Equal(got, []string{"hello", "helm.isra.0"}) {
		t.Errorf("%q", got)
	}
	if got := f.Complete("_ZL6", 9); !slices.Equal(got, []string{"_ZL6helperii.constprop.0"}) {
		t.Errorf("%q", got)
	}
}

func TestComplete(t *testing.T) {
	f := named("malloc", "mallinfo", "free", "_ZN4shop5priceEi", "_ZN4shop5priceEPKc", "_ZN4shop3payEv", "mal\x1bloc", "_Zx", "_Z4work3Job")
	for prefix, want := range map[string]string{
		"mal":              "mallinfo malloc",
		"shop::p":          "shop::pay shop::price",
		"shop::price(i":    "shop::price(int)",
		"s":                "shop::pay shop::price",
		"_ZN4shop3":        "_ZN4shop3payEv",
		"_Zx":              "_Zx",
		"work(J":           "work(Job)",
		"x":                "",
		"shop::nothing":    "",
		"no::such::method": "",
	} {
		if got := strings.Join(f.Complete(prefix, 100), " "); got != want {
			t.Errorf("%q completes to %q, want %q", prefix, got, want)
		}
	}
	// Of more than the limit, some, with no more in common than all.
	names := []string{}
	for _, r := range "abcdefghijklmnopqrstuvwxyz" {
		names = append(names, "get_a"+string(r))
	}
	f = named(append(names, "get_b")...)
	if got := f.Complete("get_", 5); !slices.Equal(got, []string{"get_aa", "get_ab", "get_ac", "get_ad", "get_ae", "get_b"}) {
		t.Errorf("%q", got)
	}
	if got := f.Complete("", 5); len(got) != 6 || got[5] != "get_b" {
		t.Errorf("%q", got)
	}
}

// What is offered is found.
func TestCompleteLarge(t *testing.T) {
	forLarge(t, func(t *testing.T, f *File) {
		for i := 0; i < len(f.Functions); i += 1 + len(f.Functions)/2 {
			shown := f.Functions[i].Demangled()
			for _, name := range f.Complete(shown[:len(shown)/2], 3) {
				if len(f.Lookup(name)) == 0 {
					t.Errorf("%q is offered and not found", name)
				}
			}
		}
	})
}

// Nothing is passed by for want of an identifier that is not spelled.
func TestCompleteMissesNothing(t *testing.T) {
	forLarge(t, func(t *testing.T, f *File) {
		for i := 0; i < len(f.Functions); i += 1 + len(f.Functions)/2000 {
			raw := f.Functions[i].Name
			if strings.Contains(demangled(raw), " [clone ") {
				continue
			}
			name := demangled(raw, demangle.NoParams)
			part := name[:len(name)-len(leaf(name))/2]
			c := newCompletion(part, 1)
			if c.add(raw); len(c.seen) == 0 && Printable(name) == name {
				t.Errorf("%q is not offered for %q", name, part)
			}
		}
	})
}
