package probes

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"uprobetop/bpf"
	"uprobetop/bpf/bpftest"
	"uprobetop/symbols"
)

// passed is what the target of these tests says of itself: how often it passed each
// of its usdt probes, and its semaphore.
type passed struct{ Plain, Two, Guarded, Other, Many, Semaphore uint64 }

func parsePassed(t testing.TB, line string) (p passed) {
	t.Helper()
	if _, err := fmt.Sscan(line, &p.Plain, &p.Two, &p.Guarded, &p.Other, &p.Many, &p.Semaphore); err != nil {
		t.Fatalf("the target says %q: %v", line, err)
	}
	return p
}

// passing starts a process that passes its usdt probes a round at a time.
func passing(t testing.TB, path string) (pid int, round func() passed) {
	t.Helper()
	cmd := exec.Command(path, "300", "lines")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	lines := bufio.NewReader(out)
	return cmd.Process.Pid, func() passed {
		t.Helper()
		if _, err := io.WriteString(in, "\n"); err != nil {
			t.Fatal(err)
		}
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return parsePassed(t, line)
	}
}

// markerRequests asks for usdt probes by name.
func markerRequests(t testing.TB, f *symbols.File, names ...string) (rs []Request) {
	t.Helper()
	for _, name := range names {
		r := request(t, f, USDT, name)
		rs = append(rs, r)
	}
	return rs
}

func checkHits(t testing.TB, s *Snapshot, before, after passed) {
	t.Helper()
	made := map[string]uint64{
		"demo:plain": after.Plain - before.Plain, "demo:two": after.Two - before.Two, "demo:guarded": after.Guarded - before.Guarded,
		"other:plain": after.Other - before.Other, "demo:many": after.Many - before.Many,
	}
	for i := range s.Probes {
		p := &s.Probes[i]
		equal(t, p.Function.Name, p.Hits, made[p.Function.Name])
		if p.Hits == 0 || p.Latency != nil || p.Kind != USDT {
			t.Errorf("%s: %+v", p.Function.Name, p)
		}
		checkBooks(t, p)
	}
}

// Every site counts each time it is passed, by every way of attaching; the semaphore
// is up in those who are probed, for as long as they are.
func TestKernelMarkers(t *testing.T) {
	target := bpftest.Build(t, "markers")
	f := open(t, target)
	for _, method := range methodsHere() {
		for _, filtered := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/filtered=%v", method, filtered), func(t *testing.T) {
				pid, round := passing(t, target)
				_, others := passing(t, target)
				config := Config{Attach: method}
				if filtered {
					config.Filter.PIDs = []int{pid}
				}
				c := newCollectorHere(t, config)
				before, idle := round(), others()
				if before.Semaphore != 0 || before.Guarded != 0 {
					t.Fatalf("before there is a probe the target says %+v", before)
				}
				place(t, c, markerRequests(t, f, "demo:plain", "demo:two", "demo:guarded", "other:plain")...)
				after := round()
				equal(t, "semaphore", after.Semaphore, 2) // one a site
				other := others()
				if alone := filtered && !HostWide(config.Filter, method); alone != (other.Semaphore == 0) {
					t.Errorf("another process says %+v", other)
				}
				if !filtered {
					after.Plain, after.Two = after.Plain+other.Plain-idle.Plain, after.Two+other.Two-idle.Two
					after.Guarded, after.Other = after.Guarded+other.Guarded-idle.Guarded, after.Other+other.Other-idle.Other
				}
				checkHits(t, finish(t, c), before, after)
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
				for _, last := range []passed{round(), others()} {
					equal(t, "semaphore without probes", last.Semaphore, 0)
				}
			})
		}
	}
}

