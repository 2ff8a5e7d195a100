package probes

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"uprobetop/bpf/bpftest"
)

// Little's law: Σ latency ÷ time is how many threads are inside. The program says for
// how long they were, by the same clock, around each call: what we time can only be
// less, by what the two readings and the probe's own way take. The calls in flight, as
// looked at from time to time, are as many on average.
func TestKernelLittlesLaw(t *testing.T) {
	const threads = 8
	target := bpftest.Build(t, "within")
	f := open(t, target)
	c := newCollectorHere(t, Config{})
	place(t, c, request(t, f, Return, "nap"))
	cmd := exec.Command(target, "8", "100", "10000")
	cmd.Stdin = strings.NewReader("\n")
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- cmd.Wait() }()
	var inside, load float64
	samples := 0
	for running := true; running; {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			running = false
		default:
		}
		s := collect(t, c)
		if p := &s.Probes[0]; p.Hits >= threads && p.Hits < threads*95 { // all have begun, none has ended
			inside += float64(p.InFlight)
			samples++
		}
		load += s.Probes[0].Load * s.Interval.Seconds()
	}
	s := finish(t, c)
	p := &s.Probes[0]
	said := parseTruth(t, out.String())
	equal(t, "returned", p.Returned, 800)
	if p.Latency.Sum > said["inside"] || float64(p.Latency.Sum) < 0.9*float64(said["inside"]) {
		t.Errorf("%d ns inside, and the program says %d", p.Latency.Sum, said["inside"])
	}
	if sum := float64(p.Latency.Sum) / 1e9; load < 0.999*sum || load > 1.001*sum {
		t.Errorf("the load of the intervals adds up to %v s, and the latency to %v s", load, sum)
	}
	whole := float64(p.Latency.Sum) / float64(said["took"])
	if mean := inside / float64(samples); samples == 0 || mean < 0.8*whole || mean > threads {
		t.Errorf("the load is %.2f, and %d looks saw %.2f in flight", whole, samples, mean)
	}
}
