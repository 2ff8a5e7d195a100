package symbols

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// child is a copy of cat, which runs until its standard input ends. It answers,
// so that a test knows that its libraries are mapped.
type child struct {
	*exec.Cmd
	path string
	end  func()
}

func startCat(t *testing.T, name string, attr *syscall.SysProcAttr) child {
	t.Helper()
	cat, err := exec.LookPath("cat")
	if err != nil {
		t.Skipf("no cat: %v", err)
	}
	dir, err := os.MkdirTemp("", "symbols") // t.TempDir is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, readFile(t, cat), 0o755); err != nil {
		t.Fatal(err)
	}
	return startAt(t, path, attr)
}

// startAt starts a copy of cat that is there already.
func startAt(t *testing.T, path string, attr *syscall.SysProcAttr) child {
	t.Helper()
	c := child{path: path}
	c.Cmd = exec.Command(c.path)
	c.SysProcAttr = attr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	c.end = func() { in.Close(); c.Wait() }
	t.Cleanup(c.end)
	if _, err := fmt.Fprintln(in, "there?"); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return c
}

func mustProcess(t testing.TB, pid int) *Process {
	t.Helper()
	p, err := OpenProcess(pid)
	if errors.Is(err, fs.ErrPermission) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestProcess(t *testing.T) {
	c := startCat(t, "two  spaces\n and more", nil)
	p := mustProcess(t, c.Process.Pid)
	if p.PID != c.Process.Pid || p.Exe != c.path || p.Start == 0 || !p.Alive() {
		t.Errorf("got %+v", p)
	}
	if want := `two  spaces\x0a an`; p.Comm != want { // the kernel keeps 15 bytes
		t.Errorf("comm is %q, want %q", p.Comm, want)
	}
	if len(p.Mappings) < 2 || p.Mappings[0].Path != c.path {
		t.Fatalf("the executable is not first: %+v", p.Mappings)
	}
	for _, name := range []string{"libc", "c", "libc.so.6"} {
		ms := mappingsOf(p, name)
		if len(ms) != 1 || !strings.HasPrefix(filepath.Base(ms[0].Path), "libc") {
			t.Fatalf("%s is %+v", name, ms)
		}
		f, err := p.File(ms[0])
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Lookup("malloc")) == 0 || f.Ino != ms[0].Ino {
			t.Errorf("%s is not the C library: %s", name, f.Path)
		}
		if !f.mapsAs(ms[0]) {
			t.Errorf("%s mapped here is another inode than %+v", f.Path, ms[0])
		}
		f.Close()
	}
	another := *p
	another.Start++
	if another.Alive() {
		t.Error("a process that started at another time passes for this one")
	}
	if ms := mappingsOf(p, "nothing"); ms != nil {
		t.Errorf("found %+v", ms)
	}
	c.end()
	if p.Alive() {
		t.Error("alive after its end")
	}
	if _, err := p.File(p.Mappings[0]); err == nil || !strings.HasSuffix(err.Error(), "has ended") {
		t.Errorf("a file of an ended process: %v", err)
	}
}

// TestProcessFileReplaced puts another file at the path of a running program:
// what is opened is still the program.
func TestProcessFileReplaced(t *testing.T) {
	c := startCat(t, "cat", nil)
	before := mustOpen(t, c.path)
	p := mustProcess(t, c.Process.Pid)
	held := p.Mappings[0] // from before
	if err := os.Remove(c.path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.path, readFile(t, libcPath(t)), 0o755); err != nil {
		t.Fatal(err)
	}
	now := mustProcess(t, c.Process.Pid)
	m := now.Mappings[0]
	if held.Deleted || !m.Deleted || m.Path != c.path || now.Exe != c.path {
		t.Errorf("before %+v, now %+v of %s", held, m, now.Exe)
	}
	for _, m := range []Mapping{held, m} {
		f, err := now.File(m)
		if err != nil {
			t.Fatal(err)
		}
		if f.Ino != before.Ino || f.Dev != before.Dev || f.BuildID != before.BuildID {
			t.Errorf("opened inode %d, want %d", f.Ino, before.Ino)
		}
		f.Close()
	}
	// Without the kernel's link there is only the path, and it must not be taken.
	m.Deleted = false
	f, err := OpenAs(m.Path, p.path("root", m.Path))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.isMapped(m) {
		t.Error("the new file passes for the one that is mapped")
	}
	// A range that is no longer there is looked up again.
	m.Start, m.End = 0x1000, 0x2000
	again, err := now.File(m)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if again.Ino != before.Ino {
		t.Errorf("opened inode %d, want %d", again.Ino, before.Ino)
	}
}

