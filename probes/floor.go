package probes

import (
	"context"
	"fmt"
	"strings"

	"uprobetop/symbols"
)

// Floor is the probe's own share of a latency: how long a call of a function that does
// nothing takes here, under a timed probe on an instruction of this class. Latencies
// include it.
type Floor struct {
	Class    Class
	Min, P50 uint64 // ns; P50 is 0 where it was not measured
}

// Empty is a running program whose functions do nothing and have names that begin with
// "empty_"; nobody else maps its file.
type Empty interface {
	PID() int
	Call(address, calls uint64) error // returns when they are made
	Stop()
}

// floorCalls of an empty function are timed: the first ones, before the kernel makes a
// call of a nop, do not move the median.
const floorCalls = 2000

// Uncalibrated tells whether Calibrate has something to measure for this snapshot.
func (s *Snapshot) Uncalibrated() bool {
	for i := range s.Probes {
		if st := &s.Probes[i]; st.State == Attached && st.Floor.Class != NoClass && st.Floor.P50 == 0 {
			return true
		}
	}
	return false
}

// Calibrate measures the floor of every class that a timed probe has, once: snapshots
// taken afterwards have it. It puts probes on a program that start gives, and on nothing
// else. What fails is not tried again.
func (c *Collector) Calibrate(ctx context.Context, start func(context.Context) (Empty, error)) error {
	c.calibrating.Lock()
	defer c.calibrating.Unlock()
	missing := c.missingFloors()
	if len(missing) == 0 {
		return nil
	}
	e, err := start(ctx)
	if err != nil {
		return err
	}
	defer e.Stop()
	floors, err := measureFloors(ctx, e, c.config.Attach, c.config.InFlight, missing)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range floors {
		c.floors[f.Class] = f
	}
	return err
}

// missingFloors are the classes that timed probes have and nobody has asked for. They
// are taken for asked.
func (c *Collector) missingFloors() map[Class]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	missing := map[Class]bool{}
	for _, p := range c.probes {
		_, asked := c.floors[p.class]
		if p.class != NoClass && p.placed != 0 && !asked {
			missing[p.class] = true
			c.floors[p.class] = Floor{Class: p.class}
		}
	}
	return missing
}

// measureFloors times an empty function of each class, by a collector of its own that
// attaches as the probes do whose floor it is.
func measureFloors(ctx context.Context, e Empty, attach Method, store Store, classes map[Class]bool) ([]Floor, error) {
	f, err := symbols.OpenAs("the program of empty functions", fmt.Sprintf("/proc/%d/exe", e.PID()))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var rs []Request
	chosen := map[Class]bool{}
	for i := range f.Functions {
		fn := &f.Functions[i]
		class := ClassOf(f, fn)
		if strings.HasPrefix(fn.Name, "empty_") && classes[class] && !chosen[class] {
			chosen[class] = true
			rs = append(rs, Request{Kind: Return, File: f, Function: fn, Accepted: true})
		}
	}
	if len(rs) == 0 {
		return nil, nil
	}
	col, err := New(Config{Attach: attach, InFlight: store, MaxProbes: len(rs), MaxTimed: len(rs), RingBytes: 64 << 10})
	if err != nil {
		return nil, err
	}
	defer col.Close()
	if err := col.Place(ctx, rs...); err != nil {
		return nil, err
	}
	for _, r := range rs {
		if err := e.Call(uint64(r.Function.Addr), floorCalls); err != nil {
			return nil, err
		}
	}
	s, err := col.Collect()
	if err != nil {
		return nil, err
	}
	var floors []Floor
	for i := range s.Probes {
		if st := &s.Probes[i]; st.Returned > 0 {
			floors = append(floors, Floor{st.Floor.Class, st.Latency.Min, st.Latency.Quantile(0.5)})
		}
	}
	return floors, nil
}
