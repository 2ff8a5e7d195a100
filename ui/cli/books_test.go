package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"uprobetop/bpf/bpftest"
	"uprobetop/probes"
	"uprobetop/probes/export"
	"uprobetop/symbols"
)

// ledger is the part of a JSON object that has to add up.
type ledger struct {
	Final  bool `json:"final"`
	Probes []struct {
		Hits     uint64            `json:"hits"`
		Returned uint64            `json:"returned"`
		InFlight int64             `json:"in_flight"`
		Unwound  uint64            `json:"unwound"`
		Orphans  uint64            `json:"orphans"`
		Missed   map[string]uint64 `json:"missed"`
		Latency  struct {
			Count uint64 `json:"count"`
		} `json:"latency_ns"`
	} `json:"probes"`
}

// Two uprobetops at once, each on one process of the same program: either sees its
// own, and nothing of the other's.
func TestTwoUprobetops(t *testing.T) {
	requireBPF(t)
	path := target(t, "slow")
	calls := []uint64{700, 1100}
	var read []*json.Decoder
	var goOn []io.Writer
	for _, n := range calls {
		cmd := exec.Command(path, "threads", "3", strconv.FormatUint(n, 10))
		in, out := bpftest.Start(t, cmd)
		for range 3 { // the threads are there
			if _, err := out.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		goOn = append(goOn, in)
		top := program("stat", "-r", "-o", "json", "-p", strconv.Itoa(cmd.Process.Pid), "step")
		_, numbers := bpftest.Start(t, top)
		read = append(read, json.NewDecoder(numbers))
		go func() { _ = cmd.Wait() }() // for -p a process that nobody waits for is there still
	}
	var last [2]ledger
	for i, numbers := range read { // both stand
		if err := numbers.Decode(&last[i]); err != nil {
			t.Fatalf("the first object of %d: %v", i, err)
		}
	}
	for _, in := range goOn {
		if _, err := io.WriteString(in, "\n"); err != nil {
			t.Fatal(err)
		}
	}
	for i, numbers := range read {
		for !last[i].Final {
			last[i] = ledger{}
			if err := numbers.Decode(&last[i]); err != nil {
				t.Fatalf("the numbers of %d end: %v", i, err)
			}
		}
		p := last[i].Probes[0]
		if want := 3 * calls[i]; p.Hits != want || p.Returned != want || p.Latency.Count != want || p.Orphans+p.Unwound != 0 || p.InFlight != 0 {
			t.Errorf("of %d calls: %+v", want, p)
		}
	}
}

// Where the kernel side loses frames, every term stays what was counted, and stat
// says that the books are off.
func TestStatBooksAreOff(t *testing.T) {
	f, err := symbols.Open(target(t, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	c, err := probes.New(probes.Config{Object: bpftest.Object(t, "LOSE_POP=7")})
	bpftest.Require(t, err)
	t.Cleanup(func() { c.Close() })
	work := f.Lookup("work")[0]
	if err := c.Place(t.Context(), probes.Request{Kind: probes.Return, File: f, Function: work}); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(f.Path, "2", "2000").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s, err := c.Finish()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := export.JSON(&out, s); err != nil {
		t.Fatal(err)
	}
	var said ledger
	if err := json.NewDecoder(bufio.NewReader(&out)).Decode(&said); err != nil {
		t.Fatal(err)
	}
	p := said.Probes[0]
	if p.Hits != 4000 || p.Returned != 4000 || p.Latency.Count != 4000 || p.Unwound != 0 || p.Missed["depth"]+p.Missed["no_slot"] != 0 || p.InFlight <= 0 {
		t.Errorf("4000 calls: %+v", p)
	}
	text := verdict(s, map[probes.ID]string{0: "work"}, nil)
	if want := "the books of work are off by -" + strconv.FormatInt(p.InFlight, 10); !strings.Contains(text, want) || !strings.HasPrefix(text, "not exact\n") {
		t.Errorf("the verdict is %q, which does not say %q", text, want)
	}
}
