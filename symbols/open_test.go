package symbols

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOpenSentences opens what cannot be used: each ends in one sentence that
// names the path, and none waits.
func TestOpenSentences(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := unix.Mkfifo(at("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Symlink("loop", at("loop")); err != nil {
		t.Fatal(err)
	}
	elf := readFile(t, prebuilt(t))
	with := func(off int, b ...byte) string {
		c := append([]byte(nil), elf...)
		copy(c[off:], b)
		return writeFile(t, c)
	}
	other := map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]

	for _, c := range []struct{ name, path, want string }{
		{"missing", at("nothing"), "does not exist; check the path"},
		{"below a file", filepath.Join(prebuilt(t), "x"), "does not exist; check the path"},
		{"loop", at("loop"), "too many symbolic links"},
		{"control characters", at("a\x1b[31m"), `a\x1b[31m does not exist`},
		{"directory", dir, "is a directory, not an ELF file"},
		{"pipe", at("fifo"), "is a pipe, not an ELF file"},
		{"socket", at("socket"), "is a socket, not an ELF file"},
		{"device", "/dev/null", "is a device, not an ELF file"},
		{"empty", writeFile(t, nil), "is empty, not an ELF file"},
		{"text", writeFile(t, []byte("#!/bin/sh\nexit 0\n")), "is not an ELF file"},
		{"four bytes", writeFile(t, []byte("\x7fELF")), "is not an ELF file"},
		{"header only", writeFile(t, elf[:64]), "is damaged or cut short"},
		{"half", writeFile(t, elf[:len(elf)/2]), "is damaged or cut short"},
		{"other machine", filepath.Join("testdata", "versioned-"+other+".so"), "is made for " + machineName(machines[other][0]) + " and this host is " + machineName(machines[runtime.GOARCH][0])},
		{"unknown machine", with(18, 0x34, 0x12), "is made for machine number 4660"},
		{"big-endian", with(5, 2, 1, 0), "is made for big-endian"},
		{"neither 32 nor 64 bits", with(4, 7), "neither 32 nor 64 bits"},
		{"object", with(16, 1, 0), "is an object file that is not linked yet"},
		{"core", with(16, 4, 0), "is a core dump"},
		{"unknown type", with(16, 9, 0), "unknown type 9"},
		{"many program headers", with(56, 0xff, 0xff), "program headers have a size that no kernel loads"},
		{"odd section headers", with(58, 7, 0), "section headers have a wrong size"},
		{"sections behind the end", with(40, 0, 0, 0, 1), "section headers would lie behind its end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := Open(c.path)
			if err == nil {
				f.Close()
				t.Fatal("no error")
			}
			s := err.Error()
			if !strings.Contains(s, c.want) {
				t.Errorf("got %q, want it to contain %q", s, c.want)
			}
			if !strings.HasPrefix(s, Printable(c.path)+" ") || s != Printable(s) || strings.HasSuffix(s, ".") {
				t.Errorf("not a sentence that begins with the path: %q", s)
			}
		})
	}
}

// TestOpenOfDebugFile has the code taken away by objcopy.
func TestOpenOfDebugFile(t *testing.T) {
	debug := build(t, "gcc", "plain.c", "-g")
	run(t, "objcopy", "--only-keep-debug", debug)
	_, err := Open(debug)
	if err == nil || !strings.Contains(err.Error(), "holds only debug information") {
		t.Errorf("got %v", err)
	}
}

// TestOpenStaysWithTheInode replaces the path: what was opened is still reached.
func TestOpenStaysWithTheInode(t *testing.T) {
	path := writeFile(t, readFile(t, prebuilt(t)))
	f, err := OpenAs("/shown/elsewhere", path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat(f.Open, &st); err != nil || st.Ino != f.Ino || st.Dev != f.Dev {
		t.Errorf("%s is inode %d of %d (%v), want %d of %d", f.Open, st.Ino, st.Dev, err, f.Ino, f.Dev)
	}
	if f.Path != "/shown/elsewhere" {
		t.Errorf("shown as %s", f.Path)
	}
	fn := one(t, f, "steady")
	if _, err := f.Code(fn, 8); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, err := f.Code(fn, 8); err == nil || !strings.Contains(err.Error(), "code of steady") {
		t.Errorf("code of a closed file: %v", err)
	}
}

// A stripped file has only the functions that it exports, and says so.
func TestStripped(t *testing.T) {
	for flag, want := range map[string]bool{"-s": true, "-g": false} {
		if f := mustOpen(t, build(t, "gcc", "plain.c", "-rdynamic", flag)); f.Stripped != want || len(f.Lookup("work")) != 1 || len(f.Lookup("only_here")) == 1 == want {
			t.Errorf("%s: stripped %v, want %v; only_here %d", flag, f.Stripped, want, len(f.Lookup("only_here")))
		}
	}
}
