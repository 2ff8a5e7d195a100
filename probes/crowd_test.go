package probes

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"uprobetop/bpf/bpftest"
)

// Threads and processes that live for one call, and a path on which every function
// is probed, by many more threads than there are CPUs.
func TestKernelCrowd(t *testing.T) {
	f := open(t, bpftest.Build(t, "crowd"))
	c := newCollectorHere(t, Config{})
	rs := []Request{request(t, f, Return, "brief")}
	hot := 200
	if c.Snapshot().Method != string(UprobeMulti) {
		hot = 20 // each takes 0.1 s to leave
	}
	for i := range hot {
		rs = append(rs, request(t, f, Return, fmt.Sprintf("h%d", i)))
	}
	place(t, c, rs...)
	briefly := truth(t, f.Path, "threads", "2000")["calls"] + truth(t, f.Path, "processes", "500")["calls"]
	through := truth(t, f.Path, "hot", "64", "4")["calls"]
	s := finish(t, c)
	checkLedger(t, &s.Probes[0], want{hits: briefly, returned: briefly})
	equal(t, "brief", briefly, 2500)
	equal(t, "through", through, 64*4)
	for i := range hot {
		checkLedger(t, &s.Probes[1+i], want{hits: through, returned: through})
	}
}

// Another tracer's return probes take from the same 64, and a function that both
// probe takes one alone. What bpftrace counts is the same.
func TestKernelBesideBpftrace(t *testing.T) {
	bpftest.Long(t)
	bpftrace, err := exec.LookPath("bpftrace")
	if err != nil {
		t.Skip("there is no bpftrace")
	}
	f := ends(t)
	const times = 3
	for _, depth := range []uint64{63, 65, 5000} {
		t.Run(strconv.FormatUint(depth, 10), func(t *testing.T) {
			both, odd := newCollectorHere(t, Config{}), newCollectorHere(t, Config{})
			place(t, both, request(t, f, Return, "odd"), request(t, f, Return, "even"))
			place(t, odd, request(t, f, Return, "odd"), request(t, f, Entry, "even"))
			out, err := exec.Command(bpftrace, "-e", fmt.Sprintf(`uretprobe:%s:even { @returns = count(); }`, f.Path),
				"-c", fmt.Sprintf("%s mutual %d %d", f.Path, depth, times)).Output()
			if err != nil {
				t.Fatalf("bpftrace: %v: %s", err, out)
			}
			said := map[string]uint64{}
			for line := range strings.Lines(string(out)) {
				var name string
				var n uint64
				if k, _ := fmt.Sscan(line, &name, &n); k == 2 {
					said[name] = n
				}
			}
			equal(t, "calls", said["odd"]+said["even"], times*depth)
			kept := min(depth, 64)
			wantOdd := want{hits: said["odd"], returned: times * ((kept + 1) / 2)}
			wantOdd.depth = wantOdd.hits - wantOdd.returned
			wantEven := want{hits: said["even"], returned: times * (kept / 2)}
			wantEven.depth = wantEven.hits - wantEven.returned
			s := finish(t, both)
			checkLedger(t, &s.Probes[0], wantOdd)
			checkLedger(t, &s.Probes[1], wantEven)
			equal(t, "even returned, by bpftrace", said["@returns:"], wantEven.returned)
			s = finish(t, odd)
			checkLedger(t, &s.Probes[0], wantOdd)
			equal(t, "even hits", s.Probes[1].Hits, said["even"])
		})
	}
}

// Calls that are under way when a probe comes or goes count for no other one: those
// that began before have no hit, those that it leaves behind no return.
func TestKernelMidCall(t *testing.T) {
	f := ends(t)
	const threads = 8
	began, after := newCollectorHere(t, Config{}), newCollectorHere(t, Config{})
	cmd := exec.Command(f.Path, "waits", strconv.Itoa(threads))
	place(t, began, request(t, f, Return, "a"), request(t, f, Return, "b"))
	place(t, began, request(t, f, Return, "c"))
	in, out := bpftest.Start(t, cmd)
	if line, err := out.ReadString('\n'); line != "inside 8\n" {
		t.Fatalf("the target says %q: %v", line, err)
	}
	place(t, after, request(t, f, Return, "a"), request(t, f, Return, "b"), request(t, f, Return, "c"))
	if err := began.Stop(2); err != nil {
		t.Fatal(err)
	}
	began.closing.Wait()
	if err := began.Place(context.Background(), request(t, f, Return, "c")); err != nil {
		t.Fatal(err)
	}
	in.Close()
	for { // to its end
		if _, err := out.ReadString('\n'); err != nil {
			break
		}
	}
	s := finish(t, began)
	checkLedger(t, &s.Probes[0], want{hits: threads, returned: threads})
	checkLedger(t, &s.Probes[1], want{hits: threads, returned: threads})
	stopped, again := &s.Probes[2], &s.Probes[3]
	equal(t, "hits of the one that was stopped", stopped.Hits, threads)
	equal(t, "its returns", stopped.Returned, 0)
	equal(t, "those that it left in flight", uint64(stopped.InFlight), threads)
	checkBooks(t, stopped)
	checkLedger(t, again, want{orphans: threads})
	s = finish(t, after)
	for i := range s.Probes {
		checkLedger(t, &s.Probes[i], want{orphans: threads})
	}
}
