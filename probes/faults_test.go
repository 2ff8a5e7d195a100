package probes

import (
	"os"
	"strings"
	"testing"

	"uprobetop/bpf/bpftest"
)

// The same programs with plain additions lose hits where one thread can preempt
// another in the middle of them, which is what the atomic ones are for: they lose
// none. See .ci/kernels for the machine that this needs.
func TestPreempted(t *testing.T) {
	if line, err := os.ReadFile("/proc/cmdline"); err != nil || !strings.Contains(string(line), "preempt=full") {
		t.Skip("the kernel was not started with preempt=full")
	}
	target := bpftest.Build(t, "preempt")
	f := open(t, target)
	var made uint64
	round := func(c *Collector) {
		made += truth(t, target, "4", "4", "2000")["calls"]
	}
	plain := newCollectorHere(t, Config{Object: bpftest.Object(t, "PLAIN_ADDS")})
	place(t, plain, request(t, f, Return, "work"))
	const most = 100
	rounds, lost := 0, false
	for ; rounds < most && !lost; rounds++ {
		round(plain)
		p := &collect(t, plain).Probes[0]
		lost = p.Hits != made || p.Returned != made || p.Latency.Count() != made || p.Balance() != 0
		if lost {
			t.Logf("plain, after %d rounds: %d calls, %d hits, %d returned, %d in the histogram, the books are off by %d",
				rounds+1, made, p.Hits, p.Returned, p.Latency.Count(), p.Balance())
		}
	}
	if !lost {
		t.Errorf("plain additions lose nothing of %d calls: this test shows nothing", made)
	}
	finish(t, plain)

	made = 0
	atomic := newCollectorHere(t, Config{})
	place(t, atomic, request(t, f, Return, "work"))
	for range 2 * rounds {
		round(atomic)
	}
	p := &finish(t, atomic).Probes[0]
	t.Logf("atomic, after %d rounds: %d calls, %d hits, %d returned", 2*rounds, made, p.Hits, p.Returned)
	equal(t, "hits", p.Hits, made)
	equal(t, "returned", p.Returned, made)
	checkBooks(t, p)
}

// A frame that is taken off and not counted shows in every call's ledger: no term
// is what the others leave over.
func TestKernelLostPop(t *testing.T) {
	target := bpftest.Build(t, "calls")
	f := open(t, target)
	c := newCollectorHere(t, Config{Object: bpftest.Object(t, "LOSE_POP=7")})
	place(t, c, request(t, f, Return, "work"))
	made := truth(t, target, "4", "5000")["calls"]
	p := &finish(t, c).Probes[0]
	equal(t, "hits", p.Hits, made)
	equal(t, "returned", p.Returned, made)
	equal(t, "in the histogram", p.Latency.Count(), made)
	equal(t, "unwound and missed", p.Unwound.Total()+p.Missed.Total(), 0)
	if p.InFlight <= 0 || p.Balance() != -p.InFlight {
		t.Errorf("pops are lost: %d in flight, the books are off by %d", p.InFlight, p.Balance())
	}
}
