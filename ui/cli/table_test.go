package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"uprobetop/probes"
	"uprobetop/symbols"
)

func manyProbes(n int) *probes.Snapshot {
	s := &probes.Snapshot{Final: true, Kernel: "6.18", Method: "uprobe_multi"}
	for i := range n {
		p := &probes.Probe{
			ID: probes.ID(i), File: &symbols.File{},
			Function: &symbols.Function{Symbol: symbols.Symbol{Name: fmt.Sprintf("f%d", i)}},
		}
		s.Probes = append(s.Probes, probes.Stats{Probe: p, State: probes.Attached, Hits: uint64(i % 3), Filtered: 1})
	}
	return s
}

// A pattern's many functions are sorted by hits and said in few lines; a few
// functions stay as they were named.
func TestTableOfMany(t *testing.T) {
	var few, many strings.Builder
	if err := table(&few, manyProbes(4), false, nil); err != nil {
		t.Fatal(err)
	}
	if err := table(&many, manyProbes(300), false, nil); err != nil {
		t.Fatal(err)
	}
	functions := func(text string) (names []string) {
		for line := range strings.Lines(text) {
			if f := strings.Fields(line); len(f) == 3 && strings.HasPrefix(f[2], "f") {
				names = append(names, f[2])
			}
		}
		return names
	}
	if got := strings.Join(functions(few.String()), " "); got != "f0 f1 f2 f3" {
		t.Errorf("few: %s", got)
	}
	got := functions(many.String())
	if len(got) != 200 || got[0] != "f2" || got[99] != "f299" || got[100] != "f1" {
		t.Errorf("many: %d, %s", len(got), got)
	}
	for _, note := range []string{
		"no call reached f0, f3, f6, f9 and 96 more: not called, or inlined into the callers\n",
		"300 hits of f0, f1, f2, f3 and 296 more by others are left out\n",
	} {
		if strings.Count(many.String(), note) != 1 {
			t.Errorf("it does not say %q:\n%s", note, many.String())
		}
	}
}

// In a series of tables the total is told from the others, whose rates are of the
// time since the one before.
func TestTableOfSeries(t *testing.T) {
	s := manyProbes(1)
	s.Elapsed, s.Interval = 2*time.Second, 500*time.Millisecond
	for _, c := range []struct {
		final, series bool
		head          string
	}{
		{true, false, "after 2.00s, 0 CPUs, kernel 6.18, uprobe_multi\n"},
		{true, true, "total after 2.00s, 0 CPUs, kernel 6.18, uprobe_multi\n"},
		{false, true, "after 2.00s, per second of the last 500ms, 0 CPUs, kernel 6.18, uprobe_multi\n"},
	} {
		var text strings.Builder
		s.Final = c.final
		if err := table(&text, s, c.series, nil); err != nil || !strings.HasPrefix(text.String(), c.head) {
			t.Errorf("%v, want %q:\n%s", err, c.head, text.String())
		}
	}
}

// What a pattern leaves out is said with its reasons; a number that there is only
// one of is said once.
func TestLeftOut(t *testing.T) {
	r := &probes.Resolved{Matched: 37406, Skipped: []probes.Skipped{{N: 3, Reason: "the kernel refuses", Names: []string{"a", "b", "c"}}}}
	if got, want := leftOut(r), "37,406 functions match, and 3 are not probed: the kernel refuses, as in a, b and c"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	r.Skipped = append(r.Skipped, probes.Skipped{N: 1, Reason: "older"})
	if got, want := leftOut(r), "37,406 functions match, and 4 are not probed: 3 (the kernel refuses, as in a, b and c), 1 (older)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Probes of one name are told apart, by their files or else by their addresses, in the
// rows as in the sentences.
func TestTableOfSameNames(t *testing.T) {
	s := manyProbes(4)
	x, y := &symbols.File{Path: "/lib/libx.so"}, &symbols.File{Path: "/lib/liby.so"}
	for i, name := range []string{"px", "px", "_ZN1AD1Ev", "_ZN1AD2Ev"} {
		p := &s.Probes[i]
		p.Hits, p.Filtered = 0, 0
		p.Function.Name, p.Function.Addr, p.File = name, symbols.Addr(0x10*i), x
	}
	s.Probes[1].File = y
	var text strings.Builder
	if err := table(&text, s, false, nil); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"  px (libx.so)\n", "  px (liby.so)\n", "  A::~A()  0x20\n", "  A::~A()  0x30\n",
		"no call reached px (libx.so), px (liby.so), A::~A()  0x20 and A::~A()  0x30",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, text.String())
		}
	}
}

