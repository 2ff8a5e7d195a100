package export

import (
	"bytes"
	"encoding/json"
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
		Lost:   probes.Lost{Cells: 7, Calls: 5, Busy: 2, ByCPU: []probes.LostCalls{{CPU: 1, Full: 3, Busy: 2}}},
		Probes: []probes.Stats{
			{
				Probe: &probes.Probe{ID: 0, Kind: probes.Return, File: f, Function: fn, Points: f.Points(fn)}, State: probes.Attached,
				Hits: 5, Rate: 8, Counted: time.Second, PerCPU: []probes.CPUStats{{CPU: 0, Hits: 3, Rate: 8}, {CPU: 1, Hits: 2}},
				Returned: 2, InFlight: 1, Unwound: probes.Unwound{Exit: 1}, Missed: probes.Missed{Depth: 1},
				Latency: h, Load: 0.5,
			},
			{
				Probe: &probes.Probe{ID: 1, File: f, Function: fn, Points: f.Points(fn)}, State: probes.Refused, Note: "because",
				PerCPU: []probes.CPUStats{{CPU: 0}, {CPU: 1}},
			},
		},
	}
}

const want = `{"schema":"uprobetop/1","type":"snapshot","final":false,"at":"2026-01-02T03:04:05Z","elapsed_s":2,"interval_s":0.25,"cpus":2,` +
	`"kernel":"6.18.44","targets":[{"path":"/lib/libc.so.6","build_id":"c0ffee","replaced":""}],` +
	`"filter":{"pids":[4121],"tids":[4130],"cgroup":"/sys/fs/cgroup/a","cgroups":["/sys/fs/cgroup/a","/sys/fs/cgroup/b"]},"attach":"multi","inflight":"task","probes":[` +
	`{"id":0,"name":"malloc","symbol":"malloc@@GLIBC_2.2.5","aliases":["__libc_malloc"],"path":"/lib/libc.so.6",` +
	`"address":"0x9e260","points":[{"offset":"0x9d260"}],"kind":"uretprobe","state":"attached","note":"",` +
	`"hits":5,"rate":8,"counted_s":1,"per_cpu":[{"cpu":0,"hits":3,"rate":8},{"cpu":1,"hits":2,"rate":0}],` +
	`"returned":2,"in_flight":1,"unwound":1,"unwound_by":{"jump":0,"exec":0,"exit":1},"orphans":0,"filtered":0,` +
	`"missed":{"depth":1,"no_slot":0},"oldest_in_flight_ns":null,"load":0.5,` +
	`"latency_ns":{"count":2,"sum":190,"min":81,"mean":95,"p50":82,"p90":109,"p99":109,"p999":109,"max":109,` +
	`"buckets":[[80,84,1],[108,112,1]]},"cost":null,"audit":null},` +
	`{"id":1,"name":"malloc","symbol":"malloc@@GLIBC_2.2.5","aliases":["__libc_malloc"],"path":"/lib/libc.so.6",` +
	`"address":"0x9e260","points":[{"offset":"0x9d260"}],"kind":"uprobe","state":"refused","note":"because",` +
	`"hits":null,"rate":null,"counted_s":null,"per_cpu":null,` +
	`"returned":null,"in_flight":null,"unwound":null,"unwound_by":null,"orphans":null,"filtered":null,"missed":null,` +
	`"oldest_in_flight_ns":null,"load":null,"latency_ns":null,"cost":null,"audit":null}],` +
	`"lost":{"cells":7,"calls":5,"calls_by":{"full":3,"busy":2},"per_cpu":[{"cpu":1,"calls_by":{"full":3,"busy":2}}]},"held_back":{"calls":0}}` + "\n"

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

func TestJSON(t *testing.T) {
	var b bytes.Buffer
	if err := JSON(&b, snapshot()); err != nil {
		t.Fatal(err)
	}
	if b.String() != want {
		t.Errorf("got  %swant %s", b.String(), want)
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

// A call is an object of its own; what is not known of it is null.
func TestCalls(t *testing.T) {
	s := snapshot()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	s.Calls = []probes.Call{
		{
			Probe: 0, PID: 7, TID: 8, Comm: "a\nb", CPU: 1, At: at, Latency: 5 * time.Millisecond, Callees: 3, Args: [3]uint64{1, 2, 255},
			Return: 16, Thread: &probes.ThreadStats{OnCPU: 10, Waiting: 20, Voluntary: 1, Involuntary: 2, MinorFaults: 3, MajorFaults: 4},
		},
		{Probe: 0, PID: 7, TID: 8, At: at, Latency: time.Microsecond, Args: [3]uint64{1}, Thread: nil},
		{Probe: 0, At: at, Thread: &probes.ThreadStats{Waiting: -1}},
		{Probe: 77},
	}
	var b bytes.Buffer
	if err := Calls(&b, s); err != nil {
		t.Fatal(err)
	}
	const head = `{"schema":"uprobetop/1","type":"call","at":"2026-01-02T03:04:05.000006Z","probe":0,"name":"malloc",`
	const want = head + `"pid":7,"tid":8,"comm":"a\nb","cpu":1,"latency_ns":5000000,"callees_ns":3,"on_cpu_ns":10,"waiting_ns":20,` +
		`"switches":{"voluntary":1,"involuntary":2},"faults":{"minor":3,"major":4},"args":["0x1","0x2","0xff"],"return":"0x10"}` + "\n" +
		head + `"pid":7,"tid":8,"comm":"","cpu":0,"latency_ns":1000,"callees_ns":0,"on_cpu_ns":null,"waiting_ns":null,` +
		`"switches":null,"faults":null,"args":null,"return":"0x0"}` + "\n" +
		head + `"pid":0,"tid":0,"comm":"","cpu":0,"latency_ns":0,"callees_ns":0,"on_cpu_ns":0,"waiting_ns":null,` +
		`"switches":{"voluntary":0,"involuntary":0},"faults":{"minor":0,"major":0},"args":["0x0","0x0","0x0"],"return":"0x0"}` + "\n"
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
