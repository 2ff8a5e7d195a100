package probes

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"uprobetop/bpf/bpftest"
	"uprobetop/symbols"
)

// manyFunctions builds a program of n functions, f0, f1, …, and calls fI I % 7
// times.
func manyFunctions(t testing.TB, n int) string {
	t.Helper()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "__attribute__((noinline)) void f%d(void) { __asm__ volatile(\"nop; nop\" ::: \"memory\"); }\n", i)
	}
	b.WriteString("int main(void) {\n")
	for i := range n {
		b.WriteString(strings.Repeat(fmt.Sprintf("f%d();", i), i%7))
	}
	b.WriteString("\nreturn 0; }\n")
	source := filepath.Join(t.TempDir(), "many.c")
	if err := os.WriteFile(source, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return bpftest.Compile(t, source, "-O0")
}

func manyRequests(t testing.TB, f *symbols.File, kind Kind, n int) []Request {
	t.Helper()
	rs := make([]Request, n)
	for i := range rs {
		rs[i] = request(t, f, kind, fmt.Sprintf("f%d", i))
	}
	return rs
}

// Thousands of probes are one link, and each is exact.
func TestManyProbes(t *testing.T) {
	const n = 5000
	target := manyFunctions(t, n)
	f := open(t, target)
	c := newCollectorHere(t, Config{Probes: n})
	place(t, c, manyRequests(t, f, Entry, n)...)
	truth(t, target)
	s := finish(t, c)
	for i := range s.Probes {
		if p := &s.Probes[i]; p.Hits != uint64(i%7) {
			t.Fatalf("%s: %d hits, want %d", p.Function.Name, p.Hits, i%7)
		}
	}
}

// Each perf event is a link of its own, and they need not be made one by one.
func TestManyPerfEvents(t *testing.T) {
	bpftest.Long(t)
	const n = 8
	target := manyFunctions(t, n)
	f := open(t, target)
	c := newCollectorHere(t, Config{Attach: PerfEvent})
	place(t, c, manyRequests(t, f, Return, n)...)
	truth(t, target)
	s := finish(t, c)
	if s.Leaving.Of != n || s.Leaving.Done == 0 || s.Placing != (Progress{}) {
		t.Errorf("the first are away, the others on their way: %+v, %+v", s.Placing, s.Leaving)
	}
	if again := finish(t, c); again.Probes[6].Returned != s.Probes[6].Returned {
		t.Error("the final numbers change")
	}
	for i := range s.Probes {
		equal(t, s.Probes[i].Function.Name, s.Probes[i].Returned, uint64(i%7))
		checkBooks(t, &s.Probes[i])
	}
}

// stopwatch is a tier that measures the kernel's share.
type stopwatch struct {
	attacher
	mu     sync.Mutex
	kernel time.Duration
}

func (w *stopwatch) during(f func()) {
	start := time.Now()
	f()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kernel += time.Since(start)
}

func (w *stopwatch) attach(p *ebpf.Program, at when, f *symbols.File, points []point) (l io.Closer, err error) {
	w.during(func() { l, err = w.attacher.attach(p, at, f, points) })
	return watched{l, w}, err
}

type watched struct {
	io.Closer
	by *stopwatch
}

func (l watched) Close() (err error) {
	l.by.during(func() { err = l.Closer.Close() })
	return err
}

// BenchmarkPlaceMany is placing and taking away: 5,000 functions by one link, and
// what is not the kernel's share of it; 200 of them by a perf event each.
func BenchmarkPlaceMany(b *testing.B) {
	const n = 5000
	f := open(b, manyFunctions(b, n))
	all := manyRequests(b, f, Entry, n)
	b.Run("uprobe_multi", func(b *testing.B) {
		var ours, kernel []float64
		for b.Loop() {
			w := &stopwatch{attacher: multi{}}
			took := placeAndTake(b, w, UprobeMulti, all)
			ours = append(ours, (took-w.kernel).Seconds()*1e3)
			kernel = append(kernel, w.kernel.Seconds()*1e3)
		}
		b.ReportMetric(median(ours), "ms-ours")
		b.ReportMetric(median(kernel), "ms-kernel")
	})
	b.Run("perf_event", func(b *testing.B) {
		raiseOpenFiles()
		var both []float64
		for b.Loop() {
			both = append(both, placeAndTake(b, perf{}, PerfEvent, all[:200]).Seconds()*1e3)
		}
		b.ReportMetric(median(both), "ms-both")
	})
}

// placeAndTake is how long the probes took to stand and to be away again, without
// the loading of programs before and the end of the collector after.
func placeAndTake(b *testing.B, tier attacher, method Method, rs []Request) time.Duration {
	b.Helper()
	c, err := newCollector(Config{Probes: len(rs)}, method, tier)
	bpftest.Require(b, err)
	defer c.Close()
	start := time.Now()
	if err := c.Place(context.Background(), rs...); err != nil {
		b.Fatal(err)
	}
	c.halts()
	c.closing.Wait()
	return time.Since(start)
}
