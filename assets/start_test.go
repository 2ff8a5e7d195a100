package assets

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// parentVariable makes the test binary a parent that starts a demo, prints its
// process id and waits to be killed.
const parentVariable = "ASSETS_TEST_PARENT"

// patience is how long a process may take to end.
const patience = 20 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv(parentVariable) == "" {
		os.Exit(m.Run())
	}
	demo, err := StartDemo(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(demo.PID())
	<-demo.Done()
}

func start(t *testing.T, ctx context.Context, args ...string) *DemoProcess {
	t.Helper()
	if _, err := Demo(); err != nil {
		t.Skip(err)
	}
	demo, err := StartDemo(ctx, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = demo.Stop() })
	return demo
}

func waitDone(t *testing.T, demo *DemoProcess) {
	t.Helper()
	select {
	case <-demo.Done():
	case <-time.After(patience):
		t.Fatalf("the demo program still runs after %v", patience)
	}
}

func procFile(t *testing.T, demo *DemoProcess, name string) string {
	t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", demo.PID(), name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(content))
}

func TestStartAndStop(t *testing.T) {
	demo := start(t, t.Context())
	if comm := procFile(t, demo, "comm"); comm != "demo" {
		t.Errorf("it is called %q", comm)
	}
	if cmdline := procFile(t, demo, "cmdline"); !strings.HasPrefix(cmdline, "demo\x00") {
		t.Errorf("its command line is %q", cmdline)
	}
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", demo.PID()))
	if err != nil || len(threads) != 5 {
		t.Errorf("it has threads %v, %v; want one and four workers", threads, err)
	}
	exe := fmt.Sprintf("/proc/%d/exe", demo.PID())
	if want, _ := Demo(); !slices.Equal(read(t, exe), want) {
		t.Error("it does not run the embedded file")
	}
	if path, err := os.Readlink(exe); err != nil || !strings.HasSuffix(path, " (deleted)") {
		t.Errorf("its file has the name %q, %v", path, err)
	}
	descriptors, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", demo.PID()))
	if err != nil || len(descriptors) != 3 {
		t.Errorf("it holds the descriptors %v, %v", descriptors, err)
	}

	for range 2 {
		if err := demo.Stop(); err != nil {
			t.Error(err)
		}
	}
	select {
	case <-demo.Done():
	default:
		t.Error("it is stopped and not done")
	}
	if out := demo.Output(); out != "" {
		t.Errorf("it printed %q", out)
	}
}

func TestEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	demo := start(t, ctx)
	cancel()
	waitDone(t, demo)
}

func TestEndsOnSIGTERM(t *testing.T) {
	demo := start(t, t.Context())
	if err := syscall.Kill(demo.PID(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	waitDone(t, demo)
	if err := demo.Stop(); err == nil || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("Stop says %v of a program that somebody else ended", err)
	}
}

// A parent that is killed can clean up nothing. Its demo must see that and end.
func TestEndsWithAKilledParent(t *testing.T) {
	if _, err := Demo(); err != nil {
		t.Skip(err)
	}
	parent := exec.CommandContext(t.Context(), os.Args[0])
	parent.Env = append(os.Environ(), parentVariable+"=1")
	parent.Stderr = os.Stderr
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	defer parent.Wait() //nolint:errcheck // it is killed
	defer parent.Process.Kill()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	// The descriptor stays with this process when its number is used again.
	demo, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(demo)
	ended := []unix.PollFd{{Fd: int32(demo), Events: unix.POLLIN}}
	if n, err := unix.Poll(ended, 0); n != 0 || err != nil {
		t.Fatalf("the demo program has ended too early (%d, %v)", n, err)
	}

	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	n, err := unix.Poll(ended, int(patience.Milliseconds()))
	for err == unix.EINTR {
		n, err = unix.Poll(ended, int(patience.Milliseconds()))
	}
	if n != 1 || err != nil {
		_ = unix.PidfdSendSignal(demo, unix.SIGKILL, nil, 0)
		t.Fatalf("the demo program outlived its parent (%d, %v)", n, err)
	}
}

func TestCallsAreTheSameInEveryRun(t *testing.T) {
	const requests = 500
	var first string
	for range 3 {
		demo := start(t, t.Context(), "--calls", strconv.Itoa(requests))
		waitDone(t, demo)
		if err := demo.Stop(); err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = demo.Output()
		} else if out := demo.Output(); out != first {
			t.Fatalf("one run said\n%s\nanother\n%s", first, out)
		}
	}

	calls := map[string]int{}
	for line := range strings.Lines(first) {
		var name string
		var n int
		if _, err := fmt.Sscanf(line, "%s %d\n", &name, &n); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		calls[name] = n
	}
	for _, f := range DemoFunctions {
		if calls[f.Name] == 0 {
			t.Errorf("%s was not called in %d requests", f.Name, requests)
		}
	}
	for name, want := range map[string]int{
		"handle_request": requests, "parse_request": requests, "send_reply": requests,
		"unlock_shard": calls["lock_shard"], "update_shard": calls["lock_shard"],
		"free_buffer": calls["alloc_buffer"],
		"hash_key":    calls["lookup_key"] + calls["read_page"],
	} {
		if calls[name] != want {
			t.Errorf("%s was called %d times, want %d", name, calls[name], want)
		}
	}
	if least, most := slices.Min(slices.Collect(maps.Values(calls))), calls["hash_key"]; most < 100*least {
		t.Errorf("the rates spread from %d to %d only", least, most)
	}
}

