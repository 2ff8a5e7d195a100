package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"uprobetop/bpf/bpftest"
	"uprobetop/probes"
	"uprobetop/symbols"
)

// opened reads a command line as stat does, and names what came of it: the files in
// which names are looked for, the filter and the functions.
func opened(t *testing.T, args ...string) (target *probes.Target, functions []string, said string) {
	t.Helper()
	var err error
	var errs bytes.Buffer
	f := &statFlags{}
	cmd := newStat(Streams{})
	cmd.ResetFlags()
	f.register(cmd)
	if err = cmd.ParseFlags(args); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	args = cmd.Flags().Args()
	var command []string
	if at := cmd.ArgsLenAtDash(); at >= 0 {
		args, command = args[:at], args[at:]
	}
	target, specs, err := f.open(Streams{Out: io.Discard, Err: &errs}, args, command)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	t.Cleanup(func() { target.Close() })
	for _, s := range specs {
		functions = append(functions, s.String())
	}
	return target, functions, errs.String()
}

func files(target *probes.Target) string {
	var names []string
	for _, f := range target.Files {
		names = append(names, filepath.Base(f.Path))
	}
	return strings.Join(names, " ")
}

// Every way to write whose functions are meant.
func TestWords(t *testing.T) {
	calls := target(t, "calls")
	libs, libc := privateLibc(t, calls)
	base := filepath.Base(libc)
	t.Setenv("PATH", filepath.Dir(calls)+":"+os.Getenv("PATH"))
	t.Setenv("LD_LIBRARY_PATH", libs)
	w := startWaiting(t, libs, target(t, "allocs"), "1", "1")
	pid := strconv.Itoa(w.Process.Pid)
	for _, c := range []struct {
		args      string
		files     string
		functions string
	}{
		{calls + " work", "calls", "work"},
		{"calls work", "calls", "work"},
		{"libc malloc free", base, "malloc free"},
		{"c malloc", base, "malloc"},
		{"libc:malloc", base, "uprobe:libc:malloc"},
		{"uprobe:libc:malloc free", base, "uprobe:libc:malloc free"},
		{"uprobe:" + calls + ":work uretprobe:libc:free", "calls " + base, "uprobe:" + calls + ":work uretprobe:libc:free"},
		{"calls work libc:free", "calls " + base, "work uprobe:libc:free"},
		{"uprobe:libc:malloc uprobe:" + base + ":free", base, "uprobe:libc:malloc uprobe:" + base + ":free"},
		{"-p " + pid + " libc malloc", base, "malloc"},
		{"-p " + pid + " " + libc + " malloc", base, "malloc"},
		{"-p " + pid + " allocs main", "allocs", "main"},
		{"-p " + pid + " libc:malloc", "", "uprobe:libc:malloc"},
		{"work -- calls 1 1", "calls", "work"},
		{"libc malloc -- calls 1 1", base, "malloc"},
		{"main work -- calls 1 1", "calls", "main work"},
		{"c -- calls 1 1", "calls", "c"},
		{"libc:malloc work -- calls 1 1", "calls " + base, "uprobe:libc:malloc work"},
		{calls + " work -- sh -c true", "calls", "work"},
	} {
		t.Run(c.args, func(t *testing.T) {
			target, functions, said := opened(t, strings.Fields(c.args)...)
			if got := files(target); c.files != "" && got != c.files {
				t.Errorf("files %s, want %s", got, c.files)
			}
			if got := strings.Join(functions, " "); got != c.functions {
				t.Errorf("functions %s, want %s", got, c.functions)
			}
			if said != "" {
				t.Errorf("it says %q", said)
			}
		})
	}
	// The loader of the command takes the library in LD_LIBRARY_PATH.
	if target, _, _ := opened(t, "libc", "malloc", "--", "calls"); target.Files[0].Path != libc {
		t.Errorf("the command's libc is %s, want %s", target.Files[0].Path, libc)
	}
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if target, _, _ := opened(t, "libc", "malloc", "--", script); target.Files[0].Path != libc {
		t.Errorf("a script's libc is %s, want %s", target.Files[0].Path, libc)
	}
	t.Setenv("LD_LIBRARY_PATH", "")
	own := bpftest.Compile(t, "../../probes/testdata/calls.c", "-Wl,-rpath,"+libs)
	if target, _, _ := opened(t, "libc", "malloc", "--", own); target.Files[0].Path != libc {
		t.Errorf("the libc of a program with a path of its own is %s, want %s", target.Files[0].Path, libc)
	}
	t.Setenv("LD_LIBRARY_PATH", libs)
	if target, _, _ := opened(t, "libc", "malloc"); target.Files[0].Path == libc {
		t.Error("the host's libc is that of LD_LIBRARY_PATH, which other processes do not have")
	}
}

