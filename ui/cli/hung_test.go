package cli

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"uprobetop/bpf/bpftest"
	"uprobetop/probes"
	"uprobetop/probes/export"
	"uprobetop/probes/hist"
)

// A call that still hangs at the end is told of, and the longest is at least as
// long. What is only in flight is not.
func TestHungLines(t *testing.T) {
	s := manyProbes(3)
	for i := range s.Probes {
		h := &hist.Histogram{Sum: 1000, Min: 1000, Max: 1000}
		h.Counts[hist.Index(1000)] = 1
		s.Probes[i].Returned, s.Probes[i].Latency = 1, h
	}
	s.Probes[0].Oldest, s.Probes[1].Oldest = 35200*time.Millisecond, 900
	s.Inside = &probes.Inside{Total: 15, Calls: []probes.Call{
		{Probe: 0, PID: 4121, TID: 4121, Comm: "worker-3\x1b[2J", Latency: s.Probes[0].Oldest}, {Probe: 1, PID: 5, TID: 5, Comm: "a", Latency: 900},
	}}
	for range 13 {
		s.Inside.Calls = append(s.Inside.Calls, probes.Call{Probe: 2, PID: 7, TID: 7, Latency: 1001})
	}
	text := func(slow time.Duration) string {
		var b strings.Builder
		if err := table(&b, s, false, nil); err != nil {
			t.Fatal(err)
		}
		if err := hungLines(&b, s, slow); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	got := text(0)
	for _, want := range []string{
		"  ≥ 35.2s ", "  1.00µs ", "in flight: f0 35.2s, thread 4121 worker-3", "in flight: f2 1.00µs, thread 7", "in flight: 4 more that are younger\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not say %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "thread 5") || strings.Contains(got, "\x1b") || strings.Contains(got, "SELF") {
		t.Errorf("it says too much:\n%s", got)
	}
	if got := text(900); !strings.Contains(got, "in flight: f1 900ns, thread 5 a\n") {
		t.Errorf("it does not tell of a call that is slow already:\n%s", got)
	}
	s.Probes[2].Callees = 400
	if got := text(0); !regexp.MustCompile(`MEAN +SELF +P50`).MatchString(got) || !regexp.MustCompile(`1.00µs +600ns +`).MatchString(got) {
		t.Errorf("it does not say what a function takes itself:\n%s", got)
	}
}

// Calls that hang are in the objects while they do, and the ends of them after.
func TestStatInside(t *testing.T) {
	requireBPF(t)
	path := target(t, "hang", "-pthread")
	cmd := program("stat", "-y", "-r", "-I", "10ms", "-o", "json", path, "hang", "run", "--", path, "threads", "2")
	in, out := bpftest.Start(t, cmd)
	type object struct {
		Final  bool
		Probes []struct {
			InFlight int64  `json:"in_flight"`
			Oldest   *int64 `json:"oldest_in_flight_ns"`
			Self     *int64 `json:"self_ns"`
		}
		Inside []struct {
			Name string
			TID  int
			Age  int64 `json:"age_ns"`
		} `json:"in_flight_calls"`
	}
	next := func() (o object) {
		for {
			line, err := out.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(line, "{") {
				continue // the command's own
			}
			if err := json.Unmarshal([]byte(line), &o); err != nil {
				t.Fatal(err)
			}
			return o
		}
	}
	o := next()
	for len(o.Inside) < 4 {
		o = next()
	}
	names, tids := map[string]int{}, map[int]int{}
	for _, c := range o.Inside {
		names[c.Name]++
		tids[c.TID]++
		if c.Age <= 0 {
			t.Errorf("%+v", c)
		}
	}
	if names["hang"] != 2 || names["run"] != 2 || len(tids) != 2 || o.Probes[0].Oldest == nil || *o.Probes[1].Oldest < *o.Probes[0].Oldest {
		t.Errorf("inside are %+v", o)
	}
	in.Close()
	for o = next(); !o.Final; o = next() {
	}
	if o.Inside == nil || len(o.Inside) != 0 || o.Probes[0].Oldest != nil || o.Probes[1].Self == nil || *o.Probes[1].Self <= 0 {
		t.Errorf("in the end %+v", o)
	}
}

// In a container the calls of threads outside of it are counted, and not listed.
func TestTableOfContainer(t *testing.T) {
	s := manyProbes(3)
	s.Container = true
	s.Probes[0].InFlight, s.Probes[2].InFlight = 3, 2
	s.Probes[2].State = probes.Stopped // not listed anyway
	s.Inside = &probes.Inside{Total: 1, Calls: []probes.Call{{Probe: 0, TID: 5, Latency: 2 * time.Second}}}
	s.Probes[1].Hits, s.Probes[1].Threads = 9, &probes.Threads{Rows: []probes.ThreadShare{{Hits: 9}}}
	var b strings.Builder
	if err := errors.Join(table(&b, s, false, nil), hungLines(&b, s, 0), tablesBy(&b, s, export.ByThread)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\n2 calls in flight of f0 are not listed: their threads are outside of this PID namespace\n", "f0 2.00s, thread outside",
		"  –    –  outside of this PID namespace\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "of f2 are not listed") {
		t.Errorf("it says too much:\n%s", b.String())
	}
}
