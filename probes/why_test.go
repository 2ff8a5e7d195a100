package probes

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"uprobetop/bpf/bpftest"
	"uprobetop/probes/hist"
	"uprobetop/symbols"
)

// silent is a process of testdata/silent.c.
type silent struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Reader
}

func startSilent(t *testing.T, program, way, library, function string) *silent {
	t.Helper()
	s := &silent{t: t, cmd: exec.Command(program, way, library, function)}
	s.cmd.Stderr = os.Stderr
	s.in, s.out = bpftest.Start(t, s.cmd)
	s.says("ready\n")
	return s
}

func (s *silent) says(want string) {
	s.t.Helper()
	if line, err := s.out.ReadString('\n'); line != want {
		s.t.Fatalf("the target says %q, %v", line, err)
	}
}

func (s *silent) goOn() {
	s.t.Helper()
	if _, err := io.WriteString(s.in, "\n"); err != nil {
		s.t.Fatal(err)
	}
	s.says("done\n")
}

func (s *silent) pid() int { return s.cmd.Process.Pid }

// library is a copy of a library that nobody else maps.
func library(t *testing.T, built string) string {
	t.Helper()
	content, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "libsilent.so.1")
	if err := os.WriteFile(path, content, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// newLooking is a collector whose looks have all the time that they need.
func newLooking(t *testing.T, config Config) *Collector {
	t.Helper()
	c := newCollectorHere(t, config)
	c.looking = time.Minute
	return c
}

// why places a probe on a function of a file, lets the process go on, and asks.
func why(t *testing.T, f *symbols.File, filter Filter, kind Kind, function string, goOn func()) (Explanation, *Collector) {
	t.Helper()
	c := newLooking(t, Config{Filter: filter})
	r := request(t, f, kind, function)
	r.Accepted = true
	place(t, c, r)
	if goOn != nil {
		goOn()
	}
	return c.Why(&collect(t, c).Probes[0], nil), c
}

// Each way in which there is no breakpoint, or nobody comes to it, is told from all
// others.
func TestWhy(t *testing.T) {
	program, built := bpftest.Build(t, "silent"), bpftest.Compile(t, "testdata/library.c", "-shared", "-fPIC")
	for _, tt := range []struct {
		way    string
		goOn   bool
		want   string // in the first cause; # is the process
		proven bool
	}{
		{"idle", false, "no call reached this address: not called, or inlined into its callers", false},
		{"shared", false, "libsilent.so.1 is mapped shared by #", true},
		{"writable", false, "libsilent.so.1 is mapped writable by #", true},
		{"once", true, "the breakpoint is not in #: its mapping was writable", true},
		{"copied", false, "the code of libsilent.so.1 was copied into anonymous memory by #", true},
		{"patch", true, "the code in # is neither that of the file nor a breakpoint (90)", true},
		{"memfd", false, "/memfd:libsilent.so.1 is mapped by #, and another file is probed", true},
		{"later", false, "libsilent.so.1 is not mapped by #", true},
		{"later", true, "no call reached this address", false},
	} {
		t.Run(tt.way, func(t *testing.T) {
			path := library(t, built)
			s := startSilent(t, program, tt.way, path, "provided")
			var goOn func()
			if tt.goOn {
				goOn = s.goOn
			}
			f := open(t, path)
			filter := Filter{PIDs: []int{s.pid()}}
			e, _ := why(t, f, filter, Entry, "provided", goOn)
			who := "silent " + strconv.Itoa(s.pid())
			if want := strings.ReplaceAll(tt.want, "#", who); len(e.Causes) == 0 || !strings.HasPrefix(e.Causes[0], want) || e.Proven != tt.proven {
				t.Errorf("proven: %v, %q\nwant %q", e.Proven, e.Causes, want)
			}
		})
	}
}

// Processes that the filter leaves out had the hits.
func TestWhyFiltered(t *testing.T) {
	program := bpftest.Build(t, "silent")
	path := library(t, bpftest.Compile(t, "testdata/library.c", "-shared", "-fPIC"))
	idle, busy := startSilent(t, program, "idle", path, "provided"), startSilent(t, program, "call", path, "provided")
	e, _ := why(t, open(t, path), Filter{PIDs: []int{idle.pid()}, Follow: true}, Entry, "provided", busy.goOn)
	if !e.Proven || len(e.Causes) == 0 || e.Causes[0] != "1 hit was of others, whom the filter leaves out" {
		t.Errorf("proven: %v, %q", e.Proven, e.Causes)
	}
}

// Of a file that nobody maps, and of one that was replaced on disk, everybody is asked.
func TestWhyNobody(t *testing.T) {
	program := bpftest.Build(t, "silent")
	path := library(t, bpftest.Compile(t, "testdata/library.c", "-shared", "-fPIC"))
	s := startSilent(t, program, "idle", path, "provided")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", content, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	f := open(t, path)
	e, c := why(t, f, Filter{}, Entry, "provided", nil)
	if len(e.Causes) == 0 || !strings.HasPrefix(e.Causes[0], "no process maps libsilent.so.1 now") {
		t.Errorf("of the file on disk: %q", e.Causes)
	}
	c.Close()
	e, _ = why(t, f, Filter{PIDs: []int{s.pid()}}, Entry, "provided", nil)
	if len(e.Causes) == 0 || !strings.HasPrefix(e.Causes[0], "an older "+path+", deleted since, is what silent "+strconv.Itoa(s.pid())+" runs") {
		t.Errorf("of the process: %q", e.Causes)
	}
}

// A breakpoint that is not where the kernel could have placed it is found, in every
// process, whatever was counted elsewhere.
func TestLookGaps(t *testing.T) {
	program := bpftest.Build(t, "silent")
	path := library(t, bpftest.Compile(t, "testdata/library.c", "-shared", "-fPIC"))
	whole, broken := startSilent(t, program, "call", path, "provided"), startSilent(t, program, "call", path, "provided")
	f := open(t, path)
	c := newLooking(t, Config{})
	place(t, c, request(t, f, Entry, "provided"))
	whole.goOn()
	s := collect(t, c)
	equal(t, "hits", s.Probes[0].Hits, 1)
	if l := c.Look(s, nil); len(l.Gaps) != 0 || l.Looked(s.Probes[0].ID) != 2 {
		t.Errorf("of %d processes that are in order, gaps %+v", l.Looked(s.Probes[0].ID), l.Gaps)
	}
	restore(t, broken.pid(), f, s.Probes[0].Function)
	broken.goOn()
	s = collect(t, c)
	equal(t, "hits", s.Probes[0].Hits, 1)
	l := c.Look(s, nil)
	if len(l.Gaps) != 1 || l.Gaps[0].PID != broken.pid() {
		t.Errorf("gaps %+v, want one in %d", l.Gaps, broken.pid())
	}
}

// restore writes the file's byte over a breakpoint, as if the kernel had not placed it.
func restore(t *testing.T, pid int, f *symbols.File, fn *symbols.Function) {
	t.Helper()
	code, err := f.Code(fn, 1)
	if err != nil {
		t.Fatal(err)
	}
	overwrite(t, pid, f, fn.Offset, code, true)
}

// overwrite changes what a process has of a file in memory, in its code or its data.
func overwrite(t *testing.T, pid int, f *symbols.File, at symbols.Offset, with []byte, code bool) {
	t.Helper()
	sight, err := symbols.See(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer sight.Close()
	mem, err := os.OpenFile("/proc/"+strconv.Itoa(pid)+"/mem", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	for _, r := range sight.Of(f) {
		if r.Code == code && (code || r.Writable) && r.Holds(at) {
			if _, err := mem.WriteAt(with, int64(r.Start+uint64(at-r.Offset))); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// What may have had the calls is named: a clone that the compiler made, and a function
// of the name in the program itself.
func TestWhyRelatives(t *testing.T) {
	f := open(t, bpftest.Build(t, "clones"))
	var names []string
	for _, fn := range f.Clones(&symbols.Function{Symbol: symbols.Symbol{Name: "scaled"}}) {
		names = append(names, fn.Name)
	}
	if len(names) != 1 || names[0] != "scaled.constprop.0" {
		t.Errorf("clones of scaled: %q", names)
	}
	if cut := f.Clones(&symbols.Function{Symbol: symbols.Symbol{Name: "split"}}); len(cut) != 0 {
		t.Errorf("clones of split: %+v", cut)
	}

	program := bpftest.Build(t, "silent", "-DTWIN")
	path := library(t, bpftest.Compile(t, "testdata/library.c", "-shared", "-fPIC"))
	s := startSilent(t, program, "idle", path, "provided")
	target := processTarget(t, s.pid())
	if !target.Narrow(path) {
		t.Fatal("it has no such library")
	}
	c := newLooking(t, Config{Filter: target.Filter()})
	place(t, c, request(t, target.Files[0], Entry, "provided"))
	e := c.Why(&collect(t, c).Probes[0], target)
	if want := "silent has a provided of its own"; len(e.Causes) != 3 || !strings.HasPrefix(e.Causes[2], want) || e.Proven {
		t.Errorf("%q, want %q", e.Causes, want)
	}
}

// A breakpoint that the kernel has turned into a call is one.
func TestWhyOptimised(t *testing.T) {
	program := bpftest.Build(t, "silent")
	path := library(t, bpftest.Compile(t, "testdata/library.c", "-shared", "-fPIC", "-DNOP5"))
	startSilent(t, program, "idle", path, "provided")
	busy := startSilent(t, program, "call", path, "provided")
	f := open(t, path)
	c := newLooking(t, Config{})
	place(t, c, request(t, f, Entry, "provided"))
	busy.goOn()
	busy.goOn()
	s := collect(t, c)
	equal(t, "hits", s.Probes[0].Hits, 2)
	l := c.Look(s, nil)
	if found := l.found[s.Probes[0].ID]; found.n[present] != 2 || len(l.Gaps) != 0 {
		t.Errorf("%+v", found)
	}
}

// All calls can be in flight, unwound or missed, and none have returned.
func TestWhyNoReturns(t *testing.T) {
	st := &Stats{Probe: &Probe{Kind: Return}, State: Attached, Hits: 3, InFlight: 3, Latency: &hist.Histogram{}}
	says := func(want string) {
		t.Helper()
		if e := (*Look)(nil).Why(st); !e.Proven || e.String() != want {
			t.Errorf("%+v, not %q", e, want)
		}
	}
	says("no return was seen: 3 in flight")
	st.InFlight, st.Unwound, st.Missed = 0, Unwound{Jump: 1, Exit: 1}, Missed{Depth: 1}
	says("no return was seen: 2 unwound, 1 missed")
	st.NoFrames, st.Unreturned, st.Unwound = true, 2, Unwound{}
	says("no return was seen: 2 in flight or unwound, 1 missed")
	st.Returned = 1
	if e := (*Look)(nil).Why(st); len(e.Causes) != 0 {
		t.Errorf("%+v", e)
	}
}

// Where everything is in order nothing is held against it: breakpoints at usdt probes
// with semaphores, placed by every way of attaching.
func TestLookInOrder(t *testing.T) {
	markers := bpftest.Build(t, "markers")
	pid, round := passing(t, markers)
	round() // it has everything mapped
	f := open(t, markers)
	rs := append(markerRequests(t, f, "demo:plain", "demo:guarded"), request(t, f, Entry, "main"))
	for _, config := range []Config{{}, {Filter: Filter{PIDs: []int{pid}}}, {Attach: PerfEvent}} {
		c := newLooking(t, config)
		place(t, c, rs...)
		s := collect(t, c)
		l := c.Look(s, nil)
		if len(l.Gaps) != 0 {
			t.Errorf("%+v: gaps %+v", config, l.Gaps)
		}
		for i := range s.Probes {
			if found := l.found[s.Probes[i].ID]; found.n[present] != 1 {
				t.Errorf("%+v: %s: %+v", config, s.Probes[i].Function.Name, found.n)
			}
		}
		c.Close()
	}
}

// A semaphore that says that nobody probes is found: the program passes the probe by.
func TestLookDisarmed(t *testing.T) {
	markers := bpftest.Build(t, "markers")
	pid, round := passing(t, markers)
	round() // it has everything mapped
	f := open(t, markers)
	c := newLooking(t, Config{})
	place(t, c, request(t, f, USDT, "demo:guarded"))
	p := &collect(t, c).Probes[0]
	if e := c.Why(p, nil); e.Proven || e.Causes[0] != "no thread passed it" {
		t.Errorf("in order: %q", e.Causes)
	}
	overwrite(t, pid, f, p.Points[0].Semaphore, []byte{0, 0}, false)
	e := c.Why(p, nil)
	if want := "the semaphore of the probe is 0 in markers"; !e.Proven || !strings.HasPrefix(e.Causes[0], want) {
		t.Errorf("%q, want %q", e.Causes, want)
	}
}

// While one look is held up, nobody begins another.
func TestOneLookAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Collector{looking: time.Second, surveying: make(chan struct{}, 1)}
		held := make(chan struct{})
		if c.timely(func() *Look { <-held; return &Look{} }) != nil {
			t.Error("it is not held up")
		}
		for range 3 {
			if c.timely(func() *Look { t.Error("another look began"); return &Look{} }) != nil {
				t.Error("it found something")
			}
		}
		close(held)
		synctest.Wait()
		if c.timely(func() *Look { return &Look{} }) == nil {
			t.Error("it finds nothing any more")
		}
	})
}
