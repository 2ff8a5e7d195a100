package export

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"uprobetop/probes"
	"uprobetop/probes/hist"
	"uprobetop/symbols"
)

func snapshot() *probes.Snapshot {
	f := &symbols.File{Path: "/lib/libc.so.6", BuildID: "c0ffee"}
	fn := &symbols.Function{
		Symbol: symbols.Symbol{Name: "malloc", Version: "GLIBC_2.2.5", Default: true},
		Addr:   0x9e260, Offset: 0x9d260, Aliases: []symbols.Symbol{{Name: "__libc_malloc"}},
	}
	h := &hist.Histogram{Sum: 190, Min: 81, Max: 109}
	h.Counts[hist.Index(81)], h.Counts[hist.Index(109)] = 1, 1
	return &probes.Snapshot{
		Seq: 8, At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Elapsed: 2 * time.Second,
		Interval: 250 * time.Millisecond, Kernel: "6.18.44", CPUs: 2, Method: "uprobe_multi",
		Filter: probes.Filter{PIDs: []int{4121}, TIDs: []int{4130}, Cgroups: []string{"/sys/fs/cgroup/a", "/sys/fs/cgroup/b"}},
		Inside: &probes.Inside{Total: 1, Calls: []probes.Call{{
			PID: 4121, TID: 4130, Comm: "worker", At: time.Date(2026, 1, 2, 3, 4, 4, 0, time.UTC), Latency: 2 * time.Second, Callees: 30,
		}}},
		Unfollowed: 6,
		Lost:       probes.Lost{Cells: 7, Calls: 5, Busy: 2, ByCPU: []probes.LostCalls{{CPU: 1, Full: 3, Busy: 2}}},
		Probes: []probes.Stats{
			{
				Probe: &probes.Probe{ID: 0, Kind: probes.Return, File: f, Function: fn, Points: f.Points(fn)}, State: probes.Attached,
				Hits: 5, Rate: 8, Counted: time.Second, PerCPU: []probes.CPUStats{{CPU: 0, Hits: 3, Rate: 8}, {CPU: 1, Hits: 2}},
				Returned: 2, InFlight: 1, Unwound: probes.Unwound{Exit: 1}, Missed: probes.Missed{Depth: 1},
				Latency: h, Load: 0.5, Callees: 40, Oldest: 2 * time.Second, Floor: probes.Floor{Class: probes.Nop5, Min: 60, P50: 70},
			},
			{
				Probe: &probes.Probe{ID: 1, File: f, Function: fn, Points: f.Points(fn)}, State: probes.Refused, Note: "because",
				PerCPU: []probes.CPUStats{{CPU: 0}, {CPU: 1}},
			},
		},
	}
}

// A usdt probe has its points with their semaphores.
func TestJSONUsdt(t *testing.T) {
	s := snapshot()
	s.Probes = s.Probes[1:]
	s.Probes[0].Kind, s.Probes[0].Points = probes.USDT, []symbols.Point{{Offset: 16, Semaphore: 32, Arguments: "8@%rdi"}, {Offset: 17}}
	var b bytes.Buffer
	if err := JSON(&b, s); err != nil {
		t.Fatal(err)
	}
	if want := `"points":[{"offset":"0x10","semaphore":"0x20","arguments":"8@%rdi"},{"offset":"0x11"}],"kind":"usdt"`; !strings.Contains(b.String(), want) {
		t.Errorf("%s is not in %s", want, b.String())
	}
}

// Of very many calls in flight the oldest are written, and none is not the same as
// not known.
func TestJSONInside(t *testing.T) {
	s := snapshot()
	for range 300 {
		s.Inside.Calls = append(s.Inside.Calls, probes.Call{Latency: time.Second})
	}
	if got := insiders(s); len(got) != mostInsiders || got[0].Age != 2e9 || got[1].Age != 1e9 {
		t.Errorf("%d are written: %+v", len(got), got[:2])
	}
	if s.Inside = nil; insiders(s) != nil {
		t.Error("it is not known who is inside, and said")
	}
	if s.Probes[0].InFlight = 0; insiders(s) == nil {
		t.Error("it is known that nobody is inside, and not said")
	}
}

