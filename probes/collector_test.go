package probes

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"uprobetop/bpf"
	"uprobetop/bpf/bpftest"
	"uprobetop/symbols"
)

// A ring that is far too small, and read by nobody for many flushes, delays
// numbers, says so, and falsifies none.
func TestFullRing(t *testing.T) {
	target := bpftest.Build(t, "calls")
	f := open(t, target)
	c := newCollectorHere(t, Config{RingBytes: os.Getpagesize()})
	rs := []Request{request(t, f, Return, "work"), request(t, f, Return, "run"), request(t, f, Return, "main")}
	for range 24 { // more records than a page holds
		rs = append(rs, request(t, f, Entry, "work"))
	}
	place(t, c, rs...)
	made := truth(t, target, "4", "5000")["calls"]
	const flushes = 50
	for range flushes {
		if _, err := c.objs.Flush(0, c.slots.used, time.Second); err != nil {
			t.Fatal(err)
		}
	}
	s := finish(t, c)
	if s.Lost.Cells < flushes {
		t.Errorf("%d flushes found the ring full, %d records are said to have been lost", flushes, s.Lost.Cells)
	}
	for i := range s.Probes {
		p := &s.Probes[i]
		if p.Function.Name == "work" {
			equal(t, "hits", p.Hits, made)
		}
		checkBooks(t, p)
	}
	equal(t, "returned", s.Probes[0].Returned, made)
}

