package symbols

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// server answers with what a test wants, and counts how often it is asked.
func server(t testing.TB, answer http.HandlerFunc) (url string, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

func asking(t testing.TB, cache string, urls ...string) *Debuginfod {
	t.Helper()
	d, err := NewDebuginfod(func(name string) string {
		return map[string]string{"DEBUGINFOD_URLS": strings.Join(urls, " "), "DEBUGINFOD_CACHE_PATH": cache}[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.client.CloseIdleConnections)
	return d
}

// holdsFiles says what a directory and those below it have.
func holdsFiles(t testing.TB, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			path, _ = filepath.Rel(dir, path)
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestDebuginfod(t *testing.T) {
	p := split(t)
	debug := readFile(t, p.debug)
	url, asked := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/buildid/"+p.file.BuildID+"/debuginfo" {
			t.Errorf("asked for %s", r.URL)
		}
		_, _ = w.Write(debug)
	})
	none, _ := server(t, http.NotFound)
	t.Setenv("DEBUGINFOD_URLS", url)
	root, cache := t.TempDir(), filepath.Join(t.TempDir(), "cache")
	if f := openWith(t, &Sources{Root: root}, p.stripped); !f.Stripped || asked.Load() > 0 {
		t.Errorf("a server is asked %d times though nobody said so; names from %q", asked.Load(), f.Source)
	}
	d := asking(t, cache, none, "ima:enforcing", url+"/")
	var said []string
	d.Say = func(text string) { said = append(said, text) }
	s := &Sources{Root: root, Debuginfod: d}
	for range 2 {
		p.asWhole(t, openWith(t, s, p.stripped), "debuginfod")
	}
	if asked.Load() != 1 || len(said) != 1 || !strings.Contains(said[0], p.stripped) {
		t.Errorf("asked %d times for one file, said %q", asked.Load(), said)
	}
	want := filepath.Join(p.file.BuildID, "debuginfo")
	if files := holdsFiles(t, cache); len(files) != 1 || files[0] != want {
		t.Errorf("the cache has %q", files)
	}
	if st, err := os.Stat(filepath.Join(cache, want)); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	// What is in the cache and wrong is fetched again, and no link is followed.
	other := filepath.Join(t.TempDir(), "other")
	copyTo(t, other, p.stripped)
	if err := os.Remove(filepath.Join(cache, want)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, filepath.Join(cache, want)); err != nil {
		t.Fatal(err)
	}
	before := readFile(t, other)
	if f := openWith(t, &Sources{Root: root, Debuginfod: d}, p.stripped); string(readFile(t, other)) != string(before) {
		t.Errorf("what a link in the cache led to was written; %q", f.Notes)
	}
	if err := os.RemoveAll(filepath.Join(cache, p.file.BuildID)); err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	if err := os.Symlink(out, filepath.Join(cache, p.file.BuildID)); err != nil {
		t.Fatal(err)
	}
	if f := openWith(t, s, p.stripped); !f.Stripped || len(holdsFiles(t, out)) > 0 {
		t.Errorf("a link leads out of the cache, which has %q now; notes %q", holdsFiles(t, out), f.Notes)
	}
}

// A server that sends nothing useful, nothing at all or no end leaves a note, and
// nothing in the cache.
func TestDebuginfodFails(t *testing.T) {
	p, other := split(t), split(t, "-static")
	debug, wrong := readFile(t, p.debug), readFile(t, other.debug)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := "http://" + l.Addr().String()
	l.Close()
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		note   string
	}{
		"not there": {http.NotFound, "does not have it"},
		"broken": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(500)
			fmt.Fprint(w, "\x1b[31mmy stack trace")
		}, `answers "500`},
		"a page":        {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>log in first") }, "not an ELF file"},
		"another build": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(wrong) }, "of another build"},
		"cut short":     {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(debug[:len(debug)-100]) }, "damaged or cut short"},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(debug)))
			_, _ = w.Write(debug[:1000])
		}, "EOF"},
		"too large": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100000000000000")
			w.WriteHeader(200)
		}, "more than is fetched"},
		"without end": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(debug); err != nil {
					return
				}
			}
		}, "more than"},
		"silent": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "does not answer within"},
		"falls silent": {func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "\x7fELF")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, "does not answer within"},
		"drips": {func(w http.ResponseWriter, r *http.Request) {
			for drip := time.Tick(5 * time.Millisecond); r.Context().Err() == nil; <-drip {
				w.Write([]byte{0x7f})
				w.(http.Flusher).Flush()
			}
		}, "less than 16 KB a second"},
		"nobody at all": {nil, "cannot be asked"},
	} {
		t.Run(name, func(t *testing.T) {
			url, asked := gone, new(atomic.Int64)
			if c.answer != nil {
				url, asked = server(t, c.answer)
			}
			cache := t.TempDir()
			d := asking(t, cache, url)
			d.most = 1 << 20
			if strings.Contains(c.note, "within") || name == "drips" {
				d.patience = 100 * time.Millisecond
			}
			s := &Sources{Root: t.TempDir(), Debuginfod: d}
			f := openWith(t, s, p.stripped)
			if !f.Stripped || len(f.Notes) != 1 || !strings.Contains(f.Notes[0], c.note) || f.Notes[0] != Printable(f.Notes[0]) {
				t.Errorf("from %q, notes %q; want %q", f.Source, f.Notes, c.note)
			}
			if files := holdsFiles(t, cache); len(files) > 0 {
				t.Errorf("the cache has %q", files)
			}
			openWith(t, s, other.stripped)
			if dead := name == "silent"; dead && asked.Load() != 1 {
				t.Errorf("a server that does not answer is asked %d times", asked.Load())
			}
		})
	}
}

