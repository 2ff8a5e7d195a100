package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// A function that the program only imports is counted in the library that the program
// gets it from, exactly, in a process and of a command; of everything else there
// nothing is counted.
func TestStatImport(t *testing.T) {
	requireBPF(t)
	path := target(t, "allocs", "-no-pie")
	libs, libc := privateLibc(t, path)
	note := fmt.Sprintf("uprobetop: free of allocs is that of %s\n", libc)

	w := startWaiting(t, libs, path, "4", "2500")
	cmd := program("stat", "-o", "json", "-p", strconv.Itoa(w.Process.Pid), path, "free")
	r := finish(t, cmd, func() {
		waitForProbe(t, cmd.Process.Pid)
		w.work(t)
		w.in.Close()
	})
	if r.status != 0 || r.errors != note {
		t.Errorf("status %d, %q", r.status, r.errors)
	}
	if p := lastLine(t, r.out).Probes[0]; p.Hits != 10000 || p.Name != "free" {
		t.Errorf("%s: %d hits of 10000 calls in the process", p.Name, p.Hits)
	}

	hits := map[int]uint64{}
	for _, n := range []int{0, 2500} {
		cmd := program("stat", "-o", "json", path, "free", "--", "sh", "-c",
			fmt.Sprintf("echo | LD_LIBRARY_PATH=%s %s 4 %d >%s", libs, path, n, filepath.Join(t.TempDir(), "out")))
		cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+libs)
		r := finish(t, cmd, nil)
		if r.status != 0 || r.errors != note {
			t.Fatalf("status %d, %q", r.status, r.errors)
		}
		hits[n] = lastLine(t, r.out).Probes[0].Hits
	}
	if hits[2500]-hits[0] != 10000 {
		t.Errorf("%d hits of 10000 calls of the command, with none %d", hits[2500], hits[0])
	}
}

// Imports and the compiler's own code are listed with the reason, counted apart, and
// have neither address nor class.
func TestListWhatCannotBeProbed(t *testing.T) {
	path := target(t, "allocs", "-no-pie")
	r := run(t, "list", path)
	first, _, _ := strings.Cut(r.out, "\n")
	if !regexp.MustCompile(`, \d+ functions, [78] cannot be probed, 1 can only be counted, \d+ imported$`).MatchString(first) {
		t.Errorf("the first line is %s", first)
	}
	for _, want := range []string{
		`(?m)^ +– +– +no +– +malloc  \(imported: its code is in libc\.so\.\d; probe it there\)$`,
		`(?m)^ *0x[0-9a-f]+ +– +no +– +frame_dummy  \(start-up code of the compiler, not of the program\)$`,
		`(?m)^ *0x[0-9a-f]+ +\d+ +ok +(emulated|stepped) +main$`,
	} {
		if !regexp.MustCompile(want).MatchString(r.out) {
			t.Errorf("no line is %s in\n%s", want, r.out)
		}
	}
	r = run(t, "list", "-o", "json", path, "malloc")
	var o map[string]any
	if err := json.Unmarshal([]byte(r.out), &o); err != nil {
		t.Fatalf("%v in %q", err, r.out)
	}
	if o["address"] != nil || o["class"] != nil || o["probe"] != "no" || len(o["points"].([]any)) != 0 || !strings.Contains(fmt.Sprint(o["reason"]), "imported") {
		t.Errorf("%v", o)
	}
}

// Each class is in the list, as the kernel of this machine has it.
func TestListClass(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("x86-64 only")
	}
	r := run(t, "list", target(t, "classes"), "push_r*")
	if !regexp.MustCompile(`ok +emulated +push_rbp\n`).MatchString(r.out) || !regexp.MustCompile(`ok +stepped +push_rex\n`).MatchString(r.out) {
		t.Errorf("%+v", r)
	}
}

// Stub libraries are told about.
func TestListStub(t *testing.T) {
	r := run(t, "list", "pthread", "pthread_create")
	if !strings.Contains(r.errors, "is empty but for what old programs need") {
		t.Skipf("libpthread has functions of its own, or there is none: %+v", r)
	}
	if r.status != 0 || !strings.Contains(r.out, "pthread_create@@") || !strings.Contains(r.out, "libc.so") {
		t.Errorf("%+v", r)
	}
}

// What is made at run time is said above the list.
func TestListRuntime(t *testing.T) {
	const perl = "/usr/bin/perl"
	if _, err := os.Stat(perl); err != nil {
		t.Skip("no perl")
	}
	r := run(t, "list", perl, "perl_run")
	if lines := strings.Split(r.out, "\n"); r.status == 0 && lines[1] != "your own Perl functions are interpreted at run time and are in no file; perl and libc can be probed" {
		t.Errorf("%+v", r)
	}
	if r := run(t, "list", perl, "my_own_sub"); r.status != exitNothing || !strings.Contains(r.errors, "your own Perl functions are interpreted") {
		t.Errorf("%+v", r)
	}
}