// One function is timed once: the frames of two probes on it would be mistaken
// for each other.
func TestTimedTwice(t *testing.T) {
	target := bpftest.Build(t, "calls")
	f := open(t, target)
	c := newCollectorHere(t, Config{})
	r := request(t, f, Return, "work")
	place(t, c, r)
	if err := c.Place(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	made := truth(t, target, "2", "500")["calls"]
	s := finish(t, c)
	equal(t, "returned", s.Probes[0].Returned, made)
	if s.Probes[1].State != Refused {
		t.Errorf("the second one is %s", s.Probes[1].State)
	}
}

// The terms of the ledger are counted, not inferred: a pop that is lost shows.
func TestBooksCanFail(t *testing.T) {
	target := bpftest.Build(t, "calls")
	f := open(t, target)
	c := newCollectorHere(t, Config{})
	place(t, c, request(t, f, Return, "work"))
	truth(t, target, "2", "1000")
	checkBooks(t, &collect(t, c).Probes[0])
	var cell bpf.Cell
	slot := uint32(c.probes[0].slot) // on CPU 0
	if err := c.objs.Cells.Lookup(slot, &cell); err != nil {
		t.Fatal(err)
	}
	cell.Value[bpf.Popped]-- // as if the kernel side had not taken one frame off
	if err := c.objs.Cells.Put(slot, cell); err != nil {
		t.Fatal(err)
	}
	p := &collect(t, c).Probes[0]
	if p.InFlight != 1 || p.Balance() != -1 {
		t.Errorf("a pop is lost: %d in flight, the books are off by %d", p.InFlight, p.Balance())
	}
}

// Probes come and go while another one counts on, undisturbed and exact; slots
// are used again and their old numbers are gone.
func TestToggle(t *testing.T) {
	target := bpftest.Build(t, "calls")
	f := open(t, target)
	c := newCollectorHere(t, Config{MaxProbes: 3})
	place(t, c, request(t, f, Return, "work"))
	var made uint64
	var wg sync.WaitGroup
	wg.Go(func() { made = truth(t, target, "4", "20000")["calls"] })
	for i := range 20 {
		kind := Kind(i % 2)
		err := c.Place(context.Background(), request(t, f, kind, "run"))
		if err != nil { // both spare slots wait for their links to close
			c.closing.Wait()
			collect(t, c) // sends their last numbers
			collect(t, c) // frees them
			place(t, c, request(t, f, kind, "run"))
		}
		s := collect(t, c)
		p := &s.Probes[len(s.Probes)-1]
		if p.Hits > 4 {
			t.Errorf("probe %d of run starts with %d hits", p.ID, p.Hits)
		}
		if err := c.Remove(p.ID); err != nil {
			t.Fatal(err)
		}
		if collect(t, c).Find(p.ID) != nil {
			t.Error("a removed probe is still listed")
		}
	}
	wg.Wait()
	p := &finish(t, c).Probes[0]
	equal(t, "hits", p.Hits, made)
	equal(t, "returned", p.Returned, made)
	checkBooks(t, p)
}

func collect(t testing.TB, c *Collector) *Snapshot {
	t.Helper()
	s, err := c.Collect()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A slot that is used again, of a probe or of a histogram alone, starts from
// nothing and takes nothing from the row that had it before.
func TestSlotsAreReused(t *testing.T) {
	target := bpftest.Build(t, "calls")
	f := open(t, target)
	c := newCollectorHere(t, Config{MaxProbes: 4, MaxTimed: 1})
	var rows []ID
	for range 12 {
		place(t, c, request(t, f, Return, "work"))
		id := c.probes[len(c.probes)-1].ID
		made := truth(t, target, "2", "500")["calls"]
		if err := c.Stop(id); err != nil {
			t.Fatal(err)
		}
		c.closing.Wait()
		collect(t, c)
		s := collect(t, c)
		rows = append(rows, id)
		for _, old := range rows { // rows keep their numbers
			p := s.Find(old)
			equal(t, "hits", p.Hits, made)
			equal(t, "returned", p.Returned, made)
			checkBooks(t, p)
		}
	}
}

// A stopped probe keeps its numbers and counts no more.
func TestStop(t *testing.T) {
	target := bpftest.Build(t, "calls")
	f := open(t, target)
	c := newCollectorHere(t, Config{})
	place(t, c, request(t, f, Return, "work"))
	made := truth(t, target, "2", "1000")["calls"]
	if err := c.Stop(0); err != nil {
		t.Fatal(err)
	}
	truth(t, target, "2", "1000")
	p := &finish(t, c).Probes[0]
	equal(t, "hits", p.Hits, made)
	if p.State != Stopped {
		t.Errorf("the state is %s", p.State)
	}
	if err := c.Stop(7); err == nil {
		t.Error("there is no probe 7 to stop")
	}
}

// There is room for so many probes, and one too many is told.
func TestNoRoom(t *testing.T) {
	target := bpftest.Build(t, "calls")
	f := open(t, target)
	c := newCollectorHere(t, Config{MaxProbes: 2})
	place(t, c, request(t, f, Entry, "work"), request(t, f, Entry, "run"))
	err := c.Place(context.Background(), request(t, f, Entry, "main"))
	if err == nil || !strings.Contains(err.Error(), "room for 2 probes") {
		t.Errorf("the third of two probes: %v", err)
	}
}

// One point that the kernel refuses does not end the rest.
func TestBadPointAmongGood(t *testing.T) {
	target := bpftest.Build(t, "calls")
	f := open(t, target)
	c := newCollectorHere(t, Config{})
	bad := &symbols.Function{Symbol: symbols.Symbol{Name: "behind_the_end"}, Offset: 1 << 40}
	rs := []Request{request(t, f, Entry, "work"), request(t, f, Entry, "main"), request(t, f, Return, "run")}
	for _, r := range rs {
		if _, err := c.enlist(r); err != nil {
			t.Fatal(err)
		}
	}
	p := &probe{Probe: Probe{ID: c.nextID, File: f, Function: bad}, hist: -1}
	if err := c.reserve(p); err != nil {
		t.Fatal(err)
	}
	c.list(p)
	all := slices.Clone(c.probes)
	c.attachAll(context.Background(), f, all)
	c.begin([]*symbols.File{f}, map[*symbols.File][]*probe{f: all})
	s := collect(t, c)
	for i := range s.Probes {
		st := &s.Probes[i]
		want := Attached
		if st.Function == bad {
			want = Failed
		}
		if st.State != want {
			t.Errorf("%s is %s: %s", st.Function.Name, st.State, st.Note)
		}
	}
	made := truth(t, target, "2", "500")["calls"]
	equal(t, "hits of work", finish(t, c).Probes[0].Hits, made)
}

// TestHelperProcess is no test: it is the uprobetop that TestKilled kills.
func TestHelperProcess(t *testing.T) {
	path := os.Getenv("UPROBETOP_TEST_PROBE")
	if path == "" {
		t.Skip("runs only as a helper of TestKilled")
	}
	f := open(t, path)
	c := newCollectorHere(t, Config{})
	place(t, c, request(t, f, Return, "inner"), request(t, f, Entry, "outer"))
	fmt.Println("standing")
	time.Sleep(time.Hour)
}

// Killed in the middle, the program leaves nothing behind: no programs, no links,
// and the target's code is what the file says.
func TestKilled(t *testing.T) {
	bpftest.Require(t, canProbe())
	path := bpftest.Build(t, "scenes")
	f := open(t, path)
	inner := f.Lookup("inner")[0]
	victim := exec.Command(path, "sleep")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { victim.Process.Kill(); victim.Wait() })

	before := programs(t)
	tool := exec.Command(os.Args[0], "-test.run=^TestHelperProcess$", "-test.v")
	tool.Env = append(os.Environ(), "UPROBETOP_TEST_PROBE="+path, "UPROBETOP_TEST_CHILD=1")
	out, err := tool.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := tool.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "standing") {
	}
	if code := codeAt(t, victim.Process.Pid, f, inner); code[0] != 0xcc {
		t.Errorf("there is no breakpoint at inner: % x", code)
	}
	if n := len(programs(t)); n <= len(before) {
		t.Errorf("there are %d programs with probes, %d without", n, len(before))
	}
	if err := tool.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, out)
	_ = tool.Wait()
	want, err := f.Code(inner, 8)
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Second)
	for {
		code, left := codeAt(t, victim.Process.Pid, f, inner), newPrograms(t, before)
		if bytes.Equal(code, want) && left == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("a second after the kill: code % x, want % x; %d programs are left", code, want, left)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func canProbe() error {
	c, err := New(Config{})
	if err == nil {
		return c.Close()
	}
	return err
}

// programs are the ids of uprobetop's loaded programs.
func programs(t *testing.T) map[ebpf.ProgramID]bool {
	t.Helper()
	ids := map[ebpf.ProgramID]bool{}
	var id ebpf.ProgramID
	for {
		var err error
		if id, err = ebpf.ProgramGetNextID(id); errors.Is(err, os.ErrNotExist) {
			return ids
		} else if err != nil {
			t.Fatal(err)
		}
		p, err := ebpf.NewProgramFromID(id)
		if err != nil {
			continue // gone meanwhile
		}
		if info, err := p.Info(); err == nil && (info.Name == "enter" || info.Name == "leave" || info.Name == "flush") {
			ids[id] = true
		}
		p.Close()
	}
}

func newPrograms(t *testing.T, before map[ebpf.ProgramID]bool) (n int) {
	t.Helper()
	for id := range programs(t) {
		if !before[id] {
			n++
		}
	}
	return n
}

// codeAt reads a function's first bytes from a process's memory.
func codeAt(t *testing.T, pid int, f *symbols.File, fn *symbols.Function) []byte {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		var start, end, offset uint64
		var perms, dev, path string
		var inode uint64
		if n, _ := fmt.Sscanf(line, "%x-%x %s %x %s %d %s", &start, &end, &perms, &offset, &dev, &inode, &path); n < 7 {
			continue
		}
		at := uint64(fn.Offset)
		if inode != f.Ino || !strings.Contains(perms, "x") || at < offset || at >= offset+end-start {
			continue
		}
		mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
		if err != nil {
			t.Fatal(err)
		}
		defer mem.Close()
		code := make([]byte, 8)
		if _, err := mem.ReadAt(code, int64(start+at-offset)); err != nil {
			t.Fatal(err)
		}
		return code
	}
	t.Fatalf("process %d does not map %s", pid, filepath.Base(f.Path))
	return nil
}

