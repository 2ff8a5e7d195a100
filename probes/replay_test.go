package probes

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"uprobetop/bpf"
	"uprobetop/bpf/bpftest"
	"uprobetop/symbols"
)

// sameSnapshot compares everything of two snapshots, one from the kernel and one
// from a recording of it. What cannot be the same is the way to a file, and the
// clock's reading beside the time.
func sameSnapshot(t *testing.T, live, again *Snapshot) {
	t.Helper()
	a, b := *live, *again
	if !a.At.Equal(b.At) {
		t.Errorf("tick %d: at %v, was %v", a.Seq, b.At, a.At)
	}
	a.At, b.At = time.Time{}, time.Time{}
	sameCalls(t, a.Calls, b.Calls)
	a.Calls, b.Calls = nil, nil
	if (a.Inside == nil) != (b.Inside == nil) {
		t.Errorf("tick %d: inside are %+v, were %+v", a.Seq, b.Inside, a.Inside)
	} else if a.Inside != nil {
		was, is := *a.Inside, *b.Inside
		if was.Total != is.Total || !was.At.Equal(is.At) {
			t.Errorf("tick %d: %d are inside at %v, were %d at %v", a.Seq, is.Total, is.At, was.Total, was.At)
		}
		sameCalls(t, was.Calls, is.Calls)
	}
	a.Inside, b.Inside = nil, nil
	a.Probes, b.Probes = nil, nil
	if !reflect.DeepEqual(a, b) {
		t.Errorf("tick %d is\n%+v\nwas\n%+v", a.Seq, b, a)
	}
	if len(live.Probes) != len(again.Probes) {
		t.Fatalf("tick %d has %d probes, had %d", a.Seq, len(again.Probes), len(live.Probes))
	}
	for i := range live.Probes {
		was, is := live.Probes[i], again.Probes[i]
		if was.ID != is.ID || was.Kind != is.Kind || was.cookie != is.cookie || !reflect.DeepEqual(was.Function, is.Function) || !slices.Equal(was.Points, is.Points) {
			t.Errorf("tick %d: probe\n%+v\nwas\n%+v", a.Seq, is.Probe, was.Probe)
		}
		if f, g := facts(was.File), facts(is.File); !slices.Equal(f, g) {
			t.Errorf("tick %d: file %v was %v", a.Seq, g, f)
		}
		was.Probe, is.Probe = nil, nil
		if !reflect.DeepEqual(was, is) {
			t.Errorf("tick %d: probe %d is\n%+v\nwas\n%+v", a.Seq, i, is, was)
		}
	}
}

func sameCalls(t *testing.T, live, again []Call) {
	t.Helper()
	if len(live) != len(again) {
		t.Errorf("%d calls, were %d", len(again), len(live))
		return
	}
	for i := range live {
		was, is := live[i], again[i]
		if !was.At.Equal(is.At) {
			t.Errorf("call %d: at %v, was %v", i, is.At, was.At)
		}
		was.At, is.At = time.Time{}, time.Time{}
		if !reflect.DeepEqual(was, is) {
			t.Errorf("call %d is\n%+v\nwas\n%+v", i, is, was)
		}
	}
}

func facts(f *symbols.File) []any {
	return []any{f.Path, f.Dev, f.Ino, f.BuildID, f.Machine, f.Class, f.Go, f.Unwinds, f.Library, f.Switches}
}

