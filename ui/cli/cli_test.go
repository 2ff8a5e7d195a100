package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"uprobetop/bpf/bpftest"
	"uprobetop/probes"
)

// The test binary is also the program under test.
func TestMain(m *testing.M) {
	if os.Getenv("UPROBETOP_TEST_MAIN") == "1" {
		os.Exit(Run(os.Args[1:], Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
	}
	os.Exit(bpftest.Main(m))
}

func program(args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Args[0] = "uprobetop"
	cmd.Env = append(os.Environ(), "UPROBETOP_TEST_MAIN=1")
	return cmd
}

type result struct {
	status      int
	out, errors string
}

func run(t *testing.T, args ...string) result {
	t.Helper()
	return finish(t, program(args...), nil)
}

// finish runs cmd to its end; while, if not nil, is called once it has started.
func finish(t *testing.T, cmd *exec.Cmd, while func()) result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(2*time.Minute, func() { cmd.Process.Kill() })
	defer timer.Stop()
	if while != nil {
		while()
	}
	_ = cmd.Wait()
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

func requireBPF(t *testing.T) {
	t.Helper()
	c, err := probes.New(probes.Config{})
	bpftest.Require(t, err)
	c.Close()
}

// target builds the program that counts its own calls and returns its path.
func target(t *testing.T, name string, flags ...string) string {
	t.Helper()
	return bpftest.Compile(t, "../../probes/testdata/"+name+".c", flags...)
}

// Bad input gets one sentence on stderr, the right status, and no output.
func TestBadInput(t *testing.T) {
	requireBPF(t)
	calls := target(t, "calls")
	stripped := target(t, "calls", "-s", "-static")
	exported := target(t, "calls", "-s", "-rdynamic")
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	self := strconv.Itoa(os.Getpid())
	dynamic := exec.Command("sleep", "600") // the test itself has one file without cgo
	if err := dynamic.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dynamic.Process.Kill(); _ = dynamic.Wait() })
	elf, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	foreign := slices.Clone(elf)
	foreign[18], foreign[19] = 22, 0 // EM_S390
	for _, c := range []struct {
		name   string
		status int
		says   string
		args   []string
	}{
		{"no target", 2, "name a target", nil},
		{"stat of nothing", 2, "name a target", []string{"stat", "-d", "1s", "-r"}},
		{"process 0", 2, "above 0", []string{"stat", "-p", "0", "work"}},
		{"a process of several that is not there", 1, "does not exist", []string{"stat", "-p", self, "-p", "4194300", "work"}},
		{"a process of several that is a word", 2, "-p: an id is a number above 0, and \"x\" is none", []string{"stat", "-p", "1,x", "work"}},
		{"thread 0", 2, "above 0", []string{"stat", "-t", "0", "work"}},
		{"no such thread", 1, "thread 4194300 does not exist", []string{"stat", "-t", "4194300", "work"}},
		{"a file that the process has not", 3, "no file /etc/passwd mapped", []string{"stat", "-p", self, "/etc/passwd", "work"}},
		{"all of nothing", 2, "-a wants a target", []string{"stat", "-a"}},
		{"all and one", 2, "-a means every process", []string{"stat", "-a", "-p", self, "work"}},
		{"all and their children", 2, "-a means every process: leave it out, or --children", []string{"stat", "-a", "--children", calls, "work", "--", calls}},
		{"maybe children", 2, "--children wants true or false, and \"maybe\" is neither", []string{"stat", "--children=maybe", calls, "work"}},
		{"no store", 2, "there is no store \"\"", []string{"stat", "--inflight", "", calls, "work"}},
		{"session cookies of perf events", 2, "session cookies come with uprobe_multi links alone", []string{"stat", "--attach", "perf", "--inflight", "session", calls, "work"}},
		{"by both", 2, "--by: it is given twice, with \"thread\" and \"process\"", []string{"stat", "--by", "thread", "--by", "process", calls, "work"}},
		{"a unit and a command", 2, "not both", []string{"stat", "--unit", "nope", "work", "--", calls}},
		{"half a unit", 2, "--unit wants a name", []string{"stat", "--unit", "a/b", "work"}},
		{"too little of a container", 2, "first 6 letters", []string{"stat", "--container", "abc", "work"}},
		{"a container that is a word", 2, "first 6 letters", []string{"stat", "--container", "webserver", "work"}},
		{"no room at all", 2, "--max-probes", []string{"stat", "--max-probes", "0", calls, "work"}},
		{"a screen without a terminal", 1, "stat prints without one", []string{calls, "work"}},
		{"no such file", 1, "does not exist", []string{"stat", "/nope", "work"}},
		{"no such program", 1, "in PATH", []string{"stat", "no-such-program", "work"}},
		{"an empty word", 1, "in PATH", []string{"stat", "", "work"}},
		{"a directory", 1, "is a directory", []string{"stat", dir + "/", "work"}},
		{"a FIFO", 1, "is a pipe", []string{"stat", fifo, "work"}},
		{"no ELF", 1, "not an ELF file", []string{"stat", file("text", "#!/bin/sh\n"), "work"}},
		{"empty", 1, "empty", []string{"stat", file("empty", ""), "work"}},
		{"cut short", 1, "", []string{"stat", file("cut", string(elf[:100])), "work"}},
		{"another machine", 1, "s390x", []string{"stat", file("foreign", string(foreign)), "work"}},
		{"no symbols", 3, "stripped", []string{"stat", stripped, "work"}},
		{"no such function", 3, "nearest name is work", []string{"stat", calls, "wrok"}},
		{"a function that was stripped", 3, "; it is stripped to the functions it exports, for others install its debug symbols, or name a build that has them with --symbols", []string{"stat", exported, "wrok"}},
		{"one of two missing", 3, "no function wrok", []string{"stat", calls, "work", "wrok"}},
		{"no function", 2, "at least one function", []string{"stat", calls}},
		{"half a spec", 2, "names no function", []string{"stat", calls, "libc:"}},
		{"a kind alone", 2, "names no function", []string{"stat", "uprobe:"}},
		{"a kind without a file", 2, "name a target", []string{"stat", "uretprobe:malloc"}},
		{"a spec of no file", 1, "does not exist", []string{"stat", "uprobe:/nope:work"}},
		{"a spec of no library", 1, "no library \"nope\"", []string{"stat", calls, "work", "nope:work"}},
		{"usdt of none", 3, "calls has no usdt probes", []string{"stat", calls, "usdt:setjmp"}},
		{"usdt timed", 3, "usdt:plain cannot be timed", []string{"stat", "-r", calls, "usdt:plain"}},
		{"a pattern of nothing", 3, "no function matches zzz*", []string{"stat", calls, "zzz*"}},
		{"a pattern near to a name", 3, "nearest name is work", []string{"stat", calls, "wrok*"}},
		{"behind a function's end", 3, "behind the end", []string{"stat", calls, "work+0x100000"}},
		{"an address outside the code", 3, "outside the code", []string{"stat", calls, "0xfffffff0"}},
		{"an address of several files", 3, "name one", []string{"stat", "-p", strconv.Itoa(dynamic.Process.Pid), "0x1000"}},
		{"an offset of no function", 3, "no function wrok", []string{"stat", calls, "wrok+0x10"}},
		{"no such process", 1, "does not exist", []string{"stat", "-p", "4194300", "malloc"}},
		{"a negative process", 2, "above 0", []string{"stat", "-p", "-3", "malloc"}},
		{"a process that is a word", 2, "-p", []string{"stat", "-p", "init", "malloc"}},
		{"a kernel thread", 1, "kernel", []string{"stat", "-p", "2", "malloc"}},
		{"a process and a command", 2, "not both", []string{"stat", "-p", "1", "work", "--", calls}},
		{"no duration", 2, "above 0", []string{"stat", "-d", "0", calls, "work"}},
		{"a negative duration", 2, "above 0", []string{"stat", "-d", "-5s", calls, "work"}},
		{"a duration that is a word", 2, "-d wants a time such as 1s, and \"soon\" is none", []string{"stat", "-d", "soon", calls, "work"}},
		{"a duration without a unit", 2, "-d wants a time such as 1s", []string{"stat", "-d", "1", calls, "work"}},
		{"by what there is not", 2, "thread and process, not \"cpu\"", []string{"stat", "--by", "cpu", calls, "work"}},
		{"a threshold without a unit", 2, "--slow wants a time such as 1s", []string{"--slow", "5", calls, "work"}},
		{"an interval without a unit", 2, "-I wants a time such as 1s", []string{"stat", "-I", "3", calls, "work"}},
		{"room that is a word", 2, "--max-probes wants a number", []string{"stat", "--max-probes", "many", calls, "work"}},
		{"a command for the screen", 2, "only stat runs a command: uprobetop stat -r " + calls + " 'w*' -- " + calls + " 2 800", []string{"-r", calls, "w*", "--", calls, "2", "800"}},
		{"a flag of stat", 2, "-d belongs to stat", []string{"-d", "5s", calls, "work"}},
		{"a long flag of stat", 2, "--interval belongs to stat", []string{"--interval=5s", calls, "work"}},
		{"a flag of several", 2, "-o belongs to doctor, list and stat", []string{calls, "work", "-o", "json"}},
		{"a flag of another command", 2, "-I belongs to stat", []string{"list", "-I", "1s", calls}},
		{"nearly a command", 2, "did you mean stat?", []string{"stta", calls, "work"}},
		{"nearly a command, with a flag of it", 2, "did you mean stat?", []string{"stta", "-d", "1s", calls, "work"}},
		{"nearly a command, with a command", 2, "did you mean stat?", []string{"stta", calls, "work", "--", calls}},
		{"a tiny interval", 2, "at least 10ms", []string{"stat", "-I", "1us", calls, "work"}},
		{"no such format", 2, "table or json", []string{"stat", "-o", "yaml", calls, "work"}},
		{"no such flag", 2, "unknown flag", []string{"stat", "--nope"}},
		{"no command", 2, "no command after --", []string{"stat", calls, "work", "--"}},
		{"no such command", 127, "no program", []string{"stat", calls, "work", "--", "/nope/prog"}},
		{"a command that may not run", 126, "not executable", []string{"stat", calls, "work", "--", filepath.Join(dir, "plain")}},
		{"arguments to demo", 2, "no arguments", []string{"demo", "now"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			plain := filepath.Join(dir, "plain")
			if err := os.WriteFile(plain, elf, 0o644); err != nil {
				t.Fatal(err)
			}
			r := run(t, c.args...)
			if r.status != c.status {
				t.Errorf("status %d, want %d", r.status, c.status)
			}
			if strings.Count(r.errors, "\n") != 1 || !strings.HasPrefix(r.errors, "uprobetop: ") || !strings.Contains(r.errors, c.says) {
				t.Errorf("it says %q, want one sentence with %q", r.errors, c.says)
			}
			if r.out != "" {
				t.Errorf("it prints %q", r.out)
			}
		})
	}
}

