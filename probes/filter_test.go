package probes

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"uprobetop/bpf"
	"uprobetop/bpf/bpftest"
	"uprobetop/symbols"
)

// The filter lets one thread of a process through, and another one's not.
func TestKernelThreadFilter(t *testing.T) {
	target := bpftest.Build(t, "slow")
	f := open(t, target)
	tids, goOn := startThreads(t, exec.Command(target, "threads", "4", "500"), 4)
	c := newCollectorHere(t, Config{Filter: Filter{TIDs: tids[1:3]}})
	place(t, c, request(t, f, Return, "step"))
	goOn()
	p := &finish(t, c).Probes[0]
	equal(t, "hits", p.Hits, 1000)
	equal(t, "returned", p.Returned, 1000)
	equal(t, "filtered", p.Filtered, 1000)
	equal(t, "orphans", p.Orphans, 0)
	checkBooks(t, p)
}

// Of several processes each counts, and nobody else: the kernel is asked to probe
// only these.
func TestKernelProcessesFilter(t *testing.T) {
	target := bpftest.Build(t, "slow")
	f := open(t, target)
	var pids []int
	var goOn []func()
	for range 3 {
		cmd := exec.Command(target, "threads", "2", "300")
		_, next := startThreads(t, cmd, 2)
		pids, goOn = append(pids, cmd.Process.Pid), append(goOn, next)
	}
	c := newCollectorHere(t, Config{Filter: Filter{PIDs: pids[:2]}})
	place(t, c, request(t, f, Return, "step"))
	for _, next := range goOn {
		next()
	}
	p := &finish(t, c).Probes[0]
	equal(t, "hits", p.Hits, 2*2*300)
	equal(t, "returned", p.Returned, 2*2*300)
	checkBooks(t, p)
}

// testCgroup makes a cgroup, and one below it.
func testCgroup(t *testing.T) (upper, lower string) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if field := strings.Fields(line); field[2] == "cgroup2" {
			upper = filepath.Join(field[1], "uprobetop-test-"+strconv.Itoa(os.Getpid()))
		}
	}
	if upper == "" {
		t.Skip("no cgroup v2 is mounted")
	}
	lower = filepath.Join(upper, "lower")
	if err := os.MkdirAll(lower, 0o755); err != nil {
		t.Skipf("no cgroup can be made here: %v", err)
	}
	t.Cleanup(func() {
		for _, dir := range []string{lower, upper} {
			if err := os.Remove(dir); err != nil {
				t.Error(err)
			}
		}
	})
	return upper, lower
}

// within starts a program in a cgroup.
func within(t *testing.T, directory string, argv ...string) *exec.Cmd {
	t.Helper()
	d, err := os.Open(directory)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(d.Fd())}
	return cmd
}