// TestFileNamedDeleted runs a program whose name only looks deleted.
func TestFileNamedDeleted(t *testing.T) {
	c := startCat(t, "x (deleted)", nil)
	m := mustProcess(t, c.Process.Pid).Mappings[0]
	if m.Deleted || m.Path != c.path {
		t.Errorf("got %+v, want %s", m, c.path)
	}
}

func TestProcessSentences(t *testing.T) {
	ended := startCat(t, "cat", nil)
	ended.end()
	zombie := startCat(t, "cat", nil)
	if err := zombie.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// Wait until it has ended, and leave it to be waited for.
	if err := unix.Waitid(unix.P_PID, zombie.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	tids, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	tid := os.Getpid()
	for _, d := range tids {
		if d.Name() != fmt.Sprint(os.Getpid()) {
			fmt.Sscan(d.Name(), &tid)
		}
	}
	for _, c := range []struct {
		name string
		pid  int
		want string
	}{
		{"zero", 0, "is no process id"},
		{"negative", -4, "is no process id"},
		{"too large", 1 << 30, "does not exist"},
		{"ended", ended.Process.Pid, "does not exist: it has ended"},
		{"zombie", zombie.Process.Pid, "has ended and only waits for its parent"},
		{"thread", tid, fmt.Sprintf("is a thread of process %d", os.Getpid())},
		{"kernel thread", kernelThread(), "is a thread of the kernel"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.pid == -1 {
				t.Skip("no kernel thread is to be seen here")
			}
			_, err := OpenProcess(c.pid)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if s := err.Error(); s != Printable(s) || strings.HasSuffix(s, ".") {
				t.Errorf("not a sentence: %q", s)
			}
		})
	}
}

// kernelThread is the PID of kthreadd, or -1 within a PID namespace.
func kernelThread() int {
	if b, err := os.ReadFile("/proc/2/comm"); err == nil && string(b) == "kthreadd\n" {
		return 2
	}
	return -1
}

const nobody = 65534

// TestWithoutRights runs this test program again as a user with no rights.
func TestWithoutRights(t *testing.T) {
	if os.Getenv("SYMBOLS_TEST_PIDS") != "" {
		withoutRights(t)
		return
	}
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	as := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	own := startCat(t, "cat", as)
	// The program's own path may be closed to that user; a link to it is not.
	self := exec.Command("/proc/self/exe", "-test.run=^TestWithoutRights$", "-test.v")
	self.Env = append(os.Environ(), fmt.Sprintf("SYMBOLS_TEST_PIDS=%d %d", os.Getpid(), own.Process.Pid))
	self.SysProcAttr, self.Dir = as, "/"
	out, err := self.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}

func withoutRights(t *testing.T) {
	var of, own int
	if _, err := fmt.Sscan(os.Getenv("SYMBOLS_TEST_PIDS"), &of, &own); err != nil {
		t.Fatal(err)
	}
	_, err := OpenProcess(of)
	if err == nil || !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "run as root, or with CAP_SYS_PTRACE") {
		t.Errorf("root's process: %v", err)
	}
	p, err := OpenProcess(own)
	if err != nil {
		t.Fatal(err)
	}
	// map_files is closed, the path through root is not.
	for _, m := range p.Mappings {
		f, err := p.File(m)
		if err != nil {
			t.Error(err)
			continue
		}
		f.Close()
	}
	gone := p.Mappings[0]
	gone.Ino++
	if _, err := p.File(gone); err == nil || !strings.Contains(err.Error(), "is no longer the file that process") {
		t.Errorf("another inode: %v", err)
	}
	gone.Path = "/nothing here"
	if _, err := p.File(gone); err == nil || !strings.Contains(err.Error(), "no longer mapped") {
		t.Errorf("a mapping that is not there: %v", err)
	}
	moved := p.Mappings[0]
	moved.Path = "/nothing here"
	if _, err := p.openMapped(moved); err == nil || !strings.Contains(err.Error(), "is deleted or moved, and reached only with CAP_CHECKPOINT_RESTORE") {
		t.Errorf("a moved file: %v", err)
	}
	closed := "/etc/shadow"
	if _, err := Open(closed); err == nil || !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "may not be read by this user; run as root") {
		t.Errorf("%s: %v", closed, err)
	}
}