// A word that is both a library and a program is told apart.
func TestAmbiguousWord(t *testing.T) {
	dir := t.TempDir()
	calls := target(t, "calls")
	for _, name := range []string{"c", "libc"} {
		if err := os.Symlink(calls, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for word, want := range map[string][2]string{
		"c":    {"c", "c is read as the program " + filepath.Join(dir, "c") + ": for the library write libc"},
		"libc": {"libc.so", "libc is read as the library: for the program write " + filepath.Join(dir, "libc")},
	} {
		target, _, said := opened(t, word, "malloc")
		if !strings.HasPrefix(files(target), want[0]) || strings.HasPrefix(files(target), "libc") != (word == "libc") ||
			strings.Count(said, "\n") != 1 || !strings.Contains(said, want[1]) {
			t.Errorf("%s: files %s, it says %q", word, files(target), said)
		}
	}
}

// Filters add up, and the files are those of everybody who is named.
func TestWhom(t *testing.T) {
	path := target(t, "allocs")
	libs, _ := privateLibc(t, path)
	a, b := startWaiting(t, libs, path, "1", "1"), startWaiting(t, libs, path, "1", "1")
	one, two := a.Process.Pid, b.Process.Pid
	tids, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", two))
	if err != nil || len(tids) != 2 {
		t.Fatalf("%d threads: %v", len(tids), err)
	}
	tid, _ := strconv.Atoi(tids[1].Name())
	for _, c := range []struct {
		args       []string
		pids, tids []int
		label      string
	}{
		{[]string{"-p", strconv.Itoa(one)}, []int{one}, nil, fmt.Sprintf("allocs %d", one)},
		{[]string{"-p", strconv.Itoa(one), "-p", strconv.Itoa(two)}, []int{one, two}, nil, "2 processes of allocs"},
		{[]string{"-p", fmt.Sprintf("%d,%d,%d", one, two, one)}, []int{one, two}, nil, "2 processes of allocs"},
		{[]string{"-t", strconv.Itoa(tid)}, nil, []int{tid}, fmt.Sprintf("thread %d of allocs %d", tid, two)},
		{[]string{"-p", strconv.Itoa(one), "--tid", strconv.Itoa(tid)}, []int{one}, []int{tid}, fmt.Sprintf("allocs %d, thread %d of allocs %d", one, tid, two)},
	} {
		target, _, _ := opened(t, append(c.args, "main")...)
		f := target.Filter()
		if !slices.Equal(f.PIDs, c.pids) || !slices.Equal(f.TIDs, c.tids) || len(f.Cgroups) > 0 || target.Label != c.label {
			t.Errorf("%v: %+v, %s; want %v, %v, %s", c.args, f, target.Label, c.pids, c.tids, c.label)
		}
		if !target.HasFile("allocs") || !target.HasFile("libc") {
			t.Errorf("%v: its files are %s", c.args, files(target))
		}
	}
}

// A cgroup's files are those of its processes; without any, a file has to be named.
func TestCgroupFlags(t *testing.T) {
	root, err := probes.CgroupRoot()
	if err != nil {
		t.Skip(err)
	}
	unit := fmt.Sprintf("uprobetop-test-%d", os.Getpid())
	id := fmt.Sprintf("%012x", os.Getpid()+1<<40)
	service := filepath.Join(root, unit+".service")
	container := filepath.Join(root, "docker-"+id+".scope")
	for _, dir := range []string{service, container} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Skipf("no cgroup can be made: %v", err)
		}
		t.Cleanup(func() { os.Remove(dir) })
	}
	r := run(t, "stat", "--unit", unit, "malloc")
	if r.status != 2 || !strings.Contains(r.errors, unit+".service has no process") {
		t.Errorf("an empty unit: status %d, %s", r.status, r.errors)
	}
	path := target(t, "allocs")
	if target, _, _ := opened(t, "--unit", unit, path, "main"); files(target) != "allocs" {
		t.Errorf("a file named for an empty unit: %s", files(target))
	}
	libs, _ := privateLibc(t, path)
	w := startWaiting(t, libs, path, "1", "1")
	if err := os.WriteFile(filepath.Join(service, "cgroup.procs"), []byte(strconv.Itoa(w.Process.Pid)), 0o644); err != nil {
		t.Fatal(err)
	}
	target, functions, _ := opened(t, "--unit", unit, "--container", id[:8], "--cgroup", service, "libc", "malloc")
	f := target.Filter()
	if !slices.Equal(f.Cgroups, []string{service, container}) || len(f.PIDs)+len(f.TIDs) > 0 {
		t.Errorf("filter %+v", f)
	}
	if want := fmt.Sprintf("%s.service, docker-%s.scope, 1 process", unit, id); target.Label != want || !slices.Equal(functions, []string{"malloc"}) {
		t.Errorf("%s, %q; want %s", target.Label, functions, want)
	}
	w.in.Close()
	w.Wait()
}

