package probes

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"uprobetop/symbols"
)

// idle is a copy of cat, started several times, which waits for its end.
type idle struct {
	path string
	pids []int
	end  []func()
}

func startIdle(t testing.TB, n int) *idle {
	t.Helper()
	cat, err := exec.LookPath("cat")
	if err != nil {
		t.Skipf("no cat: %v", err)
	}
	content, err := os.ReadFile(cat)
	if err != nil {
		t.Fatal(err)
	}
	idle := &idle{path: filepath.Join(t.TempDir(), "worker")}
	if err := os.WriteFile(idle.path, content, 0o755); err != nil {
		t.Fatal(err)
	}
	for range n {
		cmd := exec.Command(idle.path)
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
		end := func() { in.Close(); cmd.Wait() }
		t.Cleanup(end)
		idle.pids, idle.end = append(idle.pids, cmd.Process.Pid), append(idle.end, end)
		// Its answer says that everything is mapped.
		if _, err := io.WriteString(in, "?\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	return idle
}

func processes(t testing.TB, f Filter) *Target {
	t.Helper()
	target, err := Processes(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { target.Close() })
	return target
}

// The files of several processes are opened once each, and all have to end.
func TestProcesses(t *testing.T) {
	workers := startIdle(t, 3)
	single := processes(t, Filter{PIDs: workers.pids[:1]})
	if want := fmt.Sprintf("worker %d", workers.pids[0]); single.Label != want {
		t.Errorf("one is called %s, want %s", single.Label, want)
	}
	all := processes(t, Filter{PIDs: workers.pids})
	if all.Label != "3 processes of worker" || !slices.Equal(all.Filter().PIDs, workers.pids) {
		t.Errorf("%s, filter %+v", all.Label, all.Filter())
	}
	if len(all.Files) != len(single.Files) {
		t.Errorf("three processes have %d files, one has %d", len(all.Files), len(single.Files))
	}
	if self := processes(t, Filter{PIDs: []int{workers.pids[0], os.Getpid()}}); self.Label != "2 processes" || !self.HasFile("worker") || !self.HasFile(exe(t)) {
		t.Errorf("two programs: %s with %d files", self.Label, len(self.Files))
	}
	// The kernel is told of a few processes; of the 17th on it is not.
	if all.Hazards("").Shared != "" || single.Hazards("").Shared != "" {
		t.Errorf("others share the libraries of three processes (%q), of one (%q)", all.Hazards("").Shared, single.Hazards("").Shared)
	}
	all.filter.PIDs = append(slices.Clone(workers.pids), make([]int, 14)...)
	if all.Hazards("").Shared == "" {
		t.Error("nobody shares the libraries of 17 processes")
	}
	all.filter.PIDs = workers.pids
	for i, end := range workers.end {
		if all.Ended() {
			t.Errorf("ended with %d still there", 3-i)
		}
		end()
	}
	if !all.Ended() || !single.Ended() {
		t.Error("not ended after the last one")
	}
	if _, err := Processes(Filter{PIDs: []int{os.Getpid(), workers.pids[0]}}); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("one that is gone: %v", err)
	}
}

func exe(t testing.TB) string {
	t.Helper()
	path, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A thread's files are its process's, and its hits alone count.
func TestThreadTarget(t *testing.T) {
	tids, err := os.ReadDir("/proc/self/task")
	if err != nil || len(tids) < 2 {
		t.Fatalf("%d threads: %v", len(tids), err)
	}
	tid, _ := strconv.Atoi(tids[len(tids)-1].Name())
	target := processes(t, Filter{TIDs: []int{tid}})
	f := target.Filter()
	if len(f.PIDs) != 0 || !slices.Equal(f.TIDs, []int{tid}) || !target.HasFile(exe(t)) || target.Ended() {
		t.Errorf("filter %+v, %d files", f, len(target.Files))
	}
	if want := fmt.Sprintf("thread %d of probes.test %d", tid, os.Getpid()); target.Label != want {
		t.Errorf("it is called %s, want %s", target.Label, want)
	}
}

// A path names a file that a process knows by another one.
func TestPathOfMapped(t *testing.T) {
	workers := startIdle(t, 1)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(workers.path, link); err != nil {
		t.Fatal(err)
	}
	target := processes(t, Filter{PIDs: workers.pids})
	if !target.Narrow(link) || len(target.Files) != 1 || target.Files[0].Path != workers.path {
		t.Errorf("%s is not %s", link, workers.path)
	}
	if !target.HasFile("libc") {
		t.Error("libc is not to be had after the target was narrowed")
	}
	if target.Narrow("/etc/passwd") || target.Narrow("nothing") {
		t.Error("what is not mapped is a file of the target")
	}
}

// Two names of one file are one file, and what cannot be read is left out if
// something can.
func TestFileTarget(t *testing.T) {
	self := exe(t)
	target := fileTarget(t, "/nothing", self, "/proc/self/exe")
	if len(target.Files) != 1 || !target.Filter().Everybody() || target.Ended() {
		t.Errorf("%d files, filter %+v", len(target.Files), target.Filter())
	}
	if _, err := FileTarget("/nothing", "/nowhere"); err == nil {
		t.Error("nothing at all is a target")
	}
	other := startIdle(t, 0).path
	if err := target.Add(other); err != nil || len(target.Files) != 2 || target.Label != "probes.test, worker" {
		t.Errorf("%v: %s", err, target.Label)
	}
	if err := target.Only(other); err != nil || len(target.Files) != 1 || target.Label != "worker" || !target.HasFile(self) {
		t.Errorf("%v: %s", err, target.Label)
	}
}

func BenchmarkProcesses(b *testing.B) {
	node, err := exec.LookPath("node")
	if err != nil {
		b.Skip("no large program")
	}
	for _, n := range []int{1, 10} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			var pids []int
			for range n {
				cmd := exec.Command(node, "-e", "console.log(1); setInterval(() => {}, 1e6)")
				out, err := cmd.StdoutPipe()
				if err != nil {
					b.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					b.Fatal(err)
				}
				defer func() { cmd.Process.Kill(); cmd.Wait() }()
				if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
					b.Fatal(err)
				}
				pids = append(pids, cmd.Process.Pid)
			}
			var f *symbols.File
			for b.Loop() {
				target, err := Processes(Filter{PIDs: pids})
				if err != nil {
					b.Fatal(err)
				}
				f = target.Files[0]
				target.Close()
			}
			b.ReportMetric(float64(len(f.Functions)), "functions")
		})
	}
}