type jsonLine struct {
	Schema  string
	Final   bool
	CPUs    int
	Kernel  string
	Elapsed float64 `json:"elapsed_s"`
	Targets []struct{ Path string }
	Filter  struct{ PIDs []int }
	Probes  []struct {
		Name, Symbol, Kind, State, Note string
		Aliases                         []string
		Hits, Filtered                  uint64
		Rate                            float64
		PerCPU                          []struct{ Hits uint64 } `json:"per_cpu"`
		Returned, Orphans               *uint64
		InFlight                        *int64 `json:"in_flight"`
		Missed                          *struct {
			Depth  uint64
			NoSlot uint64 `json:"no_slot"`
		}
		Latency *struct {
			Count   uint64
			Buckets [][3]uint64
		} `json:"latency_ns"`
		Cost *struct{}
	}
}

func lastLine(t *testing.T, out string) jsonLine {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var o jsonLine
	for i, line := range lines {
		o = jsonLine{}
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		if o.Schema != "uprobetop/1" || o.Final != (i == len(lines)-1) {
			t.Fatalf("line %d of %d: schema %q, final %v", i+1, len(lines), o.Schema, o.Final)
		}
	}
	return o
}

// The totals of a command are what it counted itself.
func TestStatCommand(t *testing.T) {
	requireBPF(t)
	calls := target(t, "calls")
	for _, threads := range []int{4, 64} {
		for _, latency := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d/%v", threads, latency), func(t *testing.T) {
				out := filepath.Join(t.TempDir(), "out")
				args := []string{"stat", "-o", "json", calls, "work"}
				if latency {
					args = append(args, "-r")
				}
				n := 32000 / threads
				// The command's own output goes where it wants.
				args = append(args, "--", "sh", "-c", fmt.Sprintf("%s %d %d >%s", calls, threads, n, out))
				r := run(t, args...)
				if r.status != 0 || r.errors != "" {
					t.Fatalf("status %d: %s", r.status, r.errors)
				}
				said, err := os.ReadFile(out)
				if err != nil {
					t.Fatal(err)
				}
				made, err := strconv.ParseUint(strings.TrimSpace(string(said)), 10, 64)
				if err != nil || made != 32000 {
					t.Fatalf("the target says %q", said)
				}
				p := lastLine(t, r.out).Probes[0]
				var perCPU uint64
				for _, c := range p.PerCPU {
					perCPU += c.Hits
				}
				if p.Hits != made || perCPU != made || p.State != "attached" {
					t.Errorf("%d calls: %d hits, %d over the CPUs, %s", made, p.Hits, perCPU, p.State)
				}
				if !latency {
					if p.Returned != nil || p.Latency != nil || p.Missed != nil || p.Kind != "uprobe" {
						t.Error("what an entry probe does not measure is not null")
					}
					return
				}
				var buckets uint64
				for _, b := range p.Latency.Buckets {
					buckets += b[2]
				}
				if *p.Returned != made || buckets != made || p.Latency.Count != made || *p.InFlight != 0 {
					t.Errorf("%d calls: %d returned, %d in buckets, %d in flight", made, *p.Returned, buckets, *p.InFlight)
				}
			})
		}
	}
}

