package symbols

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// cached is one line of a list of libraries.
type cached struct {
	flags uint32
	hwcap uint64
	path  string
}

// cache writes what ldconfig does.
func cache(lines ...cached) []byte {
	const start, entry = 48, 24
	b := append([]byte("glibc-ld.so.cache1.1"), make([]byte, start-20)...)
	binary.LittleEndian.PutUint32(b[20:], uint32(len(lines)))
	var text []byte
	for _, l := range lines {
		at := uint32(start + entry*len(lines) + len(text))
		text = append(text, filepath.Base(l.path)+"\x00"...)
		path := uint32(start + entry*len(lines) + len(text))
		text = append(text, l.path+"\x00"...)
		b = binary.LittleEndian.AppendUint32(b, l.flags)
		b = binary.LittleEndian.AppendUint32(b, at)
		b = binary.LittleEndian.AppendUint32(b, path)
		b = binary.LittleEndian.AppendUint32(b, 0)
		b = binary.LittleEndian.AppendUint64(b, l.hwcap)
	}
	binary.LittleEndian.PutUint32(b[24:], uint32(len(text)))
	return append(b, text...)
}

func TestCache(t *testing.T) {
	list := cache(
		cached{0x0303, 0, "/lib/libc.so.6"},
		cached{0x0003, 0, "/lib32/libc.so.6"},
		cached{0x0803, 0, "/libx32/libc.so.6"},
		cached{0x0a03, 0, "/lib/aarch64/libc.so.6"},
		cached{0x0303, 1 << 62, "/lib/glibc-hwcaps/x86-64-v3/libz.so.1"},
		cached{0x0303, 0, "relative.so"},
		cached{0x0303, 0, ""},
	)
	want := []string{"/lib/libc.so.6", "/lib/glibc-hwcaps/x86-64-v3/libz.so.1"}
	if got := parseCache(list, "amd64"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := parseCache(list, "arm64"); !slices.Equal(got, []string{"/lib/aarch64/libc.so.6"}) {
		t.Errorf("for arm64: %q", got)
	}
	if got := parseCache(list, "riscv64"); got != nil {
		t.Errorf("for a machine whose marks are not known: %q", got)
	}
	old := append([]byte("ld.so-1.7.0\x00"), 1, 0, 0, 0)
	old = append(old, make([]byte, 12+4)...) // an entry, and up to the next 8 bytes
	if got := parseCache(append(old, list...), "amd64"); !slices.Equal(got, want) {
		t.Errorf("behind a list of the old kind: %q", got)
	}
}

func TestCacheDamaged(t *testing.T) {
	whole := cache(cached{0x0303, 0, "/lib/libc.so.6"}, cached{0x0303, 0, "/lib/libm.so.6"})
	for n := range whole {
		parseCache(whole[:n], "amd64")
		for _, v := range []byte{0, 0x7f, 0xff} {
			b := slices.Clone(whole)
			b[n] = v
			parseCache(b, "amd64")
		}
	}
}

func FuzzCache(f *testing.F) {
	f.Add(cache(cached{0x0303, 0, "/lib/libc.so.6"}))
	f.Add([]byte("ld.so-1.7.0\x00\xff\xff\xff\xffglibc-ld.so.cache1.1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, path := range parseCache(b, "amd64") {
			if !strings.HasPrefix(path, "/") || strings.Contains(path, "\x00") {
				t.Errorf("%q is no path", path)
			}
		}
	})
}

// What ldconfig itself prints of the host's list is found in it.
func TestCacheAsLdconfig(t *testing.T) {
	mark := map[string]string{"amd64": "(libc6,x86-64)", "arm64": "(libc6,AArch64)"}[runtime.GOARCH]
	out, err := exec.Command("/sbin/ldconfig", "-p").Output()
	if err != nil || mark == "" {
		t.Skipf("no ldconfig: %v", err)
	}
	var want []string
	for line := range strings.Lines(string(out)) {
		if _, path, found := strings.Cut(line, " => "); found && strings.Contains(line, mark) {
			want = append(want, strings.TrimSpace(path))
		}
	}
	if got := listed(loaderCache, runtime.GOARCH); !slices.Equal(got, want) {
		t.Errorf("%d paths, want %d", len(got), len(want))
	}
}

func TestLibraries(t *testing.T) {
	libc, err := os.Stat(libcPath(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"libc", "c", "libc.so.6"} {
		found := Libraries(name)
		if len(found) != 1 {
			t.Errorf("%s is %q", name, found)
			continue
		}
		if st, err := os.Stat(found[0]); err != nil || !os.SameFile(st, libc) {
			t.Errorf("%s is %s, and programs here use another one", name, found[0])
		}
	}
	for _, name := range []string{"", "/lib/libc.so.6", "nothing-of-this-name", "lib", "../lib/libc"} {
		if found := Libraries(name); found != nil {
			t.Errorf("%q is %q", name, found)
		}
	}
	dir := t.TempDir()
	for _, name := range []string{"libc.so.6", "libown-1.2.so", "ld-musl-x86_64.so.1", "libowner.so.1"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("libown-1.2.so", filepath.Join(dir, "libown.so.1")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "libdir.so.1"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"own": "libown-1.2.so", "libown.so.1": "libown.so.1", "libdir": ""} {
		var got string
		if found := Libraries(name, "/nothing", dir); len(found) == 1 {
			got = filepath.Base(found[0])
		}
		if got != want {
			t.Errorf("%s in a directory given is %q, want %q", name, got, want)
		}
	}
	if found := Libraries("c", dir); len(found) != 2 { // glibc's and musl's, which is its loader
		t.Errorf("c in a directory with two: %q", found)
	}
}

func TestLibraryDirs(t *testing.T) {
	for _, c := range []struct{ flag, want string }{
		{"-Wl,--enable-new-dtags,-rpath,$ORIGIN/lib:/opt/lib", "/env /more ORIGIN/lib /opt/lib"},
		{"-Wl,--disable-new-dtags,-rpath,${ORIGIN}:/opt/lib", "ORIGIN /opt/lib /env /more"},
		{"-pie", "/env /more"},
		{"-static", "/env /more"},
	} {
		path := build(t, "gcc", "plain.c", c.flag)
		got := strings.ReplaceAll(strings.Join(mustOpen(t, path).LibraryDirs("/env:/more"), " "), filepath.Dir(path), "ORIGIN")
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.flag, got, c.want)
		}
	}
}