// Before a file that many map is probed in all of them, somebody has to say yes.
func TestConsent(t *testing.T) {
	requireBPF(t)
	path := target(t, "allocs")
	libs, _ := privateLibc(t, path)
	for range many {
		startWaiting(t, libs, path, "1", "1")
	}
	stat := []string{"stat", "-d", "50ms", path, "main"}
	if r := run(t, stat...); r.status != 0 || r.errors != "" {
		t.Errorf("%d processes: status %d, %s", many, r.status, r.errors)
	}
	last := startWaiting(t, libs, path, "1", "1")
	says := fmt.Sprintf("%d processes map %s, and all of them would pay for each call", many+1, path)
	r := run(t, stat...)
	if r.status != 3 || r.errors != "uprobetop: "+says+": -p names one, -a means all\n" || r.out != "" {
		t.Errorf("status %d, %s%s", r.status, r.errors, r.out)
	}
	for _, yes := range [][]string{{"-a"}, {"-y"}, {"-p", strconv.Itoa(last.Process.Pid)}} {
		if r := run(t, append(stat, yes...)...); r.status != 0 || r.errors != "" {
			t.Errorf("%v: status %d, %s", yes, r.status, r.errors)
		}
	}
	for answer, want := range map[string]int{"y": 0, "n": 3, "": 3} {
		x := openTerminal(t, 200, 24, stat...)
		x.wait("would pay for each call\\.\\s+Probe all of them\\? \\[y/N\\]")
		x.press(answer + "\n")
		_ = x.cmd.Wait()
		if got := x.cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("answered %q: status %d, want %d", answer, got, want)
		}
	}
	x := openTerminal(t, 200, 24, path, "main")
	x.wait("Probe all of them\\?")
	x.press("n\n")
	if _ = x.cmd.Wait(); x.cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("the screen ends with %d", x.cmd.ProcessState.ExitCode())
	}
}