// The status is the command's own.
func TestStatStatus(t *testing.T) {
	requireBPF(t)
	calls := target(t, "calls")
	for command, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -9 $$": 137} {
		if r := run(t, "stat", calls, "work", "--", "sh", "-c", command); r.status != want || !strings.Contains(r.out, "work") {
			t.Errorf("%q: status %d, want %d; %s%s", command, r.status, want, r.out, r.errors)
		}
	}
	start := time.Now()
	r := run(t, "stat", "-d", "300ms", calls, "work", "--", "sleep", "60")
	if r.status != 0 || time.Since(start) > 30*time.Second {
		t.Errorf("a duration over a command: status %d after %v: %s", r.status, time.Since(start), r.errors)
	}
}

// Ctrl-C is the normal end of a stat without one; of a shorter one it is not.
func TestStatInterrupted(t *testing.T) {
	requireBPF(t)
	calls := target(t, "calls")
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"stat", "-o", "json", calls, "work"}, 0},
		{[]string{"stat", "-o", "json", "-d", "1h", calls, "work"}, 130},
	} {
		cmd := program(c.args...)
		var made []byte
		r := finish(t, cmd, func() {
			waitForProbe(t, cmd.Process.Pid)
			var err error
			if made, err = exec.Command(calls, "2", "1000").Output(); err != nil {
				t.Error(err)
			}
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Error(err)
			}
		})
		if r.status != c.want {
			t.Errorf("%v: status %d, want %d: %s", c.args, r.status, c.want, r.errors)
		}
		if p := lastLine(t, r.out).Probes[0]; fmt.Sprintln(p.Hits) != string(made) {
			t.Errorf("%d hits, the target says %s", p.Hits, made)
		}
	}
}