func TestBadArguments(t *testing.T) {
	for _, args := range [][]string{{"--no-such"}, {"--calls"}, {"--calls", "x"}, {"--calls", "-1"}} {
		demo := start(t, t.Context(), args...)
		waitDone(t, demo)
		if err := demo.Stop(); err == nil {
			t.Errorf("%q is taken", args)
		}
		if out := demo.Output(); out != "" {
			t.Errorf("%q: it printed %q", args, out)
		}
	}
}

// Where a host refuses programs in memory, a file without a name must do.
func TestRunsFromAnUnlinkedFile(t *testing.T) {
	content, err := Demo()
	if err != nil {
		t.Skip(err)
	}
	directory := t.TempDir()
	t.Setenv("TMPDIR", directory)
	program, err := writeNameless(content, openUnlinked)
	if err != nil {
		t.Skipf("this file system has no files without a name: %v", err)
	}
	defer program.Close()
	if entries, err := os.ReadDir(directory); err != nil || len(entries) != 0 {
		t.Errorf("the directory has %v, %v", entries, err)
	}
	demo := exec.CommandContext(t.Context(), "/proc/self/fd/3", "--calls", "1")
	demo.ExtraFiles = []*os.File{program}
	out, err := demo.Output()
	if err != nil || !strings.HasPrefix(string(out), "handle_request 1\n") {
		t.Errorf("it printed %q, %v", out, err)
	}
}

// What the scenes do is tested where it can be seen: in ui/cli.
func TestSetScene(t *testing.T) {
	demo := start(t, t.Context())
	for _, i := range []int{-1, len(DemoScenes)} {
		if err := demo.SetScene(i); err == nil {
			t.Errorf("scene %d is taken", i)
		}
	}
	for i := range DemoScenes {
		if err := demo.SetScene(i); err != nil {
			t.Errorf("scene %d: %v", i, err)
		}
	}
	if _, err := demo.stdin.WriteString("x5\x00"); err != nil { // no scenes
		t.Error(err)
	}
	if err := syscall.Kill(demo.PID(), 0); err != nil {
		t.Errorf("it has ended: %v", err)
	}
	demo.stdin.Close()
	waitDone(t, demo)
	if err := demo.Stop(); err != nil {
		t.Errorf("at the end of its input: %v", err)
	}
	if err := demo.SetScene(0); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("SetScene says %v of a program that has ended", err)
	}
}

// A run that is there to be counted has no weather.
func TestCallsHaveNoScenes(t *testing.T) {
	calm := start(t, t.Context(), "--calls", "2000")
	storm := start(t, t.Context(), "--calls", "2000")
	_ = storm.SetScene(1) // it may have ended already
	if a, b := calm.Output(), storm.Output(); a != b {
		t.Errorf("one run said\n%s\nanother\n%s", a, b)
	}
}
