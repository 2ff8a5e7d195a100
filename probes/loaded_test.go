package probes

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"uprobetop/bpf/bpftest"
	"uprobetop/symbols"
)

// loads is a process that has libraries loaded, and calls a function of each of them
// 100 times when it is told to.
type loads struct {
	t        *testing.T
	function string
	cmd      *exec.Cmd
	in       io.Writer
	out      *bufio.Reader
}

func startLoads(t *testing.T, program string, paths ...string) *loads {
	t.Helper()
	return startLoadsOf(t, "provided", program, paths...)
}

func startLoadsOf(t *testing.T, function, program string, paths ...string) *loads {
	t.Helper()
	l := &loads{t: t, function: function, cmd: exec.Command(program, append([]string{"100", function}, paths...)...)}
	l.cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Dir(paths[0]))
	l.start()
	return l
}

func (l *loads) start() {
	l.t.Helper()
	t := l.t
	in, err := l.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	l.cmd.Stderr = os.Stderr
	l.in, l.out = in, bufio.NewReader(out)
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); l.cmd.Wait() })
	l.line()
}

func (l *loads) line() string {
	l.t.Helper()
	line, err := l.out.ReadString('\n')
	if err != nil {
		l.t.Fatalf("the process says %q, %v", line, err)
	}
	return line
}

// call has the process call, and returns how often it has in all.
func (l *loads) call() uint64 {
	l.t.Helper()
	if _, err := io.WriteString(l.in, "\n"); err != nil {
		l.t.Fatal(err)
	}
	return parseTruth(l.t, l.line())["called"]
}

func processTarget(t *testing.T, pid int) *Target {
	t.Helper()
	target, err := ProcessTarget(pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { target.Close() })
	return target
}

// hitsOf places probes on the function, by whatever files of the target have it, and
// sums their hits while the process calls.
func hitsOf(t *testing.T, target *Target, l *loads) (hits uint64, s *Snapshot) {
	t.Helper()
	r, err := target.Resolve([]Spec{{Function: l.function}}, false)
	if err != nil {
		t.Fatal(err)
	}
	c := newCollectorHere(t, Config{Filter: target.Filter()})
	place(t, c, r.Requests...)
	before := l.call()
	after := l.call()
	s = finish(t, c)
	for i := range s.Probes {
		hits += s.Probes[i].Hits
	}
	equal(t, "calls", after, 2*before)
	equal(t, "hits", hits, after)
	return hits, s
}

// A library is one file by whatever paths it is loaded, and two copies are two: each
// call counts once.
func TestKernelLoadedTwice(t *testing.T) {
	program, built := bpftest.Build(t, "loads"), bpftest.Compile(t, "testdata/library.c", "-shared", "-fPIC")
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(built)
	must(err)
	for _, d := range []string{"lower", "upper", "work", "merged", "merged2", "upper2", "work2"} {
		must(os.Mkdir(at(d), 0o755))
	}
	for _, name := range []string{"one.so", "copy.so", "bound.so", "lower/over.so"} {
		must(os.WriteFile(at(name), content, 0o755))
	}
	must(os.Link(at("one.so"), at("linked.so")))
	must(os.Symlink(at("one.so"), at("symbolic.so")))
	mounted := func(source, target, kind string, flags uintptr, options string) bool {
		if err := unix.Mount(source, target, kind, flags, options); err != nil {
			t.Logf("%s: %v", target, err)
			return false
		}
		t.Cleanup(func() { _ = unix.Unmount(target, unix.MNT_DETACH) })
		return true
	}
	cases := map[string][]string{
		"two copies":    {at("one.so"), at("copy.so")},
		"namespaces":    {at("one.so"), "+" + at("one.so")},
		"hard link":     {at("one.so"), "+" + at("linked.so")},
		"symbolic link": {at("symbolic.so"), "+" + at("one.so")},
	}
	if mounted(at("one.so"), at("bound.so"), "", unix.MS_BIND, "") {
		cases["bind mount"] = []string{at("one.so"), "+" + at("bound.so")}
	}
	layers := func(upper, work string) string {
		return "lowerdir=" + at("lower") + ",upperdir=" + at(upper) + ",workdir=" + at(work)
	}
	if mounted("overlay", at("merged"), "overlay", 0, layers("upper", "work")) &&
		mounted("overlay", at("merged2"), "overlay", 0, layers("upper2", "work2")) {
		cases["overlay"] = []string{at("merged/over.so"), at("lower/over.so")}
		cases["two overlays"] = []string{at("merged/over.so"), at("merged2/over.so")}
	}
	for name, paths := range cases {
		t.Run(name, func(t *testing.T) {
			l := startLoads(t, program, paths...)
			_, s := hitsOf(t, processTarget(t, l.cmd.Process.Pid), l)
			want := 1
			if name == "two copies" {
				want = 2
			}
			if len(s.Probes) != want {
				t.Errorf("%d probes, want %d", len(s.Probes), want)
			}
		})
	}
}

