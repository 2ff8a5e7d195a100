package cli

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"uprobetop/bpf/bpftest"
)

// privateLibc copies the libc that a program uses, for LD_LIBRARY_PATH: probes
// never go on the host's.
func privateLibc(t *testing.T, program string) (dir, path string) {
	t.Helper()
	ldd, err := exec.Command("ldd", program).Output()
	if err != nil {
		t.Skipf("ldd: %v", err)
	}
	for line := range strings.Lines(string(ldd)) {
		field := strings.Fields(line)
		if len(field) < 3 || !strings.HasPrefix(field[0], "libc.so") {
			continue
		}
		content, err := os.ReadFile(field[2])
		if err != nil {
			t.Fatal(err)
		}
		dir = t.TempDir()
		path = filepath.Join(dir, field[0])
		if err := os.WriteFile(path, content, 0o755); err != nil {
			t.Fatal(err)
		}
		return dir, path
	}
	t.Skip("the program uses no shared libc")
	return "", ""
}

// waiting is a process that waits for a line before it does its work.
type waiting struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startWaiting(t *testing.T, libs, path string, args ...string) *waiting {
	t.Helper()
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+libs)
	in, out := bpftest.Start(t, cmd)
	w := &waiting{cmd, in, out}
	// From here on everything that it is linked with is mapped.
	if line, err := w.out.ReadString('\n'); line != "ready\n" {
		t.Fatalf("the target says %q: %v", line, err)
	}
	return w
}

func (w *waiting) work(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(w.in, "\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := w.out.ReadString('\n'); line != "done\n" {
		t.Fatalf("the target says %q: %v", line, err)
	}
}

// With -p only that process counts, with all its threads, and exactly.
func TestStatProcess(t *testing.T) {
	requireBPF(t)
	path := target(t, "allocs")
	libs, _ := privateLibc(t, path)
	a, b := startWaiting(t, libs, path, "8", "3000"), startWaiting(t, libs, path, "2", "5000")
	pid := strconv.Itoa(a.Process.Pid)
	cmd := program("stat", "-o", "json", "-r", "-p", pid, "libc", "malloc", "free")
	r := finish(t, cmd, func() {
		waitForProbe(t, cmd.Process.Pid)
		b.work(t)
		a.work(t)
		a.in.Close() // stat ends with the process
	})
	if r.status != 0 {
		t.Fatalf("status %d: %s", r.status, r.errors)
	}
	o := lastLine(t, r.out)
	if len(o.Probes) != 2 || len(o.Filter.PIDs) != 1 || o.Filter.PIDs[0] != a.Process.Pid {
		t.Fatalf("%d probes, filter %v", len(o.Probes), o.Filter.PIDs)
	}
	for _, p := range o.Probes {
		if p.Hits != 8*3000 || *p.Returned != 8*3000 || p.State != "gone" {
			t.Errorf("%s: %d hits, %d returned, %s; %d calls were made", p.Name, p.Hits, *p.Returned, p.State, 8*3000)
		}
	}
}

// Return probes on a Go program are refused; entries are counted.
func TestGo(t *testing.T) {
	requireBPF(t)
	gocmd, err := exec.LookPath("go")
	if err != nil {
		t.Skip("there is no go command")
	}
	dir := t.TempDir()
	source := "package main\n\n//go:noinline\nfunc work() {}\n\nfunc main() {\n\tfor range 1000 {\n\t\twork()\n\t}\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "main")
	if out, err := exec.Command(gocmd, "build", "-o", bin, filepath.Join(dir, "main.go")).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	r := run(t, "stat", "-r", bin, "main.work", "--", bin)
	if r.status != 3 || !strings.Contains(r.errors, "return probes crash Go programs") {
		t.Errorf("with -r: status %d, %s", r.status, r.errors)
	}
	r = run(t, "stat", "-o", "json", bin, "main.work", "--", bin)
	if r.status != 0 {
		t.Fatalf("status %d: %s", r.status, r.errors)
	}
	p := lastLine(t, r.out).Probes[0]
	if p.Hits != 1000 { // a leaf that needs no stack
		t.Errorf("%d hits of 1000 calls", p.Hits)
	}
	if p.Note != "" {
		t.Errorf("hits that are calls are marked: %q", p.Note)
	}
}

