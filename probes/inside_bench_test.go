package probes

import (
	"runtime"
	"strconv"
	"testing"

	"uprobetop/bpf/bpftest"
)

// BenchmarkInside is one enumeration: of nobody, and of 200 and 400 calls.
func BenchmarkInside(b *testing.B) {
	target := bpftest.Build(b, "hang")
	for _, threads := range []int{0, 100, 200} {
		b.Run(strconv.Itoa(2*threads), func(b *testing.B) {
			f := open(b, target)
			c := newCollectorHere(b, Config{})
			place(b, c, request(b, f, Return, "hang"), request(b, f, Return, "run"))
			if threads > 0 {
				hang(b, target, threads, "threads", strconv.Itoa(threads))
				until(b, c, "all are inside", func(s *Snapshot) bool { return insiders(s) == uint64(2*threads) })
			}
			runtime.GC()
			for b.Loop() {
				if err := c.enumerate(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
