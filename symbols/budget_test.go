package symbols

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// withHole writes a file whose string table says that it is as large as a hole in it.
func withHole(t *testing.T, whole []byte, size int64) string {
	t.Helper()
	b := append([]byte(nil), whole...)
	im, _, err := readImage(strings.NewReader(string(b)), uint64(len(b)))
	if err != nil || !im.is64 {
		t.Skipf("64-bit files only: %v", err)
	}
	at := order.Uint64(b[40:])
	for i, s := range im.sections {
		if uint32(i) != im.nameTable && s.typ == 3 { // SHT_STRTAB
			order.PutUint64(b[at+64*uint64(i)+24:], uint64(len(b)))
			order.PutUint64(b[at+64*uint64(i)+32:], uint64(size))
		}
	}
	path := writeFile(t, b)
	if err := os.Truncate(path, int64(len(b))+size); err != nil {
		t.Fatal(err)
	}
	return path
}

// A hole costs nothing on disk, and nothing in memory.
func TestHole(t *testing.T) {
	path := withHole(t, readFile(t, prebuilt(t)), 512<<20)
	used := allocatedBy(func() {
		if f, err := Open(path); err == nil || !strings.Contains(err.Error(), "512 MB") {
			t.Errorf("it opens as %v, %v", f, err)
		}
	})
	if used > 8<<20 {
		t.Errorf("it takes %d MB", used>>20)
	}
}

// What the files of a process have of names is bounded together, and given back.
func TestBudget(t *testing.T) {
	p := mustProcess(t, os.Getpid())
	p.budget.taken = maxProcessNames - 100
	path := prebuilt(t)
	if f, err := (*Sources)(nil).openOf(p, path, path); err == nil || !strings.Contains(err.Error(), "names") {
		t.Errorf("beyond the budget it opens as %v, %v", f, err)
	}
	p.budget.taken = 7
	f, err := (*Sources)(nil).openOf(p, path, path)
	if err != nil || p.budget.taken < 100 {
		t.Fatalf("%v, %d bytes are taken", err, p.budget.taken)
	}
	f.Close()
	f.Close()
	if p.budget.taken != 7 {
		t.Errorf("%d bytes stay taken", p.budget.taken-7)
	}
}

// Of an environment that has no end the beginning is read.
func TestVariable(t *testing.T) {
	cmd := exec.Command("cat")
	cmd.Env = []string{"A=1", "LD_PRELOAD=/x/y.so"}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	// Once it answers it has an environment: not yet when its exec has only begun.
	if _, err := in.Write([]byte{'x'}); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if v, ok := Variable(cmd.Process.Pid, "LD_PRELOAD"); !ok || v != "/x/y.so" {
		t.Errorf("LD_PRELOAD is %q, %v", v, ok)
	}
	if v, ok := Variable(cmd.Process.Pid, "LD"); !ok || v != "" {
		t.Errorf("LD is %q, %v", v, ok)
	}
}

// Nobody waits for the checksum of a hole.
func TestHoleIsNoDebugFile(t *testing.T) {
	path := writeFile(t, readFile(t, prebuilt(t)))
	if err := os.Truncate(path, 4<<40); err != nil {
		t.Skip(err)
	}
	twin, err := openTwin(path)
	if err != nil {
		t.Fatal(err)
	}
	defer twin.Close()
	if err := twin.linked("", 0); err == nil || !strings.Contains(err.Error(), "checksum is not made") {
		t.Errorf("4 TB have the checksum 0: %v", err)
	}
}

// Names that are ends of one long name do not add up without end.
func TestLongNames(t *testing.T) {
	tab := table{strings: strings.Repeat("x", 16<<10) + "\x00"}
	sc, sum := scan{named: tab.longNames(100)}, 0
	for range 8192 {
		name := sc.short(tab.name(1))
		sum += len(name)
		if len(name) < 256 {
			t.Fatalf("a name has %d bytes", len(name))
		}
	}
	if sum < 4<<20 || sum > 8<<20 {
		t.Errorf("a part of the table has %d bytes of names", sum)
	}
}