// Where exceptions can pass through a probed function, -r asks; without anybody
// to answer it does not go on, and -y is the answer.
func TestUnwinder(t *testing.T) {
	requireBPF(t)
	gxx, err := exec.LookPath("g++")
	if err != nil {
		t.Skip("there is no g++")
	}
	dir := t.TempDir()
	source := filepath.Join(dir, "throws.cc")
	code := "__attribute__((noinline)) void work(int i) { if (i < 0) throw i; asm(\"\"); }\n" +
		"int main() { for (int i = 0; i < 100; i++) work(i); }\n"
	if err := os.WriteFile(source, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "throws")
	if out, err := exec.Command(gxx, "-O1", "-o", bin, source).CombinedOutput(); err != nil {
		t.Fatalf("g++: %v\n%s", err, out)
	}
	r := run(t, "stat", "-r", bin, "work", "--", bin)
	const ends = "ends the process; -y says yes, and without -r entries are counted\n"
	if r.status != 3 || !strings.Contains(r.errors, "uses exceptions") || !strings.HasSuffix(r.errors, ends) {
		t.Errorf("unasked: status %d, %s", r.status, r.errors)
	}
	x := openTerminal(t, 400, 24, "stat", "-r", bin, "work", "--", bin)
	x.wait("Place return probes all the same\\? \\[y/N\\]")
	x.press("n\n")
	_ = x.cmd.Wait()
	said := x.wait("not probed.*ends the process; leave out -r to count its entries")
	if x.cmd.ProcessState.ExitCode() != 3 || strings.Contains(said, "yes") {
		t.Errorf("after a no: status %d, %s", x.cmd.ProcessState.ExitCode(), said)
	}
	r = run(t, "stat", "-o", "json", "-r", "-y", bin, "work(int)", "--", bin)
	if r.status != 0 {
		t.Fatalf("status %d: %s", r.status, r.errors)
	}
	if p := lastLine(t, r.out).Probes[0]; p.Hits != 100 || *p.Returned != 100 {
		t.Errorf("%d hits, %d returned of 100 calls", p.Hits, *p.Returned)
	}
}

// Exceptions can come from any file of a process: naming one of its libraries does
// not make the question go away.
func TestUnwinderBehindLibrary(t *testing.T) {
	requireBPF(t)
	gxx, err := exec.LookPath("g++")
	if err != nil {
		t.Skip("there is no g++")
	}
	dir := t.TempDir()
	source := filepath.Join(dir, "waits.cc")
	code := "#include <unistd.h>\n#include <new>\nint main() { char c; if (write(1, \"ready\\n\", 6) < 0) return 1; try { if (read(0, &c, 1) < 0) throw 1; } catch (int) {} }\n"
	if err := os.WriteFile(source, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "waits")
	if out, err := exec.Command(gxx, "-o", bin, source).CombinedOutput(); err != nil {
		t.Fatalf("g++: %v\n%s", err, out)
	}
	libs, _ := privateLibc(t, bin)
	w := startWaiting(t, libs, bin)
	r := run(t, "stat", "-r", "-d", "100ms", "-p", strconv.Itoa(w.Process.Pid), "libc", "malloc")
	if r.status != 3 || !strings.Contains(r.errors, "uses exceptions") {
		t.Errorf("status %d: %s%s", r.status, r.out, r.errors)
	}
}