// A user who leaves while probes are being placed and taken away leaves nothing
// behind.
func TestCloseWhilePlacing(t *testing.T) {
	target := bpftest.Build(t, "calls")
	f := open(t, target)
	before := programs(t)
	c := newCollectorHere(t, Config{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5 {
				if c.Place(context.Background(), request(t, f, Entry, "work"), request(t, f, Entry, "run")) != nil {
					return
				}
			}
		})
	}
	collect(t, c)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if err := c.Place(context.Background(), request(t, f, Entry, "work")); err == nil {
		t.Error("a closed collector places a probe")
	}
	// The kernel frees programs a moment after their last user.
	for deadline := time.Now().Add(5 * time.Second); newPrograms(t, before) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d programs are left", newPrograms(t, before))
		}
	}
}

// Points that the kernel refuses neither cost the others hits nor shift the time
// in which they count: all begin together, when the last one is settled.
func TestAllBeginTogether(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("x86-64 only")
	}
	f := open(t, bpftest.Compile(t, "testdata/first.c"))
	calls := open(t, bpftest.Build(t, "calls"))
	c := newCollectorHere(t, Config{})
	place(t, c) // nothing
	if err := c.Place(context.Background(), request(t, calls, Return, "work"), request(t, f, Entry, "plain"),
		request(t, f, Entry, "ports"), request(t, f, Entry, "main"), request(t, calls, Entry, "run")); err != nil {
		t.Fatal(err)
	}
	s := collect(t, c)
	for i := range s.Probes {
		p := &s.Probes[i]
		if p.Function.Name == "ports" {
			continue
		}
		if p.State != Attached || p.Placed != 0 {
			t.Errorf("%s is %s, from %v on", p.Function.Name, p.State, p.Placed)
		}
	}
}
