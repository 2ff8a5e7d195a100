package cli

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A wrapper makes the program load another copy of a library than the one that is
// probed: the run says so. Who names the file by its path knows.
func TestCopies(t *testing.T) {
	requireBPF(t)
	path := target(t, "allocs")
	libs, libc := privateLibc(t, path)
	others, other := privateLibc(t, path)
	for spec, inexact := range map[string]bool{"libc": true, other: false} {
		cmd := program("stat", spec, "calloc", "--", "sh", "-c", "LD_LIBRARY_PATH="+others+" "+path+"; exit $?")
		cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+libs)
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
		lines := bufio.NewScanner(out)
		for lines.Scan() && lines.Text() != "ready" { // from then on it has all its libraries
		}
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil { // there is a last look
			t.Fatal(err)
		}
		var said []string
		for lines.Scan() && !strings.Contains(lines.Text(), "exact") {
		}
		said = append(said, lines.Text())
		in.Close()
		for lines.Scan() {
			said = append(said, lines.Text())
		}
		_ = cmd.Wait()
		text := strings.Join(said, "\n")
		want := "allocs maps " + other + ", and what is probed is " + libc + ": start it first and name it with -p"
		if strings.HasPrefix(text, "not exact") != inexact || strings.Contains(text, want) != inexact {
			t.Errorf("%s: %s\nwant %s", spec, text, want)
		}
	}
}

// What a process of the target has not mapped is said with what can be done.
func TestNotMapped(t *testing.T) {
	path := target(t, "allocs")
	libs, libc := privateLibc(t, path)
	_, other := privateLibc(t, path)
	lone := filepath.Join(t.TempDir(), "libnone.so")
	if err := os.WriteFile(lone, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	pid := strconv.Itoa(startWaiting(t, libs, path).Process.Pid)
	for arg, want := range map[string]string{
		other + ":calloc": other + " mapped: its own is " + libc,
		lone + ":f":       lone + " mapped: without -p it is probed in whoever loads it",
		lone:              lone + " mapped: without -p it is probed in whoever loads it",
		"qqqqqqqqqqqqqqq": ": a library that is loaded later is named by its path, without -p",
	} {
		if r := run(t, "stat", "-p", pid, arg, "calloc"); r.status != 3 || !strings.Contains(r.errors, want) {
			t.Errorf("%s: %+v, want %s", arg, r, want)
		}
	}
	bare := filepath.Join(t.TempDir(), "bare")
	if out, err := exec.Command("strip", "-o", bare, path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if r := run(t, "list", bare); !strings.Contains(r.out, "\nit has no function symbols: install its debug symbols") {
		t.Errorf("%+v", r)
	}
}
