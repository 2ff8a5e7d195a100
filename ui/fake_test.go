package ui

import (
	"context"
	"math"
	"sync"
	"time"

	"uprobetop/probes"
	"uprobetop/probes/hist"
	"uprobetop/symbols"
)

// fakeSource is a source of hand-made snapshots: for tests of the screen only.
type fakeSource struct {
	mu      sync.Mutex
	snap    *probes.Snapshot
	finding probes.Finding
	err     error
	placed  []probes.Request
	removed []probes.ID
	told    []report
	watched map[probes.ID]bool
	stuck   bool                                // Place returns when its context ends
	calls   func(seconds float64) []probes.Call // of the snapshot at that time; nil: none
}

// report is one call of Report.
type report struct {
	id   probes.ID
	over time.Duration
}

func (f *fakeSource) Snapshot() *probes.Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.snap
}

func (f *fakeSource) Check(probes.Request) probes.Finding { return f.finding }

func (f *fakeSource) Place(ctx context.Context, reqs ...probes.Request) error {
	if f.stuck {
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.placed = append(f.placed, reqs...)
	return f.err
}

func (f *fakeSource) Remove(id probes.ID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.removed = append(f.removed, id)
	return nil
}

func (f *fakeSource) Report(id probes.ID, over time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = append(f.told, report{id, over})
	return f.err
}

func (f *fakeSource) Watch(id probes.ID, on bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watched == nil {
		f.watched = map[probes.ID]bool{}
	}
	if f.err == nil {
		f.watched[id] = on
	}
	return f.err
}

// slowAt is now and then a slow call of buf_page_get_gen that returned just
// before a moment.
func slowAt(seconds float64) []probes.Call {
	n := int(seconds*4) / 4
	if n%3 == 0 {
		return nil
	}
	latency := time.Duration(60+7*(n*n%91)) * time.Microsecond
	if n%5 == 0 {
		latency *= 4
	}
	c := probes.Call{
		Probe: 1, PID: 2841, TID: 2901 + n%17, Comm: [...]string{"ib_io_rd-3", "connection"}[n%2], CPU: 17,
		At: time.Date(2026, 11, 30, 14, 7, 31, 0, time.UTC).Add(time.Duration(seconds*1e9) - 3*time.Millisecond), Start: uint64(seconds * 4), Latency: latency,
		Args: [3]uint64{0x7f1ab0012340, 16, 2}, Return: 1<<64 - 11,
		Thread: &probes.ThreadStats{OnCPU: latency / 7, Waiting: latency / 5, Voluntary: 3, Involuntary: 1, MinorFaults: uint64(n % 2 * 12)},
	}
	switch {
	case n%7 == 0:
		c.Thread = nil
	case n%4 == 0:
		c.CPU, c.Thread.Voluntary, c.Thread.Waiting, c.Thread.OnCPU = n%64, 0, 0, latency
	case n%11 == 0:
		c.Thread.MajorFaults = 1
	}
	return []probes.Call{c}
}

var (
	libc = &symbols.File{Path: "/lib/x86_64-linux-gnu/libc.so.6", Dev: 1, Ino: 2, Functions: functions(
		"malloc", "free", "realloc", "getaddrinfo", "pthread_mutex_lock", "memcpy")}
	mysqld = &symbols.File{Path: "/usr/sbin/mysqld", Dev: 1, Ino: 3, Functions: functions(
		"buf_page_get_gen", "row_search_mvcc", "log_write_up_to", "ib_counter_add",
		"_ZN16Item_func_memcmp8cmp_copyEP4Item", "_ZNSt6vectorIiSaIiEE9push_backERKi")}
)

func functions(names ...string) []symbols.Function {
	var out []symbols.Function
	for i, n := range names {
		at := uint64(0x1000 * (i + 1))
		out = append(out, symbols.Function{Symbol: symbols.Symbol{Name: n}, Addr: symbols.Addr(at), Offset: symbols.Offset(at), Size: 74})
	}
	return out
}

func function(name string) (*symbols.File, *symbols.Function) {
	for _, f := range []*symbols.File{libc, mysqld} {
		for i := range f.Functions {
			if f.Functions[i].Name == name {
				return f, &f.Functions[i]
			}
		}
	}
	panic("no function " + name)
}

// hump adds n values around a center, spread log-normally over sigma octaves.
func hump(h *hist.Histogram, n float64, center, sigma float64) {
	first, last := -1, 0
	var weights [hist.Buckets]float64
	sum := 0.0
	for i := range hist.Open {
		low, high := hist.Bounds(i)
		if low == 0 {
			continue
		}
		mid := (float64(low) + float64(high)) / 2
		d := math.Log2(mid/center) / sigma
		weights[i] = math.Exp(-d*d/2) * float64(high-low) / mid
		sum += weights[i]
	}
	for i, w := range weights {
		c := uint64(n * w / sum)
		if c == 0 {
			continue
		}
		if first < 0 {
			first = i
		}
		last = i
		low, high := hist.Bounds(i)
		h.Counts[i] += c
		h.Sum += c * (low + high) / 2
	}
	if first >= 0 {
		low, _ := hist.Bounds(first)
		_, high := hist.Bounds(last)
		if h.Min == 0 || low < h.Min {
			h.Min = low
		}
		h.Max = max(h.Max, high-1)
	}
}

// load is what one probe of the fake does.
type load struct {
	name  string
	kind  probes.Kind
	rate  float64 // hits/s
	modes [][3]float64
	state probes.State
	note  string
	hot   int // a CPU that gets more; -1: none
}

var mysqlLoad = []load{
	{"buf_page_get_gen", probes.Return, 1.83e6, [][3]float64{{0.985, 640, 0.8}, {0.015, 96400, 1.3}}, probes.Attached, "", 17},
	{"malloc", probes.Entry, 2.41e6, nil, probes.Attached, "", -1},
	{"free", probes.Entry, 2.38e6, nil, probes.Attached, "", -1},
	{"row_search_mvcc", probes.Return, 214e3, [][3]float64{{1, 5210, 1.2}}, probes.Attached, "", 5},
	{"log_write_up_to", probes.Return, 18.4e3, [][3]float64{{1, 118e3, 1}}, probes.Attached, "", -1},
	{"getaddrinfo", probes.Entry, 0, nil, probes.Attached, "", -1},
	{"ib_counter_add", probes.Entry, 0, nil, probes.Failed, "the kernel refuses to step lock xadd", -1},
}

// snapshotAt is the state of the loads after so many seconds.
func snapshotAt(seconds float64, cpus int, loads []load) *probes.Snapshot {
	s := &probes.Snapshot{
		Seq: uint64(seconds*4) + 1, At: time.Date(2026, 11, 30, 14, 7, 31, 0, time.UTC).Add(time.Duration(seconds * 1e9)),
		Elapsed: time.Duration(seconds * 1e9), Interval: 250 * time.Millisecond,
		Kernel: "6.18.44", CPUs: cpus, Method: "uprobe_multi",
	}
	for i, l := range loads {
		s.Probes = append(s.Probes, statsAt(probes.ID(i+1), seconds, cpus, l))
	}
	return s
}

func statsAt(id probes.ID, seconds float64, cpus int, l load) probes.Stats {
	f, fn := function(l.name)
	st := probes.Stats{Probe: &probes.Probe{ID: id, Kind: l.kind, File: f, Function: fn}, State: l.state, Note: l.note}
	if l.state != probes.Attached {
		return st
	}
	st.Counted = time.Duration(seconds * 1e9)
	wobble := 1 + 0.15*math.Sin(seconds/3+float64(id))
	total := l.rate * (seconds + 0.6*math.Sin(seconds/3+float64(id)))
	weights, sum := make([]float64, cpus), 0.0
	for i := range weights {
		weights[i] = 1 + 0.4*math.Sin(float64(i*7+int(id)))
		if i == l.hot {
			weights[i] = 2.4
		}
		sum += weights[i]
	}
	for i, w := range weights {
		n := uint64(max(total*w/sum, 0))
		st.PerCPU = append(st.PerCPU, probes.CPUStats{CPU: i, Hits: n, Rate: l.rate * wobble * w / sum})
		st.Hits += n
	}
	st.Rate = l.rate * wobble
	if l.kind == probes.Return {
		h := &hist.Histogram{}
		for _, m := range l.modes {
			hump(h, float64(st.Hits)*m[0], m[1], m[2])
		}
		st.Latency = h
		st.Returned = h.Count()
		if l.name == "buf_page_get_gen" {
			st.Missed.Depth, st.Unwound.Exit, st.Unwound.Jump = 2, 8, 5
		}
		left := int64(st.Hits) - int64(st.Returned) - int64(st.Missed.Total()) - int64(st.Unwound.Total())
		st.InFlight = left
		st.Load = float64(h.Sum) / 1e9 / max(seconds, 1)
	}
	return st
}