// What is read back equals what was on the screen, tick by tick: while the target
// runs, while probes come and go, and in the end.
func TestReplayIsExact(t *testing.T) {
	target := bpftest.Build(t, "calls")
	f := open(t, target)
	path := filepath.Join(t.TempDir(), "run")
	rec, err := Record(path, "calls")
	if err != nil {
		t.Fatal(err)
	}
	c := newCollectorHere(t, Config{Tap: rec, Slow: 1})
	live := []*Snapshot{collect(t, c)} // of nothing
	place(t, c, request(t, f, Return, "work"), request(t, f, Entry, "work"))
	twice := request(t, f, Return, "work")
	if err := c.Place(t.Context(), twice); err != nil { // refused
		t.Fatal(err)
	}
	live = append(live, collect(t, c))
	var made uint64
	var wg sync.WaitGroup
	wg.Go(func() { made = truth(t, target, "4", "20000")["calls"] })
	for i := range 8 {
		place(t, c, request(t, f, Kind(i%2), "run"))
		live = append(live, collect(t, c))
		if err := c.Remove(live[len(live)-1].Probes[3].ID); err != nil {
			t.Fatal(err)
		}
		live = append(live, collect(t, c))
	}
	wg.Wait()
	if err := c.Calibrate(t.Context(), startEmpty); err != nil {
		t.Fatal(err)
	}
	if live = append(live, collect(t, c)); live[len(live)-1].Probes[0].Floor.P50 == 0 {
		t.Error("there is no floor to record")
	}
	if err := c.Stop(live[1].Probes[1].ID); err != nil {
		t.Fatal(err)
	}
	live = append(live, collect(t, c), finish(t, c))
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
	if r.Label != "calls" || len(r.Files) != 1 || len(r.Files[0].Lookup("work")) != 1 || len(r.Files[0].Functions) != 2 {
		t.Errorf("the target is %s with %+v", r.Label, r.Files)
	}
	if s := r.Snapshot(); s.Seq != 0 || s.Kernel != live[0].Kernel {
		t.Errorf("before the first tick it shows %+v", s)
	}
	for _, want := range live {
		s, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		sameSnapshot(t, want, s)
	}
	if s, err := r.Next(); err != io.EOF {
		t.Errorf("after the end comes %+v, %v", s, err)
	}
	calls := 0
	for _, s := range live {
		calls += len(s.Calls)
	}
	if calls == 0 {
		t.Error("no call was reported")
	}
	equal(t, "hits of the last snapshot", r.last.Probes[0].Hits, made)
	equal(t, "returned", r.last.Probes[0].Returned, made)
}

// Nothing of a snapshot is left out of a recording.
func TestReplayIsComplete(t *testing.T) {
	function := symbols.Function{
		Symbol: symbols.Symbol{Name: "f", Version: "V1", Default: true}, Aliases: []symbols.Symbol{{Name: "g"}},
		Addr: 1, Offset: 2, Size: 3, Into: 4, Place: symbols.Marker, Unnamed: true, Chosen: true,
	}
	points := []symbols.Point{{Offset: 5, Again: true}, {Offset: 6, Again: true, Semaphore: 7, Arguments: "-4@%edi"}}
	for _, v := range []reflect.Value{reflect.ValueOf(function), reflect.ValueOf(points[1])} {
		for field, v := range v.Fields() {
			if v.IsZero() {
				t.Errorf("this test does not know %s", field.Name)
			}
		}
	}
	f := &symbols.File{Path: "/bin/x", Functions: []symbols.Function{function}}
	probe := &Probe{File: f, Function: &f.Functions[0], Points: points, cookie: cookieOf(0, 0)}
	want := &Snapshot{
		Seq: 1, At: time.Unix(1, 2), Elapsed: 3, Interval: 4, Kernel: "6.6", CPUs: 1, Method: "uprobe_multi", InFlight: HashStore, Gone: true, Container: true, Final: true,
		Filter: Filter{PIDs: []int{5}, TIDs: []int{6}, Cgroups: []string{"/a"}, Follow: true},
		Probes: []Stats{{Probe: probe, State: Failed, Note: "because", PerCPU: []CPUStats{{CPU: 0}}, HeldBack: 9, CallsLost: 8, CallsBusy: 3}},
		Lost:   Lost{Cells: 7, Calls: 8, Busy: 3, ByCPU: []LostCalls{{CPU: 0, Full: 5, Busy: 3}}}, HeldBack: 9, Placing: Progress{10, 11}, Leaving: Progress{12, 13}, Unfollowed: 14,
		Calls:  []Call{{TID: 15, At: time.Unix(1, 0), Start: 997, Latency: 1, Return: 16}},
		Inside: &Inside{At: time.Unix(1, 2), Total: 1}, // of a probe that is not listed
	}
	for field, v := range reflect.ValueOf(want).Elem().Fields() {
		if v.IsZero() {
			t.Errorf("this test does not know %s", field.Name)
		}
	}
	var out bytes.Buffer
	rec, err := newRecorder(&out, "x")
	if err != nil {
		t.Fatal(err)
	}
	rec.Begin(want, []int{0}, 1)
	cell := bpf.Record{Kind: bpf.RecordCell, Cookie: probe.cookie}
	cell.Value[bpf.HeldBack], cell.Value[bpf.CallsLost], cell.Value[bpf.CallsBusy] = 9, 5, 3
	tick := bpf.Record{Kind: bpf.RecordTick, At: 1000}
	tick.Value[0], tick.Value[1] = want.Lost.Cells, want.Unfollowed
	rec.Sample(raw(cell))
	rec.Sample(raw(tick))
	for _, call := range []bpf.Call{
		{Kind: bpf.RecordCall, Cookie: probe.cookie, At: 998, Start: 997, Tid: 15, Result: 16},
		{Kind: bpf.RecordInside, Cookie: probe.cookie, At: 1001, Start: 990},
		{Kind: bpf.RecordEnumerated, At: 1002},
	} {
		sample, err := binary.Append(nil, binary.NativeEndian, &call)
		if err != nil {
			t.Fatal(err)
		}
		rec.Sample(sample)
	}
	rec.Tick(want)
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := replay(t, out.Bytes()).Next()
	if err != nil {
		t.Fatal(err)
	}
	sameSnapshot(t, want, got)
}

