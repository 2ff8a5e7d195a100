package symbols

import (
	"os"
	"testing"
)

// large is a program with tens of thousands of C++ functions.
func large(b *testing.B) string {
	const path = "/usr/bin/node"
	if _, err := os.Stat(path); err != nil {
		b.Skipf("no large program: %v", err)
	}
	return path
}

func BenchmarkOpen(b *testing.B) {
	path := large(b)
	b.ReportAllocs()
	for b.Loop() {
		f, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(f.Functions)), "functions")
		f.Close()
	}
}

func BenchmarkFirstSearch(b *testing.B) {
	f := mustOpen(b, large(b))
	b.ReportAllocs()
	for b.Loop() {
		f.names = nameCache{}
		Search([]*File{f}, "alloc", 200)
	}
}

func BenchmarkSearch(b *testing.B) {
	f := mustOpen(b, large(b))
	for _, query := range []string{"", "a", "alloc", "Alloc", "heap collect", "zzzzz"} {
		b.Run("query="+query, func(b *testing.B) {
			Search([]*File{f}, query, 200)
			b.ReportAllocs()
			for b.Loop() {
				Search([]*File{f}, query, 200)
			}
		})
	}
}

func BenchmarkLookup(b *testing.B) {
	f := mustOpen(b, large(b))
	for _, name := range []string{"main", "v8::internal::Heap::CollectGarbage"} {
		f.Lookup(name)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f.Lookup(name)
			}
		})
	}
}

func BenchmarkNearest(b *testing.B) {
	f := mustOpen(b, large(b))
	f.Nearest("CollectGarbge", 3)
	b.ResetTimer()
	for b.Loop() {
		f.Nearest("CollectGarbge", 3)
	}
}