// What a process runs is probed, not what stands at the path by now, and the file
// says what became of it.
func TestKernelReplaced(t *testing.T) {
	program, library := bpftest.Build(t, "loads"), bpftest.Compile(t, "testdata/library.c", "-shared", "-fPIC")
	content, err := os.ReadFile(library)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want   string
		change func() error
	}{
		{"", func() error { return nil }},
		{symbols.Overwritten, func() error { return os.Rename(library+".new", library) }},
		{symbols.Deleted, func() error { return os.Remove(library) }},
	} {
		if err := os.WriteFile(library+".new", content, 0o755); err != nil {
			t.Fatal(err)
		}
		l := startLoads(t, program, library)
		old := fileTarget(t, library).Files[0]
		if err := c.change(); err != nil {
			t.Fatal(err)
		}
		_, s := hitsOf(t, processTarget(t, l.cmd.Process.Pid), l)
		f := s.Probes[0].File
		if f.Replaced != c.want || f.Ino != old.Ino || f.Path != library {
			t.Errorf("%s, inode %d, is %q; want inode %d, %q", f.Path, f.Ino, f.Replaced, old.Ino, c.want)
		}
	}
}

// The C library that a process was started with goes on being the one that is probed
// when an upgrade puts another one in its place.
func TestKernelLibcReplaced(t *testing.T) {
	program, libc := bpftest.Build(t, "loads"), libcCopy(t)
	l := startLoadsOf(t, "getppid", program, libc)
	content, err := os.ReadFile(libc)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(libc+".new", content, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(libc+".new", libc); err != nil {
		t.Fatal(err)
	}
	_, s := hitsOf(t, processTarget(t, l.cmd.Process.Pid), l)
	if f := s.Probes[0].File; len(s.Probes) != 1 || f.Path != libc || f.Replaced != symbols.Overwritten {
		t.Errorf("%d probes, the first in %s, which is %q", len(s.Probes), f.Path, f.Replaced)
	}
	if n, all := fileTarget(t, libc).Files[0].OldMappers(time.Minute); n != 1 || !all {
		t.Errorf("%d processes run an older copy, all of them seen: %v; want 1", n, all)
	}
}

// A process in a root of its own has the files there probed, not the host's of the
// same paths.
func TestKernelChroot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can change the root")
	}
	program, root := bpftest.Build(t, "loads"), t.TempDir()
	out, err := exec.Command("ldd", program).Output()
	if err != nil {
		t.Skipf("ldd: %v", err)
	}
	var libc string
	for field := range strings.FieldsSeq(string(out) + " " + program) {
		if !strings.HasPrefix(field, "/") {
			continue
		}
		if strings.Contains(field, "/libc.so") {
			libc = field
		}
		content, err := os.ReadFile(field)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(root+field), 0o755), os.WriteFile(root+field, content, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	if libc == "" {
		t.Skip("the program uses no shared libc")
	}
	l := &loads{t: t, function: "getppid", cmd: exec.Command(program, "100", "getppid", libc)}
	l.cmd.Env = []string{}
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Unshareflags: syscall.CLONE_NEWNS}
	l.start()
	_, s := hitsOf(t, processTarget(t, l.cmd.Process.Pid), l)
	own, host := open(t, root+libc), open(t, libc)
	if f := s.Probes[0].File; !f.Same(own) || f.Same(host) || f.Badge() != "" {
		t.Errorf("%s is inode %d, %q; want %d and not the host's %d", f.Path, f.Ino, f.Badge(), own.Ino, host.Ino)
	}
}

// Where a library's addresses and segments lie makes no difference, not even as a
// prelinker leaves them.
func TestKernelLibraries(t *testing.T) {
	program := bpftest.Build(t, "loads")
	for name, flag := range map[string]string{
		"prelinked":       "-Wl,-Ttext-segment=0x3000000000",
		"noseparate-code": "-Wl,-z,noseparate-code",
		"large pages":     "-Wl,-z,max-page-size=0x200000",
	} {
		t.Run(name, func(t *testing.T) {
			l := startLoads(t, program, bpftest.Compile(t, "testdata/library.c", "-shared", "-fPIC", flag))
			hitsOf(t, processTarget(t, l.cmd.Process.Pid), l)
		})
	}
}