// A command is probed from its first instruction on: its data, where the semaphore is,
// is mapped after its code.
func TestMarkersOfCommand(t *testing.T) {
	bpftest.Long(t)
	target := bpftest.Build(t, "markers", "-DMANY")
	f := open(t, target)
	var out strings.Builder
	held, err := Hold([]string{target, "300"}, nil, &out, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(held.Cancel)
	c := newCollectorHere(t, Config{Filter: Filter{PIDs: []int{held.PID()}, Follow: true}})
	place(t, c, markerRequests(t, f, "demo:plain", "demo:guarded", "demo:many", "other:plain", "demo:two")...)
	truth := exec.Command(target, "300") // not let through
	if err := truth.Run(); err != nil {
		t.Fatal(err)
	}
	if err := held.Release(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-held.Ended().Done():
	case <-time.After(time.Minute):
		t.Fatal("the command does not end")
	}
	s := finish(t, c)
	checkHits(t, s, passed{}, parsePassed(t, out.String()))
	equal(t, "points of demo:many", uint64(len(s.Probes[2].Points)), 2000)
}

// methodsHere is the ways of attaching that this kernel has.
func methodsHere() []Method {
	if bpf.HaveUprobeMulti() != nil {
		return []Method{PerfEvent}
	}
	return []Method{UprobeMulti, PerfEvent}
}

// All who probe one instruction name the same semaphore: else the kernel refuses.
func TestKernelMarkerTwice(t *testing.T) {
	f := open(t, bpftest.Build(t, "markers"))
	guarded := request(t, f, USDT, "demo:guarded")
	bare := Request{File: f, Function: &symbols.Function{Symbol: symbols.Symbol{Name: "bare"}, Offset: guarded.Function.Offset}}
	for _, method := range methodsHere() {
		for _, rs := range [][]Request{{guarded, bare}, {bare, guarded}} {
			c := newCollectorHere(t, Config{Attach: method})
			place(t, c, rs[0])
			if err := c.Place(t.Context(), rs[1]); err != nil {
				t.Fatal(err)
			}
			place(t, c, rs[0])
			p := collect(t, c).Probes[1]
			if p.State != Failed || !strings.Contains(p.Note, "another semaphore") {
				t.Errorf("%s of %s is %s: %s", rs[1].Kind, rs[1].Function, p.State, p.Note)
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A recording keeps the points of usdt probes, and their numbers.
func TestReplayMarkers(t *testing.T) {
	target := bpftest.Build(t, "markers")
	f := open(t, target)
	path := filepath.Join(t.TempDir(), "run")
	rec, err := Record(path, "markers")
	if err != nil {
		t.Fatal(err)
	}
	c := newCollectorHere(t, Config{Tap: rec})
	place(t, c, markerRequests(t, f, "demo:plain", "demo:guarded", "demo:two")...)
	place(t, c, request(t, f, Entry, "main"), request(t, f, Entry, "_start")) // behind the others
	_, round := passing(t, target)
	round()
	want := finish(t, c)
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := NewReplay(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var got *Snapshot
	for s, err := r.Next(); err == nil; s, err = r.Next() {
		got = s
	}
	if got == nil || len(got.Probes) != len(want.Probes) {
		t.Fatalf("%+v is replayed", got)
	}
	for i := range got.Probes {
		g, w := &got.Probes[i], &want.Probes[i]
		if g.Kind != w.Kind || g.Hits != w.Hits || g.Function.Name != w.Function.Name || g.Function.Place != w.Function.Place ||
			!reflect.DeepEqual(g.Points, w.Points) {
			t.Errorf("%+v %+v, was %+v", g.Probe, g.Function, w.Probe)
		}
	}
	if at, err := r.Files[0].At(want.Probes[4].Function.Addr); err != nil || at.Name != "_start" {
		t.Errorf("the functions of the file are out of order: %v, %v", at, err)
	}
	if n := len(r.Files[0].Markers()); n != 3 {
		t.Errorf("%d usdt probes are in the replayed file", n)
	}
}

// Only a spec that says usdt means a usdt probe, and it means nothing else.
func TestResolveMarkers(t *testing.T) {
	target := fileTarget(t, bpftest.Compile(t, "testdata/markers.c"))
	path := target.Files[0].Path
	for text, want := range map[string]string{
		"usdt:plain":                 "demo:plain other:plain",
		"usdt:demo:plain":            "demo:plain",
		"usdt:*":                     "demo:guarded demo:plain demo:two other:plain",
		"usdt:*:p*":                  "demo:plain other:plain",
		"usdt:other:*":               "other:plain",
		"usdt:markers:two":           "demo:two",
		"usdt:" + path + ":demo:two": "demo:two",
		"usdt:" + path + "::plain":   "demo:plain other:plain",
		"uprobe:" + path + ":*lain*": "no function matches",
		"plain":                      "none",
		"uprobe:markers:demo:plain":  "none",
		"usdt:main":                  "no usdt probe",
		"usdt:demo:pain":             "the nearest name is demo:plain",
		"usdt:m*":                    "no usdt probe",
		"usdt:0x1234":                "no usdt probe",
		"usdt:nobody:plain":          "no file nobody",
	} {
		got, err := resolve(t, target, text)
		if err != nil {
			if want != "none" && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		var names []string
		for _, r := range got.Requests {
			names = append(names, r.Function.Name)
			if again, err := resolve(t, target, SpecOf(r).String()); err != nil || len(again.Requests) != 1 || again.Requests[0] != r {
				t.Errorf("%s is read as %+v, %v", SpecOf(r), again, err)
			}
			if r.Kind != USDT {
				t.Errorf("%s is %s", text, r.Kind)
			}
		}
		if strings.Join(names, " ") != want {
			t.Errorf("%s means %q, want %q", text, names, want)
		}
	}
	s, _ := ParseSpec("usdt:two")
	if _, err := target.Resolve([]Spec{s}, true); err == nil || !strings.Contains(err.Error(), "cannot be timed") {
		t.Errorf("timed: %v", err)
	}
	for _, r := range markerRequests(t, target.Files[0], "demo:two") {
		r.Kind = Return
		if finding := Check(r, Hazards{}); finding.Verdict != Refuses || !strings.Contains(finding.Reason, "no return") {
			t.Errorf("timed: %+v", finding)
		}
	}
	if got := target.Complete("usdt:p", 9); !reflect.DeepEqual(got, []string{"usdt:plain"}) {
		t.Errorf("%q", got)
	}
	if got := target.Complete("usdt:markers:demo:", 9); len(got) != 3 || got[0] != "usdt:markers:demo:guarded" {
		t.Errorf("%q", got)
	}
	if got := target.Complete("dem", 9); len(got) != 0 {
		t.Errorf("%q", got)
	}
}
