package cli

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"uprobetop/probes"
	"uprobetop/probes/export"
)

type rowLine struct {
	PID, TID, Threads int
	Comm              string
	Hits, Returned    uint64
	Latency           struct{ Count, Sum uint64 } `json:"latency_ns"`
}

// What is printed by thread and by process adds up to what a target counted itself.
func TestStatBy(t *testing.T) {
	requireBPF(t)
	path := target(t, "shorts")
	for by, rows := range map[string]int{"thread": 60, "process": 60} {
		plural := map[string]string{"thread": "threads", "process": "processes"}[by]
		r := run(t, "stat", "-r", "--by", by, "-o", "json", path, "work", "--", path, plural, "60", "5")
		if r.status != 0 {
			t.Fatalf("status %d: %s", r.status, r.errors)
		}
		lines := strings.Split(strings.TrimSpace(r.out), "\n")
		var last struct {
			Probes []struct {
				Hits               uint64
				Threads, Processes []rowLine
				Others             rowLine
			}
		}
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
			t.Fatal(err)
		}
		p := last.Probes[0]
		all := append(p.Threads, p.Processes...)
		sum, returned, calls := p.Others.Hits, p.Others.Returned, p.Others.Latency.Count
		for _, row := range all {
			sum, returned, calls = sum+row.Hits, returned+row.Returned, calls+row.Latency.Count
			if row.Comm != "shorts" || row.Hits != 5 {
				t.Errorf("%+v", row)
			}
		}
		if len(all) != rows || sum != 300 || p.Hits != 300 || returned != 300 || calls != 300 {
			t.Errorf("by %s: %d rows of %d hits, %d returned, %d timed, of %d", by, len(all), sum, returned, calls, p.Hits)
		}
	}
	r := run(t, "stat", "--by", "thread", path, "work", "run", "--", path, "threads", "60", "5")
	if want := regexp.MustCompile(`(?s)work by thread\n.*…\ 40 more threads, 200 hits together\n.*run by thread\n.*… 40 more threads, 40 hits together\n$`); !want.MatchString(r.out) {
		t.Errorf("it prints\n%s", r.out)
	}
}

// The table tells what has no row, and is fit for a terminal.
func TestTablesBy(t *testing.T) {
	s := manyProbes(2)
	s.Elapsed = 30 * time.Second
	p := &s.Probes[1]
	p.Threads = &probes.Threads{Since: time.Second, Counted: 2 * time.Second} // it was stopped then
	for i := range 22 {
		p.Threads.Rows = append(p.Threads.Rows, probes.ThreadShare{PID: 7, TID: 100 + i, Threads: 1, Comm: fmt.Sprintf("a\x1b%d", i), Hits: 10})
	}
	p.Threads.Others.Hits = 30
	for by, want := range map[export.By]string{
		export.ByThread: "… 2 more threads, 20 hits together\n30 hits are of threads that found no room: name fewer functions, or narrow the target\n",
		export.ByProcess: "\nf1 by process\n\n  HITS  SHARE  PER SECOND  PID  THREADS  PROCESS\n" +
			"   220  88.0%         110    7       22  a\\x1b0\n30 hits are of threads",
	} {
		var b strings.Builder
		if err := tablesBy(&b, s, by); err != nil {
			t.Fatal(err)
		}
		if text := b.String(); !strings.Contains(text, want) || strings.ContainsRune(text, 0x1b) || strings.Contains(text, "f0") {
			t.Errorf("by %s it does not say\n%s but\n%s", by, want, text)
		}
	}
}

// On the screen, too, each thread has the calls that it made, and the processes have
// those of their threads.
func TestScreenThreads(t *testing.T) {
	requireBPF(t)
	calls := target(t, "calls")
	x := openTerminal(t, 120, 40, "-r", calls, "work")
	x.wait(`work +ret`)
	x.press("5")
	x.wait(`No thread has hit it since watching began`)
	made, err := exec.Command(calls, "40", "1000").Output()
	if err != nil || string(made) != "40000\n" {
		t.Fatalf("the target says %q: %v", made, err)
	}
	screen := x.wait(`… +\d+ more threads, `)
	rows := regexp.MustCompile(`(?m)^ +\d+ +calls +[\d.]+ +━`).FindAllString(screen, -1)
	more := regexp.MustCompile(`… +(\d+) more threads`).FindStringSubmatch(screen)
	if n, _ := strconv.Atoi(more[1]); len(rows)+n != 40 {
		t.Errorf("%d threads and %d more:\n%s", len(rows), n, screen)
	}
	x.press("y")
	x.wait(`calls ×40 `)
	x.leave(nil)
}
