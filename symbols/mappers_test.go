package symbols

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestMappers(t *testing.T) {
	c := startCat(t, "cat", nil)
	f := mustOpen(t, c.path)
	const ample = time.Minute
	for want := 1; want <= 3; want++ {
		if n, all := f.Mappers(ample); n != want || !all {
			t.Errorf("%d processes, %v; want %d", n, all, want)
		}
		startAt(t, c.path, nil)
	}
	// A process that has it mapped as data pays nothing.
	b, err := unix.Mmap(int(f.file.Fd()), 0, 1, unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(b)
	if n, _ := f.Mappers(ample); n != 4 {
		t.Errorf("%d processes with one that only reads it, want 4", n)
	}
	if n, all := f.Mappers(0); all && n != 4 {
		t.Errorf("without time: %d of 4, said to be all", n)
	}
	nobody := filepath.Join(t.TempDir(), "nobody's")
	if err := os.WriteFile(nobody, readFile(t, c.path), 0o755); err != nil {
		t.Fatal(err)
	}
	if n, all := mustOpen(t, nobody).Mappers(ample); n != 0 || !all {
		t.Errorf("a file that nobody runs: %d, %v", n, all)
	}
}