// A process that ends between the look at it and the probes is told.
func TestProcessGone(t *testing.T) {
	requireBPF(t)
	path := target(t, "allocs")
	libs, _ := privateLibc(t, path)
	w := startWaiting(t, libs, path)
	cmd := program("stat", "-o", "json", "-I", "20ms", "-p", strconv.Itoa(w.Process.Pid), "main")
	_, out := bpftest.Start(t, cmd)
	if _, err := out.ReadString('\n'); err != nil { // the probes stand: it was told
		t.Fatal(err)
	}
	if err := w.Process.Signal(syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	_ = w.Wait()
	rest, err := io.ReadAll(out)
	if p := lastLine(t, string(rest)).Probes[0]; err != nil || p.State != "gone" || p.Note == "" {
		t.Errorf("%s: %s; %v", p.State, p.Note, err)
	}
}

// A script without a first line that names its shell runs as shells run it.
func TestScript(t *testing.T) {
	requireBPF(t)
	calls := target(t, "calls")
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte(calls+" 1 100 >/dev/null\nexit $1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := run(t, "stat", "-o", "json", calls, "work", "--", script, "5")
	if r.status != 5 || lastLine(t, r.out).Probes[0].Hits != 100 {
		t.Errorf("status %d: %s%s", r.status, r.out, r.errors)
	}
}

// One function asked for twice is one probe, of the kind that says more.
func TestTwice(t *testing.T) {
	requireBPF(t)
	calls := target(t, "calls")
	r := run(t, "stat", "-o", "json", calls, "work", "uretprobe:work", "--", "sh", "-c", calls+" 1 100 >/dev/null")
	if o := lastLine(t, r.out); len(o.Probes) != 1 || o.Probes[0].Kind != "uretprobe" || *o.Probes[0].Returned != 100 {
		t.Errorf("%s", r.out)
	}
}

// A background job of a script, which ignores SIGINT from its start, ends at it.
func TestBackgroundJob(t *testing.T) {
	requireBPF(t)
	calls := target(t, "calls")
	p := program("stat", "-o", "json", calls, "work")
	cmd := exec.Command("sh", append([]string{"-c", `trap "" INT; exec "$@"`, "sh", os.Args[0]}, p.Args[1:]...)...)
	cmd.Env = p.Env
	r := finish(t, cmd, func() {
		waitForProbe(t, cmd.Process.Pid)
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Error(err)
		}
	})
	if o := lastLine(t, r.out); r.status != 0 || !o.Final {
		t.Errorf("status %d: %s", r.status, r.errors)
	}
}

// A signal that was sent to uprobetop alone is passed on to the command at once, and not
// when the totals are read.
func TestSignalPassedOn(t *testing.T) {
	requireBPF(t)
	calls := target(t, "calls")
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		out, in, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		if _, err := unix.FcntlInt(in.Fd(), unix.F_SETPIPE_SZ, os.Getpagesize()); err != nil {
			t.Fatal(err)
		}
		if _, err := in.Write(make([]byte, os.Getpagesize())); err != nil { // there is no room for the totals
			t.Fatal(err)
		}
		cmd := program("stat", calls, "work", "--", "sh", "-c", `trap "echo told >&2; exit" TERM; echo ready >&2; while :; do sleep 0.01; done`)
		cmd.Stdout = in
		said, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		in.Close()
		late := time.AfterFunc(20*time.Second, func() { out.Close() }) // and then it is at the end
		lines := bufio.NewReader(said)
		if line, err := lines.ReadString('\n'); line != "ready\n" {
			t.Fatalf("%q, %v", line, err)
		}
		send(t, cmd, signal)
		if line, err := lines.ReadString('\n'); line != "told\n" {
			t.Errorf("at %v: %q, %v", signal, line, err)
		}
		if !late.Stop() {
			t.Errorf("%v is passed on when nobody reads any more", signal)
		} else if _, err := io.Copy(io.Discard, out); err != nil {
			t.Error(err)
		}
		var status *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &status) || status.ExitCode() != 130 {
			t.Errorf("at %v it ends with %v", signal, err)
		}
	}
}
