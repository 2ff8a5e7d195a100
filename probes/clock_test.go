package probes

import (
	"bytes"
	"testing"
	"time"

	"uprobetop/bpf"
	"uprobetop/bpf/bpftest"
	"uprobetop/symbols"
)

// invented is a tick of an invented recording.
type invented struct {
	elapsed, interval time.Duration
	hits              uint64
	halted            time.Duration
}

// Rates are over the time in which hits counted, whatever the ticks and the wall clock
// do: a probe comes in the middle of an interval and goes in the middle of another; a
// tick is 3 s late.
func TestRatesOfPartialIntervals(t *testing.T) {
	f := &symbols.File{Path: "/bin/x", Functions: []symbols.Function{{Symbol: symbols.Symbol{Name: "f"}}}}
	p := &Probe{File: f, Function: &f.Functions[0], cookie: cookieOf(0, 0)}
	const placed = 100 * time.Millisecond
	ticks := []invented{
		{250 * time.Millisecond, 250 * time.Millisecond, 150, 0},        // 150 ms of 250
		{500 * time.Millisecond, 250 * time.Millisecond, 400, 0},        // all of it
		{3500 * time.Millisecond, 3 * time.Second, 3400, 0},             // late
		{3750 * time.Millisecond, 250 * time.Millisecond, 3450, 3550e6}, // 50 ms of 250
		{4 * time.Second, 250 * time.Millisecond, 3450, 3550e6},         // none of it
	}
	var out bytes.Buffer
	rec, err := newRecorder(&out, "x")
	if err != nil {
		t.Fatal(err)
	}
	wall := time.Unix(5000, 0)
	rec.Begin(&Snapshot{At: wall, Kernel: "6.6", CPUs: 1, Method: "uprobe_multi"}, []int{0}, 1)
	for i, tick := range ticks {
		cell := bpf.Record{Kind: bpf.RecordCell, Cookie: p.cookie}
		cell.Value[bpf.Hits] = tick.hits
		rec.Sample(raw(cell))
		rec.Sample(raw(bpf.Record{Kind: bpf.RecordTick, At: uint64(tick.elapsed)}))
		wall = wall.Add(-time.Hour) // somebody sets it
		rec.Tick(&Snapshot{
			Seq: uint64(i + 1), At: wall, Elapsed: tick.elapsed, Interval: tick.interval,
			Probes: []Stats{{Probe: p, State: Attached, Placed: placed, Halted: tick.halted}},
		})
	}
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	r := replay(t, out.Bytes())
	for i, tick := range ticks {
		s, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		st, want, counted := &s.Probes[0], 1000.0, tick.elapsed-placed
		if i > 2 {
			counted = 3450 * time.Millisecond
		}
		if i == 4 {
			want = 0
		}
		if st.Rate != want || st.PerCPU[0].Rate != want || st.Counted != counted {
			t.Errorf("tick %d: %v/s, of its CPU %v/s, counted for %v, want %v/s and %v", i+1, st.Rate, st.PerCPU[0].Rate, st.Counted, want, counted)
		}
	}
}

// What the kernel stamps is the only clock of a collector: intervals add up to what has
// elapsed, probes that come later and go earlier have their own time, and at the end it
// stands.
func TestKernelTime(t *testing.T) {
	target := bpftest.Build(t, "calls")
	f := open(t, target)
	c := newCollectorHere(t, Config{})
	if s := collect(t, c); s.Elapsed != 0 {
		t.Errorf("%v elapsed before there was a probe", s.Elapsed)
	}
	place(t, c, request(t, f, Entry, "work"))
	s := collect(t, c)
	place(t, c, request(t, f, Entry, "run"))
	started, first := c.started, s.Elapsed
	for range 3 {
		truth(t, target, "4", "1000")
		before := s
		s = collect(t, c)
		if c.lastAt != c.decoder.at || s.Elapsed != time.Duration(c.decoder.at-started) || s.Elapsed != before.Elapsed+s.Interval {
			t.Errorf("%v elapsed, %v before, and the interval has %v", s.Elapsed, before.Elapsed, s.Interval)
		}
		p := &s.Probes[0]
		if want := float64(p.Hits-before.Probes[0].Hits) / s.Interval.Seconds(); p.Rate != want || p.Counted != s.Elapsed {
			t.Errorf("%v hits a second, want %v; it counted for %v of %v", p.Rate, want, p.Counted, s.Elapsed)
		}
		if later := &s.Probes[1]; later.Placed <= first || later.Counted != s.Elapsed-later.Placed {
			t.Errorf("the later one was placed at %v and counted for %v of %v", later.Placed, later.Counted, s.Elapsed)
		}
	}
	if err := c.Stop(s.Probes[0].ID); err != nil {
		t.Fatal(err)
	}
	s = collect(t, c)
	counted := s.Probes[0].Counted
	if counted != s.Probes[0].Halted || counted >= s.Elapsed {
		t.Errorf("it was stopped at %v of %v, and counted for %v", s.Probes[0].Halted, s.Elapsed, counted)
	}
	end := finish(t, c)
	if p := &end.Probes[0]; p.Counted != counted || p.Rate != 0 {
		t.Errorf("once stopped it counted for %v, was %v, with %v/s", p.Counted, counted, p.Rate)
	}
	if p := &end.Probes[1]; p.Halted == 0 || p.Halted > end.Elapsed || p.Counted != p.Halted-p.Placed {
		t.Errorf("the other one counted for %v until %v, and the end is at %v", p.Counted, p.Halted, end.Elapsed)
	}
	if again := collect(t, c); again.Elapsed != end.Elapsed || again.Interval != 0 {
		t.Errorf("after the end %v and %v elapse", again.Elapsed, again.Interval)
	}
}

// The kernel's own clocks of each architecture are the scheduler's, those of devices are not.
func TestClocksource(t *testing.T) {
	for source, want := range map[string]bool{
		"tsc": true, "kvm-clock": true, "arch_sys_counter": true, "hyperv_clocksource_tsc_page": true,
		"hpet": false, "acpi_pm": false, "tsc-early": false, "refined-jiffies": false, "": false,
	} {
		if got := schedulers(source); got != want {
			t.Errorf("%q: %v, want %v", source, got, want)
		}
	}
}
