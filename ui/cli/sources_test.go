package cli

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// A stripped program gets its names from the build that is given with it, and from no
// other; without one, what would help is told.
func TestSymbols(t *testing.T) {
	strip, err := exec.LookPath("strip")
	if err != nil {
		t.Skip("there is no strip")
	}
	whole, other := target(t, "calls", "-Wl,--build-id"), target(t, "names", "-Wl,--build-id")
	stripped := filepath.Join(t.TempDir(), "calls")
	if out, err := exec.Command(strip, "-o", stripped, whole).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if r := run(t, "list", stripped); r.status != 0 || !strings.Contains(r.out, ", stripped to its exports, ") {
		t.Errorf("without names: status %d, %s%s", r.status, r.errors, r.out)
	}
	r := run(t, "list", "--symbols", whole, stripped, "work")
	if r.status != 0 || !strings.Contains(r.out, ", names from --symbols "+whole+", ") || len(functionColumn(r.out)) == 0 {
		t.Errorf("with names: status %d, %s%s", r.status, r.errors, r.out)
	}
	r = run(t, "list", "-o", "json", "--symbols", other, "--symbols", whole, stripped, "run")
	if r.status != 1 || !strings.Contains(r.errors, other+" does not have the names of "+stripped+": it is of another build: its build id is ") || r.out != "" {
		t.Errorf("of another build: status %d, %s%s", r.status, r.errors, r.out)
	}
	var line struct {
		From string `json:"names_from"`
	}
	r = run(t, "list", "-o", "json", "--symbols", whole, stripped, "run")
	if err := json.Unmarshal([]byte(r.out), &line); err != nil || line.From != "--symbols "+whole {
		t.Errorf("%v: %s%s", err, r.errors, r.out)
	}
	for _, c := range []struct{ file, says string }{
		{stripped, "has no symbol table: name the build before it was stripped"},
		{"/nope", "/nope does not exist"},
		{t.TempDir(), "is a directory"},
	} {
		if r := run(t, "list", "--symbols", c.file, stripped); r.status != 1 || !strings.Contains(r.errors, c.says) {
			t.Errorf("%s: status %d, %s", c.file, r.status, r.errors)
		}
	}
}

// The build of a library to which a name leads is none of the program's own.
func TestSymbolsOfLed(t *testing.T) {
	requireBPF(t)
	dir := t.TempDir()
	source, library, program := filepath.Join(dir, "calc.c"), filepath.Join(dir, "libcalc.so"), filepath.Join(dir, "prog")
	text := "#ifdef MAIN\nint calc(int); int main(void) { return calc(1) - 1; }\n#else\nint calc(int n) { return n; }\n#endif\n"
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	whole := library + ".debug"
	for _, c := range [][]string{
		{"gcc", "-shared", "-fPIC", "-O0", "-Wl,--build-id", "-o", library, source},
		{"objcopy", "--only-keep-debug", library, whole},
		{"strip", library},
		{"gcc", "-DMAIN", "-Wl,--build-id,-rpath," + dir, "-o", program, source, library},
	} {
		if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); errors.Is(err, exec.ErrNotFound) {
			t.Skip(err)
		} else if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	if r := run(t, "stat", "--symbols", whole, program, "calc", "--", program); r.status != 0 || !strings.Contains(r.errors, "calc of prog is that of "+library) {
		t.Errorf("status %d, %s%s", r.status, r.errors, r.out)
	}
	if r := run(t, "stat", "--symbols", whole, program, "main", "--", program); r.status != 1 || !strings.Contains(r.errors, "does not have the names of "+program) {
		t.Errorf("where no name leads to it: status %d, %s", r.status, r.errors)
	}
}

// What was passed over is told where a name is missing, and in the list.
func TestNotesAreTold(t *testing.T) {
	objcopy, err := exec.LookPath("objcopy")
	if err != nil {
		t.Skip("there is no objcopy")
	}
	program, dir := target(t, "calls", "-s", "-rdynamic"), t.TempDir()
	junk := filepath.Join(dir, "junk")
	if err := os.WriteFile(junk, []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(objcopy, "--add-section", ".gnu_debugdata="+junk, program).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const note = "MiniDebugInfo is not used for the names of "
	if r := run(t, "list", program); r.status != 0 || !strings.Contains(r.out, "\n"+note+program+": it is damaged\n") || r.errors != "" {
		t.Errorf("list: status %d, %s%s", r.status, r.errors, r.out)
	}
	if r := run(t, "stat", program, "lost"); r.status != 3 || !strings.HasPrefix(r.errors, "uprobetop: "+note) || !strings.Contains(r.errors, "--symbols") {
		t.Errorf("a name that is missing: status %d, %s", r.status, r.errors)
	}
	if r := run(t, "list", program, "lost"); r.status != 3 || !strings.Contains(r.errors, note) {
		t.Errorf("a pattern of nothing: status %d, %s", r.status, r.errors)
	}
}

// A server is asked with the flag alone, and says what is fetched.
func TestDebuginfodFlag(t *testing.T) {
	program := target(t, "calls", "-s", "-Wl,--build-id")
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusNotFound)
	}))
	defer s.Close()
	t.Setenv("DEBUGINFOD_CACHE_PATH", t.TempDir())
	t.Setenv("DEBUGINFOD_URLS", "")
	if r := run(t, "list", "--debuginfod", program); r.status != 1 || !strings.Contains(r.errors, "DEBUGINFOD_URLS, which names none") {
		t.Errorf("without servers: status %d, %s", r.status, r.errors)
	}
	t.Setenv("DEBUGINFOD_URLS", s.URL)
	if r := run(t, "list", program); r.status != 0 || asked.Load() != 0 {
		t.Errorf("without the flag: status %d, asked %d times, %s", r.status, asked.Load(), r.errors)
	}
	if r := run(t, "list", "--debuginfod", program); r.status != 0 || asked.Load() != 1 || !strings.Contains(r.out, "\ndebuginfod is not used for the names of "+program+": "+s.URL+" does not have it\n") {
		t.Errorf("with the flag: status %d, asked %d times, %s%s", r.status, asked.Load(), r.errors, r.out)
	}
}
