package symbols

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// systemFiles are the ELF files of this machine, each once, whatever links to it.
// Without UPROBETOP_LONG it is one of every 300.
func systemFiles(t testing.TB) (paths []string) {
	t.Helper()
	for _, dir := range []string{"/usr/bin", "/usr/sbin", "/usr/lib"} {
		if real, err := filepath.EvalSymlinks(dir); err != nil || real != dir {
			continue // another name of a directory that is looked at
		}
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil
			}
			f, err := os.Open(path)
			if err != nil {
				return nil
			}
			defer f.Close()
			magic := make([]byte, 4)
			if _, err := f.Read(magic); err != nil || string(magic) != "\x7fELF" {
				return nil
			}
			paths = append(paths, path)
			return nil
		})
	}
	if len(paths) == 0 {
		t.Skip("no ELF files here")
	}
	if os.Getenv("UPROBETOP_LONG") == "" {
		const few = 40 // over all of them, however many are installed
		for i := range min(few, len(paths)) {
			paths[i] = paths[i*len(paths)/min(few, len(paths))]
		}
		paths = paths[:min(few, len(paths))]
	}
	return paths
}

// Every ELF file of the machine is listed, or refused in one sentence.
func TestEverySystemFile(t *testing.T) {
	for _, path := range systemFiles(t) {
		f, err := Open(path)
		if err != nil {
			if s := err.Error(); s != Printable(s) || strings.Contains(s, "\n") {
				t.Errorf("not one sentence: %q", s)
			}
			continue
		}
		f.ReadBeginnings()
		list := f.List("")
		if len(list) != len(f.Functions) {
			t.Errorf("%s: %d of %d functions are listed", path, len(list), len(f.Functions))
		}
		for i := range list {
			if s := list[i].Versioned(); s != Printable(s) {
				t.Errorf("%s: %q is not fit for a terminal", path, s)
			}
		}
		if _, total := Search([]*File{f}, "", 1); total != len(f.Functions) {
			t.Errorf("%s: %d of %d functions are found", path, total, len(f.Functions))
		}
		f.Close()
	}
}