// A cgroup lets through whoever is in it or below, also those that come later.
func TestKernelCgroupFilter(t *testing.T) {
	target := bpftest.Build(t, "slow")
	f := open(t, target)
	upper, lower := testCgroup(t)
	for _, directory := range []string{upper, lower} {
		t.Run(filepath.Base(directory), func(t *testing.T) {
			c := newCollectorHere(t, Config{Filter: Filter{Cgroups: []string{directory}}})
			place(t, c, request(t, f, Return, "step"))
			truth(t, target, "slow", "100", "0") // in neither
			for _, d := range []string{upper, lower} {
				if out, err := within(t, d, target, "slow", "50", "0").CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			want := uint64(200)
			if directory == lower {
				want = 100
			}
			p := &finish(t, c).Probes[0]
			equal(t, "hits", p.Hits, want)
			equal(t, "returned", p.Returned, want)
			equal(t, "filtered", p.Filtered, 400-want)
			checkBooks(t, p)
		})
	}
}

// A process, a thread and a cgroup add up.
func TestKernelMixedFilter(t *testing.T) {
	target := bpftest.Build(t, "slow")
	f := open(t, target)
	upper, _ := testCgroup(t)
	process := exec.Command(target, "threads", "2", "10")
	_, first := startThreads(t, process, 2)
	threads := exec.Command(target, "threads", "2", "100")
	tids, second := startThreads(t, threads, 2)
	c := newCollectorHere(t, Config{Filter: Filter{
		PIDs: []int{process.Process.Pid}, TIDs: tids[:1], Cgroups: []string{upper},
	}})
	place(t, c, request(t, f, Entry, "step"))
	first()
	second()
	if out, err := within(t, upper, target, "slow", "500", "0").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p := &finish(t, c).Probes[0]
	equal(t, "hits", p.Hits, 20+100+1000)
	equal(t, "filtered", p.Filtered, 100)
}

// What is no cgroup, or too many of them, is said in a sentence.
func TestNoCgroup(t *testing.T) {
	for name, dirs := range map[string][]string{
		"no directory": {"/nonexistent"}, "no cgroup": {"/tmp"}, "many": make([]string, 65),
	} {
		c, err := New(Config{Filter: Filter{Cgroups: dirs}})
		if err == nil {
			c.Close()
			t.Errorf("%s: it is accepted", name)
			continue
		}
		if name != "many" {
			bpftest.Require(t, Supported())
		}
		t.Log(err)
	}
}

// One of several processes has ended before it could be probed: the others are.
func TestKernelOneEnded(t *testing.T) {
	target := bpftest.Build(t, "slow")
	f := open(t, target)
	gone := exec.Command(target, "slow", "1", "0")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(target, "threads", "2", "300")
	tids, goOn := startThreads(t, cmd, 2)
	for _, filter := range []Filter{{PIDs: []int{gone.Process.Pid, cmd.Process.Pid}}, {TIDs: append(tids, gone.Process.Pid)}} {
		c := newCollectorHere(t, Config{Filter: filter})
		place(t, c, request(t, f, Return, "step"), request(t, f, Entry, "around"))
		defer func() { equal(t, "hits", finish(t, c).Probes[0].Hits, 600) }()
	}
	goOn()
	for _, filter := range []Filter{{PIDs: []int{gone.Process.Pid}}, {TIDs: []int{gone.Process.Pid}}} {
		if HostWide(filter, "") {
			continue // a kernel that cannot be told whom does not know that nobody is left
		}
		c, err := New(Config{Filter: filter})
		if err == nil {
			err = c.Place(t.Context(), request(t, f, Entry, "step"))
			if s := finish(t, c).Probes[0]; err == nil && s.State == Failed && s.Note == errEnded.Error() {
				err = errEnded
			}
			c.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "ended") {
			t.Errorf("%+v: %v", filter, err)
		}
	}
}

// Who pays is told for each way of attaching.
func TestHostWide(t *testing.T) {
	bpftest.Require(t, canProbe())
	one := Filter{PIDs: []int{1}}
	if HostWide(one, UprobeMulti) == bpf.ProcessFilter() || !HostWide(one, PerfEvent) || !HostWide(Filter{}, UprobeMulti) ||
		!HostWide(Filter{PIDs: []int{1}, Follow: true}, UprobeMulti) || !HostWide(Filter{Cgroups: []string{"/"}}, "") {
		t.Error("HostWide is wrong")
	}
}

// A process whose first thread has ended is probed as any other.
func TestKernelFirstThreadEnded(t *testing.T) {
	target := bpftest.Build(t, "slow")
	f := open(t, target)
	cmd := exec.Command(target, "lead", "700")
	tids, goOn := startThreads(t, cmd, 1)
	pid := cmd.Process.Pid
	for deadline := time.Now().Add(20 * time.Second); !symbols.FirstEnded(pid); {
		if time.Now().After(deadline) {
			t.Fatal("its first thread does not end")
		}
	}
	var all []*Collector
	for _, filter := range []Filter{{PIDs: []int{pid}}, {TIDs: tids}} {
		found, err := Processes(filter)
		if err != nil {
			t.Fatal(err)
		}
		if !found.HasFile("slow") || found.Ended() {
			t.Errorf("%+v: files %v, ended %v", filter, found.Files, found.Ended())
		}
		found.Close()
		c := newCollectorHere(t, Config{Filter: filter})
		place(t, c, request(t, f, Return, "step"))
		all = append(all, c)
	}
	goOn()
	for _, c := range all {
		p := &finish(t, c).Probes[0]
		equal(t, "returned", p.Returned, 700)
		checkBooks(t, p)
	}
}