func TestDebuginfodEnvironment(t *testing.T) {
	for _, c := range []struct {
		env         map[string]string
		cache, says string
	}{
		{nil, "", "DEBUGINFOD_URLS, which names none"},
		{map[string]string{"DEBUGINFOD_URLS": "ima:enforcing file:///tmp"}, "", "which names none"},
		{map[string]string{"DEBUGINFOD_URLS": "http://x"}, "", "set DEBUGINFOD_CACHE_PATH"},
		{map[string]string{"DEBUGINFOD_URLS": "http://x", "HOME": "/h"}, "/h/.cache/debuginfod_client", ""},
		{map[string]string{"DEBUGINFOD_URLS": "http://x", "HOME": "/h", "XDG_CACHE_HOME": "/c"}, "/c/debuginfod_client", ""},
		{map[string]string{"DEBUGINFOD_URLS": "http://x", "XDG_CACHE_HOME": "/c", "DEBUGINFOD_CACHE_PATH": "/d"}, "/d", ""},
	} {
		d, err := NewDebuginfod(func(name string) string { return c.env[name] })
		switch {
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%v: %v", c.env, err)
		case c.says == "" && (err != nil || d.cache != c.cache):
			t.Errorf("%v: %v, %v; want %s", c.env, d, err, c.cache)
		}
	}
}

// What was begun long ago and never ended goes; the rest of the cache stays.
func TestDebuginfodSweeps(t *testing.T) {
	cache := t.TempDir()
	root, err := os.OpenRoot(cache)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	ages := map[string]time.Duration{"debuginfo": 72 * time.Hour, "debuginfo.OLD": 72 * time.Hour, "debuginfo.NEW": time.Minute, "executable": 72 * time.Hour}
	if err := root.Mkdir("id", 0o700); err != nil {
		t.Fatal(err)
	}
	for name, age := range ages {
		path := filepath.Join(cache, "id", name)
		at := time.Now().Add(-age)
		if err := cmp.Or(os.WriteFile(path, nil, 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	sweep(root, "id")
	for name := range ages {
		if _, err := os.Stat(filepath.Join(cache, "id", name)); (err != nil) != (name == "debuginfo.OLD") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