// What a store does not know is null, and what it knows of it together is not.
func TestJSONWithoutFrames(t *testing.T) {
	s := snapshot()
	s.InFlight = probes.SessionStore
	p := &s.Probes[0]
	p.NoFrames, p.Unreturned, p.InFlight, p.Unwound = true, 2, 0, probes.Unwound{}
	if b := p.Balance(); b != 0 {
		t.Errorf("the books are off by %d", b)
	}
	var b bytes.Buffer
	if err := JSON(&b, s); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"inflight":"session"`, `"missed":{"depth":1,"no_slot":null}`,
		`"returned":2,"in_flight":null,"unwound":null,"unwound_by":null,"unreturned":2,"orphans":0`,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s is not in %s", want, b.String())
		}
	}
	var call bytes.Buffer
	s.Calls = []probes.Call{{Callees: -1}}
	if err := Calls(&call, s); err != nil || !strings.Contains(call.String(), `"callees_ns":null`) {
		t.Errorf("%v: %s", err, call.String())
	}
}

var update = flag.Bool("update", false, "write the golden anew")

// One line holds what the golden spreads over many.
func TestJSON(t *testing.T) {
	var line, got bytes.Buffer
	if err := JSON(&line, snapshot()); err != nil {
		t.Fatal(err)
	}
	if strings.Count(line.String(), "\n") != 1 {
		t.Errorf("not one line: %s", &line)
	}
	if err := json.Indent(&got, line.Bytes(), "", "  "); err != nil {
		t.Fatal(err)
	}
	const path = "testdata/snapshot.json"
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || got.String() != string(want) {
		t.Errorf("%v: it differs from %s (go test ./probes/export -update writes it anew): %s", err, path, &got)
	}
}

// In the final object what is per second is over all the time in which the probe
// counted, here a second of two.
func TestFinalJSON(t *testing.T) {
	s := snapshot()
	s.Final = true
	var b bytes.Buffer
	if err := JSON(&b, s); err != nil {
		t.Fatal(err)
	}
	var o object
	if err := json.Unmarshal(b.Bytes(), &o); err != nil {
		t.Fatal(err)
	}
	p := o.Probes[0]
	if !o.Final || *p.Rate != 5 || p.PerCPU[0].Rate != 3 || *p.Load != 190/1e9 {
		t.Errorf("final %v, rate %v, of CPU 0 %v, load %v", o.Final, *p.Rate, p.PerCPU[0].Rate, *p.Load)
	}
}

// What was found at the end is there; what the kernel does not tell is null.
func TestFindings(t *testing.T) {
	s := snapshot()
	s.Probes[1].State, s.Probes[1].Hits = probes.Attached, 0
	runs := uint64(7)
	found := Extra{
		Why: func(st *probes.Stats) probes.Explanation {
			return probes.Explanation{Causes: []string{"of " + st.Kind.String(), "more"}}
		},
		Gaps: []probes.Gap{{Probe: 1, PID: 77, Why: "missing"}}, Kernel: &probes.KernelCounts{UnseenEnds: 2, UnseenForks: 3, Runs: &runs},
	}
	var b bytes.Buffer
	if err := JSONWith(&b, s, found); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"why":null,"audit":null},{"id":1,`, `"why":"of uprobe; more","audit":null}]`, `"gaps":[{"probe":1,"pid":77,"why":"missing"}]`,
		`"kernel_counts":{"recursions":0,"unseen_ends":2,"unseen_forks":3,"runs":7,"log_depth":null,"log_killed":null,"log_left":null}`,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s is not in %s", want, b.String())
		}
	}
}

// A call is an object of its own; what is not known of it is null.
func TestCalls(t *testing.T) {
	s := snapshot()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	s.Calls = []probes.Call{
		{
			Probe: 0, PID: 7, TID: 8, Comm: "a\nb", CPU: 1, At: at, Latency: 5 * time.Millisecond, Callees: 3, Args: [3]uint64{1, 2, 255},
			Return: 16, Thread: &probes.ThreadStats{OnCPU: 10, OnCPUError: 5, Waiting: 20, Voluntary: 1, Involuntary: 2, MinorFaults: 3, MajorFaults: 4},
		},
		{Probe: 0, PID: 7, TID: 8, At: at, Latency: time.Microsecond, Args: [3]uint64{1}, Thread: nil},
		{Probe: 0, At: at, Thread: &probes.ThreadStats{Waiting: -1, Voluntary: 1}},
		{Probe: 77},
	}
	var b bytes.Buffer
	if err := Calls(&b, s); err != nil {
		t.Fatal(err)
	}
	const head = `{"schema":"uprobetop/1","type":"call","at":"2026-01-02T03:04:05.000006Z","probe":0,"name":"malloc",`
	const want = head + `"pid":7,"tid":8,"comm":"a\nb","cpu":1,"latency_ns":5000000,"callees_ns":3,"on_cpu_ns":10,"on_cpu_error_ns":5,"waiting_ns":20,"blocked_ns":4999970,` +
		`"switches":{"voluntary":1,"involuntary":2},"faults":{"minor":3,"major":4},"args":["0x1","0x2","0xff"],"return":"0x10"}` + "\n" +
		head + `"pid":7,"tid":8,"comm":"","cpu":0,"latency_ns":1000,"callees_ns":0,"on_cpu_ns":null,"on_cpu_error_ns":null,"waiting_ns":null,"blocked_ns":null,` +
		`"switches":null,"faults":null,"args":null,"return":"0x0"}` + "\n" +
		head + `"pid":null,"tid":null,"comm":"","cpu":0,"latency_ns":0,"callees_ns":0,"on_cpu_ns":0,"on_cpu_error_ns":0,"waiting_ns":null,"blocked_ns":null,` +
		`"switches":{"voluntary":1,"involuntary":0},"faults":{"minor":0,"major":0},"args":["0x0","0x0","0x0"],"return":"0x0"}` + "\n"
	if b.String() != want {
		t.Errorf("got  %swant %s", b.String(), want)
	}
}

// A terminal obeys some characters that JSON need not escape.
func TestInert(t *testing.T) {
	s := snapshot()
	s.Calls = []probes.Call{{Comm: "a\u009b31m\x7fb\x1b<ü>"}}
	var b bytes.Buffer
	if err := Calls(&b, s); err != nil {
		t.Fatal(err)
	}
	var o call
	if err := json.Unmarshal(b.Bytes(), &o); err != nil || o.Comm != s.Calls[0].Comm {
		t.Errorf("it is read as %q: %v", o.Comm, err)
	}
	if want := `"comm":"a\u009b31m\u007fb\u001b<ü>"`; !strings.Contains(b.String(), want) {
		t.Errorf("%q does not hold %s", b.String(), want)
	}
}