// A command can load another copy of a library than the one that is probed.
func TestTableOfCommand(t *testing.T) {
	s := manyProbes(1)
	s.Filter = probes.Filter{PIDs: []int{1}, Follow: true}
	s.Probes[0].File = &symbols.File{Path: "/lib/100%x.so", Library: true}
	var text strings.Builder
	if err := table(&text, s, false, &findings{doubts: []string{"m maps another"}}); err != nil {
		t.Fatal(err)
	}
	const want = "\nnot exact\nm maps another\n" +
		"no call reached f0 of /lib/100%x.so: not called, inlined into the callers, or the command loaded another copy\n"
	if !strings.Contains(text.String(), want) {
		t.Errorf("it does not say %q:\n%s", want, text.String())
	}
}

// A call's line says where its time went, how far that can be wrong if it matters, and
// whose it was if that has an id here.
func TestCallLines(t *testing.T) {
	const ms = time.Millisecond
	at := time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)
	call := func(tid int, th *probes.ThreadStats) probes.Call {
		return probes.Call{PID: tid, TID: tid, Comm: "a\x1b", CPU: 1, At: at, Latency: 6 * ms, Args: [3]uint64{1, 2, 255}, Return: 16, Thread: th}
	}
	s := manyProbes(1)
	s.Calls = []probes.Call{
		call(15, &probes.ThreadStats{OnCPU: 2 * ms, OnCPUError: 3000, Waiting: ms, Voluntary: 1, Involuntary: 2, MinorFaults: 3, MajorFaults: 4}),
		call(15, &probes.ThreadStats{OnCPU: 2 * ms, OnCPUError: 4 * ms, Waiting: -1, Voluntary: 1}),
		call(0, nil),
	}
	var b strings.Builder
	if err := callLines(&b, s); err != nil {
		t.Fatal(err)
	}
	const want = `03:04:05.006    6.00ms  f0  a\x1b 15, CPU 1: on CPU 2.00ms, waiting for one 1.00ms, blocked 3.00ms, switches 3, faults 7, args 0x1 0x2 0xff, result 0x10
03:04:05.006    6.00ms  f0  a\x1b 15, CPU 1: on CPU 2.00ms ±4.00ms, switches 1, faults 0, args 0x1 0x2 0xff, result 0x10
03:04:05.006    6.00ms  f0  a\x1b outside, CPU 1: began before it was watched, result 0x10
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

// What a probe itself takes is said once a class, and only where it was measured.
func TestTableSaysTheProbesOwnShare(t *testing.T) {
	s := manyProbes(4)
	var without, with strings.Builder
	if err := table(&without, s, false, nil); err != nil {
		t.Fatal(err)
	}
	s.Probes[1].Floor = probes.Floor{Class: probes.Nop5, Min: 1300, P50: 1420}
	s.Probes[2].Floor = probes.Floor{Class: probes.Stepped, Min: 1800, P50: 1900}
	s.Probes[3].Floor = probes.Floor{Class: probes.Nop5, Min: 1300, P50: 1420}
	if err := table(&with, s, false, nil); err != nil {
		t.Fatal(err)
	}
	const line = "an empty function takes 1.42µs under such a probe here (nop5), 1.90µs (stepped): the latencies include it\n"
	if !strings.HasSuffix(with.String(), line) {
		t.Errorf("it does not end in %q:\n%s", line, with.String())
	}
	if strings.Contains(without.String(), "empty function") {
		t.Errorf("it tells what was not measured:\n%s", without.String())
	}
}