func TestReadMaps(t *testing.T) {
	const text = `00400000-00401000 r--p 00000000 fe:01 11                                 /bin/a
00401000-00402000 r-xp 00001000 fe:01 11                                 /bin/a
00402000-00403000 r-xp 00009000 fe:01 11                                 /bin/a
7f0000000000-7f0000001000 r-xp 00000000 00:1f 12 /a  b\012c (deleted)
7f0000001000-7f0000002000 rwxp 00000000 00:00 0
7f0000002000-7f0000003000 r-xp 00000000 00:05 13                         /dev/zero (deleted)
7f0000003000-7f0000004000 r-xp 00000000 00:01 14                         /memfd:jit (deleted)
7ffe00000000-7ffe00001000 r-xp 00000000 00:00 0                          [vdso]
`
	ms, err := readMaps(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []Mapping{
		{Path: "/bin/a", Dev: unix.Mkdev(0xfe, 1), Ino: 11, Start: 0x401000, End: 0x402000},
		{Path: "/a  b\nc (deleted)", Dev: unix.Mkdev(0, 0x1f), Ino: 12, Start: 0x7f0000000000, End: 0x7f0000001000},
		{Path: "/memfd:jit (deleted)", Dev: unix.Mkdev(0, 1), Ino: 14, Start: 0x7f0000003000, End: 0x7f0000004000},
	}
	if !slices.Equal(ms, want) {
		t.Errorf("got %+v\nwant %+v", ms, want)
	}
	for _, bad := range []string{"x", "1-2 r-xp 0", "12 r-xp 0 0:0 1 /a", "1-2 r 0 0:0 1 /a", "1-z r-xp 0 0:0 1 /a", "1-2 r-xp 0 00 1 /a", ""} {
		if _, err := readMaps(strings.NewReader(bad + "\n")); err == nil {
			t.Errorf("%q is understood", bad)
		}
	}
}

func mappingsOf(p *Process, name string) []Mapping {
	return findNamed(p.Mappings, func(m Mapping) string { return m.Path }, name)
}

func TestShortNames(t *testing.T) {
	p := &Process{}
	for _, path := range []string{
		"/usr/bin/python3.11", "/lib/libc.so.6", "/lib/libcrypt.so.1", "/lib/libc10.so", "/lib/libssl.so.3",
		"/lib/libstdc++.so.6.0.30", "/lib/libpthread-2.31.so", "/lib/ld-linux-x86-64.so.2", "/opt/libm.so", "/opt/m", "/opt/python3.11-config",
	} {
		p.Mappings = append(p.Mappings, Mapping{Path: path})
	}
	for name, want := range map[string]string{
		"libc": "/lib/libc.so.6", "c": "/lib/libc.so.6", "ssl": "/lib/libssl.so.3", "libstdc++": "/lib/libstdc++.so.6.0.30",
		"stdc++": "/lib/libstdc++.so.6.0.30", "pthread": "/lib/libpthread-2.31.so", "libpthread": "/lib/libpthread-2.31.so",
		"python3.11": "/usr/bin/python3.11", "python": "/usr/bin/python3.11", "m": "/opt/m", "libm": "/opt/libm.so",
		"/lib/libcrypt.so.1": "/lib/libcrypt.so.1", "crypt": "/lib/libcrypt.so.1", "ld-linux-x86-64": "/lib/ld-linux-x86-64.so.2",
		"lib": "", "": "", "so": "", "py": "", "libss": "",
	} {
		got := ""
		if ms := mappingsOf(p, name); len(ms) == 1 {
			got = ms[0].Path
		} else if len(ms) > 1 {
			got = "several"
		}
		if got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}
