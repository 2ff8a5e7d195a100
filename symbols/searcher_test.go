package symbols

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// synthetic is a file with n functions that have names as C++ and C programs do.
func synthetic(n int) *File {
	words := strings.Fields(`alloc Heap buffer Isolate get set Read write queue Node map vector insert
		erase commit parse Token stream open close lock unlock SSL http Request handle table index row page cache
		flush event loop timer Task worker pool compute hash json value Object string array number visit graph`)
	r := rand.New(rand.NewPCG(1, 2))
	word := func() string { return words[r.IntN(len(words))] }
	names := make([]string, n)
	for i := range names {
		a, b, c := word(), word(), word()
		leaf := fmt.Sprintf("%s%s%d", word(), c, i)
		switch i % 8 {
		case 0:
			names[i] = fmt.Sprintf("%s_%s_%d", a, b, i)
		case 1:
			names[i] = fmt.Sprintf("_Z%d%sPKcm", len(leaf), leaf)
		default:
			names[i] = fmt.Sprintf("_ZN%d%s%d%s%d%sERKNS_%d%sEPvi", len(a), a, len(b), b, len(leaf), leaf, len(c), c)
		}
	}
	return named(names...)
}

// simpleSearch is Search in the simplest way, one name after the other.
func simpleSearch(files []*File, text string, limit int) (names []string, total int) {
	type match struct {
		name    string
		quality int
		order   int
	}
	words := strings.Fields(text)
	whole := strings.Join(words, " ")
	fold := lowerASCII
	if lowerASCII(text) != text {
		fold = func(s string) string { return s }
	}
	quality := func(name string) int {
		worst := 1
		for _, w := range words {
			folded, at, best := fold(name), 0, 4
			for tries := 0; tries < 10; tries++ {
				i := strings.Index(folded[at:], w)
				if i < 0 {
					break
				}
				switch at += i; {
				case at == 0:
					best = 1
				case startsWord(name, at):
					best = min(best, 2)
				default:
					best = min(best, 3)
				}
				if best < 3 {
					break
				}
				at++
			}
			worst = max(worst, best)
		}
		if rest, ok := strings.CutPrefix(fold(name), whole); ok && whole != "" {
			worst = 1
			if rest == "" || rest[0] == '(' {
				worst = 0
			}
		}
		return worst
	}
	var found []match
	for _, f := range files {
		for i := range f.Functions {
			best := match{quality: 4}
			for _, s := range f.Functions[i].symbols() {
				if name := s.demangled(); quality(name) < best.quality {
					best = match{name: name, quality: quality(name), order: len(found)}
				}
			}
			if best.quality < 4 {
				found = append(found, best)
			}
		}
	}
	slices.SortFunc(found, func(a, b match) int {
		switch {
		case a.quality != b.quality:
			return a.quality - b.quality
		case len(a.name) != len(b.name):
			return len(a.name) - len(b.name)
		case a.name != b.name:
			return strings.Compare(a.name, b.name)
		}
		return a.order - b.order
	})
	for _, m := range found[:min(limit, len(found))] {
		names = append(names, m.name)
	}
	return names, len(found)
}

func foundNames(ms []Match) (names []string) {
	for _, m := range ms {
		names = append(names, m.Name)
	}
	return names
}

// Whatever is typed and taken back, a Searcher finds what looking at every name
// finds.
func TestSearcherAgainstSimple(t *testing.T) {
	odd := named("größe_x", "Größe=alias_of_größe", "a", "A", "aaaaaaaaaaaaaaaaaaaa_a", "x::a b", "alloc=free=Alloc_All",
		"operator[]", "\x1ba{b}|c~", "`tick`", "@at", "alloc", "_Z5allocv", "free")
	files := []*File{synthetic(300), odd}
	s := NewSearcher(files)
	r := rand.New(rand.NewPCG(3, 4))
	letters := []rune("aAlLoOcCeEhHsSrR_:(t12 nöß[{`@~x")
	text := []rune{}
	for i := range 600 {
		switch n := r.IntN(12); {
		case n < 2 && len(text) > 0:
			text = text[:len(text)-1]
		case n == 2 && len(text) > 2:
			text = text[:0]
		case n == 3:
			name := files[i%2].Functions[r.IntN(len(odd.Functions))].Demangled()
			from := r.IntN(len(name))
			text = append(text, []rune(name[from:from+r.IntN(len(name)-from)])...)
		default:
			text = append(text, letters[r.IntN(len(letters))])
		}
		text = text[:min(len(text), 20)]
		limit := r.IntN(40)
		ms, total := s.Search(string(text), limit)
		names, want := simpleSearch(files, string(text), limit)
		if total != want || !slices.Equal(foundNames(ms), names) {
			t.Fatalf("%q, %d: %d %q\nwant %d %q", string(text), limit, total, foundNames(ms), want, names)
		}
	}
}

// The matches of a search stay as they are during the next.
func TestSearcherLeavesMatches(t *testing.T) {
	s := NewSearcher([]*File{synthetic(500)})
	before, _ := s.Search("he", 20)
	kept := slices.Clone(before)
	var marks []string
	for _, m := range before {
		marks = append(marks, marked(m))
	}
	s.Search("hea", 20)
	for i := range before {
		if before[i].Name != kept[i].Name || marked(before[i]) != marks[i] {
			t.Fatalf("match %d became %s", i, marked(before[i]))
		}
	}
}

// A search that says more than the last takes no memory.
func TestSearcherAllocatesNothing(t *testing.T) {
	s := NewSearcher([]*File{synthetic(20_000)})
	typed := []string{"h", "he", "hea", "heap", "heap ", "heap g", "heap ge", "heap get"}
	for range 2 {
		for _, text := range typed {
			s.Search(text, 100)
		}
	}
	s.Search(typed[0], 100)
	i := 0
	if n := testing.AllocsPerRun(len(typed)-2, func() { // which runs once more than it says
		i++
		s.Search(typed[i], 100)
	}); n != 0 {
		t.Errorf("%v allocations a key stroke", n)
	}
}

// BenchmarkKeystroke is a letter more in a search among a million functions, on one
// CPU: each is what the last letter of a query takes. pasted is all of a query at
// once.
func BenchmarkKeystroke(b *testing.B) {
	f := synthetic(1_000_000)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	s := NewSearcher([]*File{f})
	s.Search("", 500)
	key := func(name, before, text string) {
		b.Run(name+"="+text, func(b *testing.B) {
			s.Search(before, 500)
			_, total := s.Search(text, 500)
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				s.Search(before, 500)
				b.StartTimer()
				s.Search(text, 500)
			}
			b.ReportMetric(float64(total), "found")
		})
	}
	for _, word := range []string{"alloc", "heap get", "Isolate"} {
		for n := 1; n <= len(word); n++ {
			key("key", word[:n-1], word[:n])
		}
		key("pasted", "\x00", word)
	}
}
