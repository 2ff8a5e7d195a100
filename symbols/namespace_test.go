package symbols

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMountNamespace looks at a process as it runs in a container: at its path
// the host has another file, and on an overlay stat(2) and the maps file may
// name the same inode differently.
func TestMountNamespace(t *testing.T) {
	if dir := os.Getenv("SYMBOLS_TEST_DIR"); dir != "" {
		inNamespace(t, dir)
		return
	}
	if os.Getuid() != 0 {
		t.Skip("only root can mount")
	}
	cat, err := exec.LookPath("cat")
	if err != nil {
		t.Skipf("no cat: %v", err)
	}
	want := mustOpen(t, cat).BuildID
	for _, kind := range []string{"tmpfs", "overlay"} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			host := filepath.Join(dir, "merged", "cat")
			for _, d := range []string{"lower", "upper", "work", "merged"} {
				if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(host, readFile(t, prebuilt(t)), 0o755); err != nil {
				t.Fatal(err)
			}
			p := mustProcess(t, startInNamespace(t, kind, dir))
			m := p.Mappings[0]
			if m.Path != host || p.Exe != host {
				t.Fatalf("%s runs %+v, want %s", p, m, host)
			}
			f, err := p.File(m)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if f.BuildID != want {
				t.Errorf("opened build %s, want %s", f.BuildID, want)
			}
			through, err := OpenAs(m.Path, p.path("root", m.Path))
			if err != nil {
				t.Fatal(err)
			}
			defer through.Close()
			if !through.isMapped(m) {
				t.Errorf("inode %d of device %#x is not known for %+v", through.Ino, through.Dev, m)
			}
			if mustOpen(t, host).isMapped(m) {
				t.Error("the host's file passes for the process's")
			}
			s, err := See(p.PID)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			may, err := f.MayMap(p.PID)
			if len(s.Of(f)) == 0 || len(s.Of(through)) == 0 || len(s.Of(mustOpen(t, host))) > 0 || !may || err != nil {
				t.Errorf("regions of it: %v, of the same at its path %v, of the host's %v", s.Of(f), s.Of(through), s.Of(mustOpen(t, host)))
			}
		})
	}
}

// startInNamespace runs this test again with mounts of its own, and returns the
// PID of the copy of cat that it starts there.
func startInNamespace(t *testing.T, kind, dir string) int {
	t.Helper()
	self := exec.Command("/proc/self/exe", "-test.run=^TestMountNamespace$", "-test.v")
	self.Env = append(os.Environ(), "SYMBOLS_TEST_DIR="+dir, "SYMBOLS_TEST_KIND="+kind)
	self.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	in, err := self.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := self.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Start(); err != nil {
		t.Skipf("no mount namespace: %v", err)
	}
	t.Cleanup(func() { in.Close(); self.Wait() })
	said := ""
	for lines := bufio.NewScanner(out); lines.Scan(); said += lines.Text() + "\n" {
		var pid int
		if _, err := fmt.Sscanf(lines.Text(), "runs as %d", &pid); err == nil {
			return pid
		}
	}
	if strings.Contains(said, "--- SKIP") {
		t.Skip(said)
	}
	t.Fatal(said)
	return 0
}

func inNamespace(t *testing.T, dir string) {
	at := func(name string) string { return filepath.Join(dir, name) }
	cat, err := exec.LookPath("cat")
	if err != nil {
		t.Fatal(err)
	}
	copyOf := readFile(t, cat)
	options, to := "", at("merged/cat")
	if os.Getenv("SYMBOLS_TEST_KIND") == "overlay" {
		options = fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", at("lower"), at("upper"), at("work"))
		to = at("lower/cat")
	}
	if options != "" {
		if err := os.WriteFile(to, copyOf, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mount("none", at("merged"), os.Getenv("SYMBOLS_TEST_KIND"), 0, options); err != nil {
		t.Skipf("no such mount here: %v", err)
	}
	if options == "" {
		if err := os.WriteFile(to, copyOf, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c := startAt(t, at("merged/cat"), nil)
	fmt.Printf("runs as %d\n", c.Process.Pid)
	io.Copy(io.Discard, os.Stdin) // until the other side is done
}