// invent records a run of so many ticks of 250 ms, of one probe that is hit once
// a tick and one that comes at the second.
func invent(t testing.TB, ticks int) []byte {
	t.Helper()
	f := &symbols.File{Path: "/bin/x", Functions: []symbols.Function{{Symbol: symbols.Symbol{Name: "f"}, Addr: 1}, {Symbol: symbols.Symbol{Name: "g"}, Addr: 2}}}
	first := &Probe{ID: 0, Kind: Return, File: f, Function: &f.Functions[1], cookie: 1 << 32}
	second := &Probe{ID: 1, File: f, Function: &f.Functions[0]}
	var out bytes.Buffer
	rec, err := newRecorder(&out, "x 1")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Unix(1000, 0)
	rec.Begin(&Snapshot{At: start, Kernel: "6.6", CPUs: 2, Method: "uprobe_multi", Filter: Filter{PIDs: []int{1}}}, []int{0, 1}, 4)
	d := newDecoder()
	for i := range ticks {
		cell := bpf.Record{Kind: bpf.RecordCell, Index: 1, Cookie: first.cookie}
		cell.Value[bpf.Hits], cell.Value[bpf.Pushed] = uint64(i+1), uint64(i+1)
		for _, r := range []bpf.Record{cell, {Kind: bpf.RecordTick, At: uint64(i)}} {
			rec.Sample(raw(r))
			_, _ = d.apply(&r)
		}
		rec.w.Sample(1, []byte("of a stream that is not known"))
		s := &Snapshot{
			Seq: uint64(i + 1), At: start.Add(time.Duration(i+1) * Tick), Elapsed: time.Duration(i+1) * Tick, Interval: Tick,
			Probes: []Stats{{Probe: first, State: Attached}},
		}
		d.measure(&s.Probes[0], true, 4, func(int) bool { return true })
		if i > 0 {
			s.Probes = append(s.Probes, Stats{Probe: second, State: Refused, Note: "because"})
		}
		rec.Tick(s)
	}
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func replay(t testing.TB, b []byte) *Replay {
	t.Helper()
	r, err := NewReplay(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// Round and round: nothing goes back, and the numbers begin anew.
func TestReplayLoop(t *testing.T) {
	b := invent(t, 3)
	synctest.Test(t, func(t *testing.T) {
		r := replay(t, b)
		r.Loop = true
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		ids := map[ID]bool{}
		for i := range 9 {
			synctest.Wait()
			s := r.Snapshot()
			if s.Seq != uint64(i+1) || s.Elapsed != time.Duration(i+1)*Tick || s.Interval != Tick {
				t.Errorf("tick %d has number %d, %v after %v", i+1, s.Seq, s.Elapsed, s.Interval)
			}
			p := &s.Probes[0]
			if want := uint64(i%3 + 1); p.Hits != want || p.InFlight != int64(want) || p.Rate != 4 {
				t.Errorf("tick %d has %d hits, %d in flight, %v a second", s.Seq, p.Hits, p.InFlight, p.Rate)
			}
			if since := s.Elapsed - p.Placed; since > 3*Tick {
				t.Errorf("tick %d: its probe is %v old", s.Seq, since)
			}
			ids[p.ID] = true
			time.Sleep(Tick) // of a clock that only waits for this test
		}
		if len(ids) != 3 {
			t.Errorf("three passes have the probes %v", ids)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// Without a loop the last snapshot stays until somebody has seen enough.
func TestReplayEnds(t *testing.T) {
	b := invent(t, 2)
	synctest.Test(t, func(t *testing.T) {
		r := replay(t, b)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		time.Sleep(time.Hour)
		if s := r.Snapshot(); s.Seq != 2 {
			t.Errorf("after an hour it shows tick %d", s.Seq)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestReplayPlacesNothing(t *testing.T) {
	r := replay(t, invent(t, 1))
	if f := r.Check(Request{}); f.Verdict != Refuses || f.Reason == "" {
		t.Errorf("it finds %+v", f)
	}
	if err := r.Place(t.Context(), Request{}); !errors.Is(err, ErrRecording) {
		t.Errorf("Place says %v", err)
	}
	if err := r.Remove(0); !errors.Is(err, ErrRecording) {
		t.Errorf("Remove says %v", err)
	}
	if err := r.Report(0, 0); err != nil {
		t.Errorf("Report says %v", err)
	}
}

// Each tick can be read when it is over, while the writer goes on.
func TestRecordingIsFlushed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	rec, err := Record(path, "x")
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	s := &Snapshot{Seq: 1, At: time.Now(), CPUs: 1}
	rec.Begin(s, []int{0}, 1)
	for ticks := 1; ticks < 4; ticks++ {
		rec.Tick(s)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		r := replay(t, b)
		n := 0
		for ; err == nil; n++ {
			_, err = r.Next()
		}
		if n-1 != ticks {
			t.Errorf("%d ticks can be read after %d", n-1, ticks)
		}
	}
}

func TestRecordMakesItsOwnFile(t *testing.T) {
	dir := t.TempDir()
	there, link, nowhere := filepath.Join(dir, "there"), filepath.Join(dir, "link"), filepath.Join(dir, "nowhere")
	if err := os.WriteFile(there, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(nowhere, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{there, link} {
		if _, err := Record(path, "x"); err == nil || !strings.Contains(err.Error(), "exists") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := os.Lstat(nowhere); err == nil {
		t.Error("it writes through a link")
	}
	if b, _ := os.ReadFile(there); string(b) != "precious" {
		t.Errorf("it writes over a file: %q", b)
	}
	if _, err := Record(filepath.Join(there, "x"), "x"); err == nil {
		t.Error("it writes into a file as if that were a directory")
	}
	fresh := filepath.Join(dir, "new")
	rec, err := Record(fresh, "x")
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	if st, err := os.Stat(fresh); err != nil || st.Mode() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
}

// What a probe still counts after its row was taken away counts once, as in the run.
func TestReplayOfARemovedProbe(t *testing.T) {
	f := &symbols.File{Path: "/bin/x", Functions: []symbols.Function{{Symbol: symbols.Symbol{Name: "f"}, Addr: 1}}}
	probe := Stats{Probe: &Probe{File: f, Function: &f.Functions[0], cookie: cookieOf(0, 0)}}
	var out bytes.Buffer
	rec, err := newRecorder(&out, "x")
	if err != nil {
		t.Fatal(err)
	}
	rec.Begin(&Snapshot{CPUs: 1}, []int{0}, 1)
	rows := [][]Stats{{probe}, nil, nil}
	for i, row := range rows {
		cell := bpf.Record{Kind: bpf.RecordCell, Cookie: probe.cookie}
		cell.Value[bpf.HeldBack], cell.Value[bpf.CallsLost] = uint64(5+i), uint64(50+i)
		rec.Sample(raw(cell))
		rec.Sample(raw(bpf.Record{Kind: bpf.RecordTick, At: uint64(i + 1)}))
		rec.Tick(&Snapshot{Seq: uint64(i + 1), At: time.Unix(int64(i), 0), Probes: row})
	}
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	r := replay(t, out.Bytes())
	for i, row := range rows {
		s, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "rows", uint64(len(s.Probes)), uint64(len(row)))
		equal(t, "held back", s.HeldBack, uint64(5+i))
		equal(t, "lost", s.Lost.Calls, uint64(50+i))
	}
}
