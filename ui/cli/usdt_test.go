package cli

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"uprobetop/bpf/bpftest"
)

// Usdt probes stand behind the functions, or alone if they are asked for.
func TestListUsdt(t *testing.T) {
	markers := target(t, "markers")
	r := run(t, "list", markers)
	all := functionColumn(r.out)
	if n := len(all); n < 5 || !strings.HasPrefix(all[n-4], "demo:guarded (2 sites; semaphore; arguments -4@") || all[n-1] != "other:plain" ||
		!strings.Contains(r.out, " functions, 4 usdt probes, ") || !regexp.MustCompile(`  usdt   – +demo:two  \(2 sites`).MatchString(r.out) {
		t.Errorf("%+v", r)
	}
	for pattern, want := range map[string]int{
		"usdt:": 4, "usdt:*": 4, "usdt:demo:": 3, "usdt:demo:*": 3, "usdt:plain": 2, "usdt:lai": 2, "usdt:other:plain": 1, "plain": 2, "*plain": 2, "two": 1,
		"usdt:" + filepath.Base(markers) + ":": 4,
	} {
		if r := run(t, "list", markers, pattern); len(functionColumn(r.out)) != want || r.status != 0 {
			t.Errorf("%s: %+v, want %d", pattern, r, want)
		}
	}
	if r := run(t, "list", markers, "usdt:pain"); r.status != 3 || !strings.Contains(r.errors, "no usdt probe in markers is called pain: the nearest name is plain") {
		t.Errorf("%+v", r)
	}
	for _, name := range []string{"two", "demo:two"} {
		if r := run(t, "stat", markers, name); r.status != 3 || !strings.Contains(r.errors, ": usdt:"+name+" is a usdt probe\n") {
			t.Errorf("%s: %+v", name, r)
		}
	}
	var o map[string]any
	if r := run(t, "list", "-o", "json", markers, "usdt:guarded"); json.Unmarshal([]byte(r.out), &o) != nil {
		t.Fatalf("%+v", r)
	}
	point := o["points"].([]any)[0].(map[string]any)
	if o["type"] != "usdt" || o["name"] != "demo:guarded" || o["probe"] != "count" || point["semaphore"] == nil || point["arguments"] == nil {
		t.Errorf("%v", o)
	}
}

// What the command passes is counted, at every site, by a name, a pattern and a full
// spec, and by either way of attaching.
func TestStatUsdt(t *testing.T) {
	requireBPF(t)
	markers := target(t, "markers")
	for _, args := range [][]string{
		{"usdt:demo:two", "usdt:guarded", "usdt:other:*"},
		{"--attach", "perf", markers, "usdt:*"},
		{"usdt:" + markers + ":demo:two", "usdt:" + markers + "::guarded", "usdt:markers:other:plain"},
	} {
		r := run(t, append(append([]string{"stat", "-o", "json"}, args...), "--", markers, "300")...)
		var plain, two, guarded, other, many, semaphore uint64
		var said, numbers string
		for line := range strings.Lines(r.out) {
			if strings.HasPrefix(line, "{") {
				numbers += line
			} else {
				said += line
			}
		}
		if _, err := fmt.Sscan(said, &plain, &two, &guarded, &other, &many, &semaphore); err != nil || semaphore != 2 {
			t.Fatalf("%v: %v in %+v", args, err, r)
		}
		want := map[string]uint64{"demo:plain": plain, "demo:two": two, "demo:guarded": guarded, "other:plain": other}
		for _, p := range lastLine(t, numbers).Probes {
			if p.Kind != "usdt" || p.Hits != want[p.Name] || p.Hits == 0 {
				t.Errorf("%v: %+v, want %d", args, p, want[p.Name])
			}
		}
	}
}

// A usdt probe of a process is found in the files that it has mapped.
func TestStatUsdtProcess(t *testing.T) {
	requireBPF(t)
	markers := target(t, "markers")
	p := strconv.Itoa(startWaiting(t, "", target(t, "allocs")).Process.Pid)
	if r := run(t, "stat", "-d", "10ms", "-p", p, "usdt:nobody:plain"); r.status != 3 || !strings.Contains(r.errors, "no file nobody mapped") {
		t.Errorf("%+v", r)
	}
	const none = cobra.ShellCompDirectiveNoFileComp
	for text, want := range map[string]string{
		"usdt:p": "usdt:plain", "usdt:demo:p": "usdt:demo:plain", "usdt:": "usdt:guarded usdt:plain usdt:two", "dem": "",
	} {
		if got, directive := completions(t, "", "stat", markers, text); !slices.Equal(got, strings.Fields(want)) || directive != none {
			t.Errorf("%s: %q %d", text, got, directive)
		}
	}
}

// That the target ends leaves the numbers of its usdt probes exact.
func TestStatUsdtEnds(t *testing.T) {
	requireBPF(t)
	markers := target(t, "markers")
	w := exec.Command(markers, "300", "lines")
	in, out := bpftest.Start(t, w)
	if _, err := in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := out.ReadString('\n'); err != nil { // it runs its own code
		t.Fatal(err)
	}
	cmd := program("stat", "-p", strconv.Itoa(w.Process.Pid), "usdt:demo:two")
	r := finish(t, cmd, func() {
		waitForProbe(t, cmd.Process.Pid)
		in.Write([]byte("\n"))
		out.ReadString('\n')
		in.Close()
	})
	if r.status != 0 || !strings.Contains(r.out, "\nexact: every hit is counted\n") || !strings.Contains(r.out, "450") {
		t.Errorf("%+v", r)
	}
}

// A usdt probe is on the screen by its spec, counts, and comes and goes with a key.
func TestScreenUsdt(t *testing.T) {
	requireBPF(t)
	markers := target(t, "markers")
	x := openTerminal(t, 120, 40, markers, "usdt:demo:two")
	x.wait(`◆ demo:two +usdt`)
	if out, err := exec.Command(markers, "300").Output(); err != nil || !strings.HasPrefix(string(out), "300 450 ") {
		t.Fatalf("the target says %q: %v", out, err)
	}
	x.press("4")
	x.wait(`450 +hits`)
	x.press("r")
	x.wait(`demo:two cannot be timed: a usdt probe is a point in the code`)
	x.press(" ")
	x.wait(`○ demo:two`)
	x.press(" ")
	x.wait(`◆ demo:two +usdt`)
	x.leave(termios(t))
}
