package demangle

import (
	"cmp"
	"debug/elf"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	library "github.com/ianlancetaylor/demangle"
)

// files are large files with many mangled names, where they usually are.
var files = map[string][]string{
	"node":      {"/usr/bin/node"},
	"rustc":     {"~/.rustup/toolchains/stable-*/lib/librustc_driver-*.so"},
	"libjvm":    {"/usr/lib/jvm/*/lib/server/libjvm.so"},
	"libstdc++": {"/usr/lib/*/libstdc++.so.6", "/usr/lib64/libstdc++.so.6"},
	"libLLVM":   {"/usr/lib/*/libLLVM*.so*", "/usr/lib64/libLLVM*.so*"},
	"libclang":  {"/usr/lib/*/libclang-cpp.so*"},
}

// fileNames are the mangled names of a kind of file, without versions, in order of
// address: those of the first file that is there.
func fileNames(t testing.TB, kind string) []string {
	home, _ := os.UserHomeDir()
	for _, pattern := range files[kind] {
		paths, _ := filepath.Glob(strings.Replace(pattern, "~", home, 1))
		for _, path := range slices.Backward(paths) {
			f, err := elf.Open(path)
			if err != nil {
				continue
			}
			defer f.Close()
			symbols, _ := f.Symbols()
			dynamic, _ := f.DynamicSymbols()
			var names []string
			symbols = append(symbols, dynamic...)
			slices.SortStableFunc(symbols, func(a, b elf.Symbol) int { return cmp.Compare(a.Value, b.Value) })
			for _, s := range symbols {
				name, _, _ := strings.Cut(s.Name, "@")
				if strings.HasPrefix(name, "_Z") || strings.HasPrefix(name, "_R") {
					names = append(names, name)
				}
			}
			if len(names) > 1000 {
				return names
			}
		}
	}
	t.Skip("no such file here")
	return nil
}

func wanted(name string) string { return library.Filter(name, library.MaxLength(14)) }

// TestFiles holds every name of large files against the library. It takes about
// ten microseconds a name.
func TestFiles(t *testing.T) {
	if os.Getenv("UPROBETOP_LONG") == "" {
		t.Skip("set UPROBETOP_LONG=1: half a minute")
	}
	for kind := range files {
		t.Run(kind, func(t *testing.T) {
			names := fileNames(t, kind)
			slices.Sort(names)
			names = slices.Compact(names)
			left := 0
			for _, name := range names {
				if !check(t, name) && wanted(name) != name { // else there is nothing to demangle
					left++
				}
			}
			t.Logf("%d names, %d (%.2f %%) left to the library", len(names), left, 100*float64(left)/float64(len(names)))
			if left*50 > len(names) {
				t.Errorf("more than 2 %% are left to the library")
			}
		})
	}
}

// BenchmarkDemangle reports, of one run, the time for a name, and how many times
// as long the library takes. It is the least CPU time that all names took, which
// other programs disturb less.
func BenchmarkDemangle(b *testing.B) {
	for _, kind := range []string{"node", "rustc", "libjvm", "libstdc++", "libLLVM", "libclang"} {
		b.Run(kind, func(b *testing.B) {
			names := fileNames(b, kind)
			buf := make([]byte, 0, 1<<15)
			b.ReportAllocs()
			least := time.Duration(math.MaxInt64)
			for b.Loop() {
				start := cpuTime()
				for _, name := range names {
					Append(buf, name)
				}
				least = min(least, cpuTime()-start)
			}
			b.StopTimer()
			slow := time.Duration(math.MaxInt64)
			for range 2 {
				start := cpuTime()
				for _, name := range names {
					wanted(name)
				}
				slow = min(slow, cpuTime()-start)
			}
			n := float64(len(names))
			b.ReportMetric(float64(least)/n, "ns/name")
			b.ReportMetric(float64(slow)/n, "library-ns/name")
			b.ReportMetric(float64(slow)/float64(least), "ratio")
		})
	}
}

// cpuTime is what this process has used so far.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
