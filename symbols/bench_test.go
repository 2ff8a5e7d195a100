package symbols

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
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

// BenchmarkFirstSearch is from nothing to the answer to a first word, beside nm -C
// of the same file: of-nm is the share of its time, each at its best.
func BenchmarkFirstSearch(b *testing.B) {
	nm, err := exec.LookPath("nm")
	if err != nil {
		b.Skipf("nothing to compare with: %v", err)
	}
	rust, _ := filepath.Glob(os.Getenv("HOME") + "/.rustup/toolchains/stable-*/lib/librustc_driver-*.so")
	java, _ := filepath.Glob("/usr/lib/jvm/*/lib/server/libjvm.so")
	for _, path := range slices.Concat([]string{large(b)}, rust[:min(1, len(rust))], java[:min(1, len(java))]) {
		b.Run(filepath.Base(path), func(b *testing.B) {
			ours, theirs := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
			for b.Loop() {
				start := time.Now()
				if err := exec.Command(nm, "-C", path).Run(); err != nil {
					b.Fatal(err)
				}
				theirs = min(theirs, time.Since(start))
				start = time.Now()
				f, err := Open(path)
				if err != nil {
					b.Fatal(err)
				}
				Search([]*File{f}, "alloc", 500)
				ours = min(ours, time.Since(start))
				f.Close()
			}
			b.ReportMetric(ours.Seconds()/theirs.Seconds(), "of-nm")
			b.ReportMetric(ours.Seconds()*1e3, "ms")
		})
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
