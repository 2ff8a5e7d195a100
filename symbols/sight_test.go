package symbols

import (
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// A process is seen as it is: its code by the bytes of its file, and a mapping that was
// writable once by the kernel's own note.
func TestSee(t *testing.T) {
	f := mustOpen(t, "/proc/self/exe")
	s, err := See(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fn := f.Lookup("uprobetop/symbols.TestSee")
	if len(fn) != 1 {
		t.Fatalf("%d functions are this one", len(fn))
	}
	want, err := f.Code(fn[0], 16)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, r := range s.Of(f) {
		if !r.Code || !r.Holds(fn[0].Offset) {
			continue
		}
		found++
		got, err := s.Read(r.Start+uint64(fn[0].Offset-r.Offset), 16)
		if err != nil || string(got) != string(want) {
			t.Errorf("in memory % x, in the file % x: %v", got, want, err)
		}
		if was, known := s.WasWritable(r); was || !known || r.Writable || r.Shared || r.Anonymous() {
			t.Errorf("%+v: was writable: %v, known: %v", r, was, known)
		}
		addrs := s.Expected(f, fn[0].Offset)
		if len(addrs) == 0 || addrs[0] != r.Start+uint64(fn[0].Offset-r.Offset) {
			t.Errorf("expected at %#x", addrs)
		}
	}
	if may, err := f.MayMap(os.Getpid()); found != 1 || !may || err != nil {
		t.Errorf("%d regions have it; it may be mapped: %v, %v", found, may, err)
	}
}

func TestSeeWasWritable(t *testing.T) {
	f := mustOpen(t, "/proc/self/exe")
	file, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	b, err := unix.Mmap(int(file.Fd()), 0, 1, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(b)
	if err := unix.Mprotect(b, unix.PROT_READ|unix.PROT_EXEC); err != nil {
		t.Skipf("not to be had here: %v", err)
	}
	s, err := See(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	once := 0
	for _, r := range s.Of(f) {
		if was, _ := s.WasWritable(r); was && !r.Writable && r.Code {
			once++
		}
	}
	if once != 1 {
		t.Errorf("%d regions were writable once, want 1", once)
	}
}

// What is no process of these is one sentence.
func TestSeeNobody(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Skip(err)
	}
	for _, pid := range []int{0, -1, cmd.Process.Pid} {
		if s, err := See(pid); err == nil {
			t.Errorf("%d is %s", pid, s)
		}
	}
	for _, line := range []string{"", "1-2 r-xp", "1-2 r-xp zz 00:00 0 ", "1-2 r-x 0 00:00 0 "} {
		if r, err := parseRegion(line); err == nil {
			t.Errorf("%q is %+v", line, r)
		}
	}
}
