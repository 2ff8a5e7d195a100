package cli

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/creack/pty"
)

// versioned is a library in which api has an old version and a default one.
func versioned(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../symbols/testdata/versioned-" + runtime.GOARCH + ".so")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// functionColumn is what the lines of a table have from the name on.
func functionColumn(out string) (names []string) {
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "0x") || strings.HasPrefix(line, none) {
			names = append(names, strings.Join(strings.Fields(line)[4:], " "))
		}
	}
	return names
}

func TestListTable(t *testing.T) {
	path := versioned(t)
	r := run(t, "list", path)
	if r.status != 0 || r.errors != "" {
		t.Fatalf("status %d: %s", r.status, r.errors)
	}
	first, _, _ := strings.Cut(r.out, "\n")
	for _, part := range []string{path, "build id ", "functions, ", " cannot be probed"} {
		if !strings.Contains(first, part) {
			t.Errorf("the first line has no %q: %s", part, first)
		}
	}
	if !strings.Contains(r.out, "\n-r asks first: whoever maps "+path) {
		t.Errorf("the list does not say what is asked before something is timed: %s", r.out)
	}
	all := strings.Join(functionColumn(r.out), "\n")
	if !strings.Contains(all, "api@@V2 (also new_api)\napi@V1 (old version; also old_api)\n") || !strings.Contains(all, "steady@@V1") {
		t.Errorf("the functions are\n%s", all)
	}
	for pattern, want := range map[string]string{
		"st*":     "steady@@V1",
		"api":     "api@@V2 (also new_api)|api@V1 (old version; also old_api)",
		"api@@V2": "api@@V2 (also new_api)",
		"tead":    "steady@@V1",
	} {
		r := run(t, "list", path, pattern)
		if got := strings.Join(functionColumn(r.out), "|"); got != want {
			t.Errorf("%s: %s, want %s%s", pattern, got, want, r.errors)
		}
	}
}

// What cannot be probed says why, and so does what can only be counted.
func TestListLimits(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("x86-64 only")
	}
	first := target(t, "first")
	for function, want := range map[string][3]string{
		"plain":  {"ok", "", ""},
		"vex2":   {"no", "AVX", "probe a function that calls it"},
		"locked": {"no", "refuses to step", "probe a function that calls it"},
	} {
		r := run(t, "list", first, function)
		names := functionColumn(r.out)
		if len(names) == 0 || !strings.Contains(r.out, "  "+want[0]+" ") ||
			!strings.Contains(names[0], want[1]) || !strings.Contains(names[0], want[2]) {
			t.Errorf("%s: %s%s", function, r.out, r.errors)
		}
	}
	_, libc := privateLibc(t, first)
	r := run(t, "list", libc, "_setjmp")
	if !regexp.MustCompile(`  count  \w+ +_setjmp@@`).MatchString(r.out) || !strings.Contains(r.out, "counts only: the function returns more than once") {
		t.Errorf("%+v", r)
	}
}

func TestListJSON(t *testing.T) {
	path := versioned(t)
	r := run(t, "list", "-o", "json", path, "a*")
	var lines []map[string]any
	for line := range strings.Lines(r.out) {
		var o map[string]any
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		lines = append(lines, o)
	}
	if len(lines) != 2 || r.status != 0 || r.errors != "" {
		t.Fatalf("%+v", r)
	}
	for i, symbol := range []string{"api@@V2", "api@V1"} {
		if o := lines[i]; o["schema"] != "uprobetop/1" || o["type"] != "function" || o["symbol"] != symbol ||
			o["path"] != path || o["probe"] != "ok" || o["reason"] != "" {
			t.Errorf("%v", o)
		}
	}
}

func TestListBadInput(t *testing.T) {
	path := versioned(t)
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{path, "staedy"}, 3, "nearest name is steady"},
		{[]string{path, "staedy*"}, 3, "nearest name is steady"},
		{[]string{path, "nothing-like-it"}, 3, "no function"},
		{[]string{path, "a", "b"}, 2, "one pattern"},
		{[]string{path, "-o", "csv"}, 2, "table or json"},
		{[]string{}, 2, "name a target"},
		{[]string{"/nope"}, 1, "does not exist"},
		{[]string{path, "-p", "0"}, 2, "above 0"},
	} {
		r := run(t, append([]string{"list"}, c.args...)...)
		if r.status != c.status || r.out != "" || strings.Count(r.errors, "\n") != 1 || !strings.Contains(r.errors, c.says) {
			t.Errorf("%v: %+v", c.args, r)
		}
	}
}

// A list needs no rights.
func TestListAsUser(t *testing.T) {
	if syscall.Geteuid() != 0 {
		t.Skip("needs root, to become another")
	}
	const nobody = 65534
	lib, err := os.ReadFile(versioned(t))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for d := dir; len(d) > len(os.TempDir()); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "versioned.so")
	if err := os.WriteFile(path, lib, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := program("list", path, "steady")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if r := finish(t, cmd, nil); r.status != 0 || !strings.Contains(r.out, "steady") {
		t.Errorf("%+v", r)
	}
}

// Of a process, its files are listed one after the other, or the one named.
func TestListProcess(t *testing.T) {
	p := strconv.Itoa(startWaiting(t, "", target(t, "allocs")).Process.Pid)
	all := run(t, "list", "-p", p, "malloc")
	if !strings.Contains(all.out, "/libc.so.6, build id") || !strings.Contains(all.out, "malloc@@") || all.status != 0 {
		t.Errorf("%+v", all)
	}
	for _, args := range [][]string{{"list", "-p", p, "libc", "mallo[c]"}, {"list", "-p", p, "libc:mallo[c]"}} {
		if r := run(t, args...); r.status != 0 || len(functionColumn(r.out)) != 1 || !strings.Contains(r.out, "malloc@@") {
			t.Errorf("%v: %+v", args, r)
		}
	}
}

// On a terminal no line is longer than it.
func TestListWidth(t *testing.T) {
	cmd := program("list", target(t, "first"))
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 60})
	if err != nil {
		t.Skip(err)
	}
	defer tty.Close()
	all, _ := io.ReadAll(tty) // ends with EIO, when the program has ended
	out := string(all)
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	cutLines := 0
	for i, line := range strings.Split(strings.ReplaceAll(out, "\r", ""), "\n") {
		if n := utf8.RuneCountInString(line); i > 2 && n > 60 {
			t.Errorf("%d columns: %s", n, line)
		}
		if strings.HasSuffix(line, "…") {
			cutLines++
		}
	}
	if cutLines == 0 {
		t.Errorf("no line is cut: %s", out)
	}
}