// -a counts the hits of everybody, several -p those of the processes named.
func TestEverybody(t *testing.T) {
	requireBPF(t)
	path := target(t, "allocs")
	libs, libc := privateLibc(t, path)
	for _, all := range []bool{true, false} {
		var ws []*waiting
		for range 3 {
			ws = append(ws, startWaiting(t, libs, path, "2", "1000"))
		}
		whom, want := []string{"-a"}, uint64(3*2*1000)
		if !all {
			whom, want = []string{"-p", strconv.Itoa(ws[0].Process.Pid), "-p", strconv.Itoa(ws[2].Process.Pid)}, 2*2*1000
		}
		cmd := program(append([]string{"stat", "-o", "json", libc, "malloc", "free"}, whom...)...)
		r := finish(t, cmd, func() {
			waitForProbe(t, cmd.Process.Pid)
			for _, w := range ws {
				w.work(t)
			}
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Error(err)
			}
		})
		if r.status != 0 {
			t.Fatalf("%v: status %d: %s", whom, r.status, r.errors)
		}
		for _, p := range lastLine(t, r.out).Probes {
			if p.Hits != want {
				t.Errorf("%v: %s has %d hits, want %d", whom, p.Name, p.Hits, want)
			}
		}
	}
}

// A pattern places what can be probed, and says how much it left out.
func TestPattern(t *testing.T) {
	requireBPF(t)
	path := target(t, "allocs")
	libs, libc := privateLibc(t, path)
	w := startWaiting(t, libs, path, "1", "1000")
	cmd := program("stat", "-o", "json", "-p", strconv.Itoa(w.Process.Pid), libc, "*alloc*", "mem*")
	r := finish(t, cmd, func() {
		waitForProbe(t, cmd.Process.Pid)
		w.work(t)
		w.in.Close()
	})
	if r.status != 0 || strings.Count(r.errors, "\n") != 1 || !strings.Contains(r.errors, " functions match, and ") || !strings.Contains(r.errors, " are not probed: ") || !strings.Contains(r.errors, "(an older version ") {
		t.Fatalf("status %d: %s", r.status, r.errors)
	}
	o := lastLine(t, r.out)
	if len(o.Probes) < 20 {
		t.Errorf("%d functions match", len(o.Probes))
	}
	for _, p := range o.Probes {
		if p.State != "gone" || p.Name == "malloc" && p.Hits != 1000 {
			t.Errorf("%s is %s, %d hits", p.Name, p.State, p.Hits)
		}
	}
}

// A point inside a function counts how often it is reached, and is not timed.
func TestOffset(t *testing.T) {
	requireBPF(t)
	calls := target(t, "calls")
	f, err := symbols.Open(calls)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	thread := f.Lookup("run")[0] // begins without a jump
	var points []*symbols.Function
	for into := range uint64(8) {
		if p, err := f.Inside(thread, into); err == nil {
			points = append(points, p)
		}
	}
	if len(points) < 2 {
		t.Fatalf("run begins with %d instructions", len(points))
	}
	for _, p := range points {
		for _, spec := range []string{fmt.Sprintf("run+%d", p.Into), fmt.Sprintf("%#x", uint64(p.Addr))} {
			r := run(t, "stat", "-o", "json", calls, spec, "--", "sh", "-c", calls+" 4 100 >/dev/null")
			if r.status != 0 {
				t.Fatalf("%s: status %d, %s", spec, r.status, r.errors)
			}
			if got := lastLine(t, r.out).Probes[0]; got.Hits != 4 || got.Name != p.Demangled() {
				t.Errorf("%s: %d hits of %s, want 4 of %s", spec, got.Hits, got.Name, p.Demangled())
			}
		}
	}
	r := run(t, "stat", "-r", calls, points[1].Name, "--", calls, "1", "100")
	if r.status != 3 || !strings.Contains(r.errors, "a return probe inside a function") {
		t.Errorf("timed: status %d, %s", r.status, r.errors)
	}
}