// waitForProbe waits until the hits of all probes of a program count. That its links
// stand is not enough: it lets hits count only after that.
func waitForProbe(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fdinfo", pid))
		if err != nil {
			break
		}
		for _, fd := range fds {
			info, _ := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%s", pid, fd.Name()))
			if _, id, found := bytes.Cut(info, []byte("\nmap_id:")); found && switchedOn(id) {
				return
			}
		}
	}
	t.Error("it places no probe")
}

// switchedOn tells whether a map, by its number in the first line, is the one of the
// switches, and all that have a probe are on.
func switchedOn(line []byte) bool {
	var id ebpf.MapID
	if _, err := fmt.Fscan(bytes.NewReader(line), &id); err != nil {
		return false
	}
	m, err := ebpf.NewMapFromID(id)
	if err != nil {
		return false
	}
	defer m.Close()
	info, err := m.Info()
	if err != nil || info.Name != "switches" {
		return false
	}
	var slot uint32
	var sw struct { // struct probe_switch
		Cookie, Slow uint64
		Flags, Hist  uint32
	}
	on := 0
	for all := m.Iterate(); all.Next(&slot, &sw); {
		if sw.Cookie != 0 && sw.Flags&1 == 0 {
			return false
		}
		on += int(sw.Flags & 1)
	}
	return on > 0
}

// A reader that goes away ends stat quietly.
func TestStatClosedPipe(t *testing.T) {
	requireBPF(t)
	calls := target(t, "calls")
	cmd := program("stat", "-o", "json", "-I", "10ms", calls, "work")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	out.Close()
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 1 || errs.Len() > 0 {
		t.Errorf("%v: %s", err, errs.String())
	}
}

// Help that cannot be written is an error, as other output is.
func TestHelpOnFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	for _, args := range [][]string{{"--help"}, {"help", "stat"}, {"numbers"}} {
		var errs strings.Builder
		if status := Run(args, Streams{Out: full, Err: &errs}); status != 1 || !strings.Contains(errs.String(), "no space left on device") {
			t.Errorf("%v: status %d, %q", args, status, errs.String())
		}
	}
}

// The final object is one, also where the duration ends at a tick.
func TestOneFinal(t *testing.T) {
	requireBPF(t)
	calls := target(t, "calls")
	for _, output := range [][]string{{"-o", "json"}, {"-I", "250ms"}} {
		r := run(t, append([]string{"stat", "-d", "500ms", calls, "work"}, output...)...)
		if n := strings.Count(r.out, `"final":true`) + strings.Count(r.out, "total after"); r.status != 0 || n != 1 {
			t.Errorf("%s: %d totals: %s%s", output, n, r.out, r.errors)
		}
	}
}
