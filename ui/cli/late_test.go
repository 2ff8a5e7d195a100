package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"uprobetop/bpf/bpftest"
)

// A reader that is stopped for 3 s makes one long interval of them, with the rate that
// it had: no hit and no call is missing, and what was not reported is counted.
func TestStatLate(t *testing.T) {
	bpftest.Long(t)
	requireBPF(t)
	calls := target(t, "calls")
	cmd := program("stat", "-o", "json", "--slow", "1ns", calls, "work")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	made := uint64(0)
	work := func() {
		t.Helper()
		said, err := exec.Command(calls, "2", "2000").Output()
		if err != nil {
			t.Fatal(err)
		}
		n, _ := strconv.ParseUint(strings.TrimSpace(string(said)), 10, 64)
		made += n
	}
	snapshots := make(chan lateLine, 1<<10)
	reported := make(chan uint64, 1)
	go lateLines(t, bufio.NewScanner(out), snapshots, reported)
	waitForProbe(t, cmd.Process.Pid)
	work()
	all := []lateLine{<-snapshots}
	send(t, cmd, syscall.SIGSTOP)
	waitUntilStopped(t, cmd.Process.Pid)
	for start := time.Now(); time.Since(start) < 3*time.Second; {
		work()
	}
	send(t, cmd, syscall.SIGCONT)
	for all[len(all)-1].Interval < 3 {
		s, open := <-snapshots
		if !open {
			t.Fatalf("it ends after %d snapshots", len(all))
		}
		all = append(all, s)
	}
	work()
	send(t, cmd, syscall.SIGINT)
	for s := range snapshots {
		all = append(all, s)
	}
	long := 0
	for i := 1; i < len(all)-1; i++ {
		was, is := &all[i-1], &all[i]
		hits := is.Probes[0].Hits - was.Probes[0].Hits
		if want := float64(hits) / is.Interval; is.Probes[0].Rate != want {
			t.Errorf("%d hits in %v s are %v a second, it says %v", hits, is.Interval, want, is.Probes[0].Rate)
		}
		if math.Abs(is.Elapsed-was.Elapsed-is.Interval) > 1e-6 {
			t.Errorf("the interval from %v to %v s has %v s", was.Elapsed, is.Elapsed, is.Interval)
		}
		if is.Interval >= 3 {
			long++
		}
	}
	if long != 1 {
		t.Errorf("%d intervals have 3 s or more", long)
	}
	end := &all[len(all)-1]
	p := &end.Probes[0]
	if !end.Final || p.Hits != made || p.Latency.Count != made {
		t.Errorf("%d hits and %d calls at the end, %d were made", p.Hits, p.Latency.Count, made)
	}
	if want := float64(made) / p.Counted; p.Rate != want || p.Counted > end.Elapsed {
		t.Errorf("in all %v a second, want %v; it counted for %v of %v s", p.Rate, want, p.Counted, end.Elapsed)
	}
	held, lost := end.HeldBack.Calls, end.Lost.Calls
	if n := <-reported; n+held+lost != made || held == 0 || lost == 0 {
		t.Errorf("%d calls are reported, %d held back and %d lost, of %d", n, held, lost, made)
	}
	if lost != end.Lost.CallsBy.Full+end.Lost.CallsBy.Busy {
		t.Errorf("%d calls are lost, by cause %+v", lost, end.Lost.CallsBy)
	}
}

// lateLine is a snapshot as it is printed.
type lateLine struct {
	Type     string
	Final    bool
	Elapsed  float64 `json:"elapsed_s"`
	Interval float64 `json:"interval_s"`
	Probes   []struct {
		Hits    uint64
		Rate    float64
		Counted float64                `json:"counted_s"`
		Latency struct{ Count uint64 } `json:"latency_ns"`
	}
	Lost struct {
		Calls   uint64
		CallsBy struct{ Full, Busy uint64 } `json:"calls_by"`
	}
	HeldBack struct{ Calls uint64 } `json:"held_back"`
}

// lateLines reads what stat prints to its end: snapshots, and how many single calls.
func lateLines(t *testing.T, lines *bufio.Scanner, snapshots chan<- lateLine, calls chan<- uint64) {
	defer close(snapshots)
	n := uint64(0)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		var s lateLine
		if bytes.HasPrefix(lines.Bytes(), []byte(`{"schema":"uprobetop/1","type":"call"`)) {
			n++
		} else if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Errorf("%v in %q", err, lines.Text())
		} else {
			snapshots <- s
		}
	}
	calls <- n
}

func send(t *testing.T, cmd *exec.Cmd, s syscall.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func waitUntilStopped(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if i := bytes.LastIndexByte(text, ')'); i > 0 && bytes.HasPrefix(text[i:], []byte(") T")) {
			return
		}
	}
	t.Fatal("it does not stop")
}
