package probes

import (
	"context"
	"fmt"
	"testing"

	"uprobetop/assets"
	"uprobetop/symbols"
)

func startEmpty(ctx context.Context) (Empty, error) { return assets.StartEmpty(ctx) }

// The floor of a class lies within the latencies of an empty function of that class, of
// another process and another file. A probe that is not timed has none.
func TestKernelFloor(t *testing.T) {
	target, err := assets.StartEmpty(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer target.Stop()
	f := open(t, fmt.Sprintf("/proc/%d/exe", target.PID()))
	c := newCollectorHere(t, Config{})
	var fns []*symbols.Function
	for _, name := range []string{"empty_push", "empty_ret", "empty_nop", "empty_nop5", "empty_nop10"} {
		for _, fn := range f.Lookup(name) { // some are of one machine only, or refused by some kernels
			if r := (Request{Kind: Return, File: f, Function: fn}); c.Check(r).Verdict == Fine {
				fns = append(fns, fn)
				place(t, c, r)
			}
		}
	}
	place(t, c, request(t, f, Entry, "run"))
	before, err := c.Collect()
	if err != nil {
		t.Fatal(err)
	}
	if !before.Uncalibrated() {
		t.Error("there is nothing to measure, before anything was")
	}
	for _, fn := range fns {
		if err := target.Call(uint64(fn.Addr), floorCalls); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Calibrate(t.Context(), startEmpty); err != nil {
		t.Fatal(err)
	}
	again := func(context.Context) (Empty, error) { panic("it was measured already") }
	if err := c.Calibrate(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	s, err := c.Collect()
	if err != nil {
		t.Fatal(err)
	}
	if s.Uncalibrated() {
		t.Error("there is still something to measure")
	}
	seen := map[Class]bool{}
	for i, fn := range fns {
		st := &s.Probes[i]
		equal(t, "calls of "+fn.Name, st.Returned, floorCalls) // the other program's are not ours
		l, fl := st.Latency, st.Floor
		t.Logf("%-12s %-9s floor %d, median %d; own %d to %d, median %d", fn.Name, fl.Class, fl.Min, fl.P50, l.Min, l.Max, l.Quantile(0.5))
		if fl.Class != ClassOf(f, fn) || fl.Class == NoClass {
			t.Errorf("%s is %s, and its floor of %s", fn.Name, ClassOf(f, fn), fl.Class)
		}
		if fl.Min == 0 || fl.P50 < fl.Min || fl.Min > l.Max || fl.P50 < l.Min/2 { // other functions of the class are a little faster
			t.Errorf("the floor of %s is %d at least and %d in the middle, and its calls took %d to %d", fn.Name, fl.Min, fl.P50, l.Min, l.Max)
		}
		seen[fl.Class] = true
	}
	if len(seen) < 2 {
		t.Errorf("the empty functions are of the classes %v alone", seen)
	}
	if counted := s.Probes[len(fns)].Floor; counted != (Floor{}) {
		t.Errorf("a probe that only counts has the floor %v", counted)
	}
}
