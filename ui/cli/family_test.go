package cli

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// The children of a process count if so asked, those that it had and those that it
// starts later; if not, it is told that there are some. A command's children count
// unless it is said.
func TestStatChildren(t *testing.T) {
	requireBPF(t)
	path := target(t, "workers")
	const workers, calls = 3, 500
	for _, c := range []struct {
		flags []string
		want  uint64
		told  string
	}{
		{nil, calls, "has started 3 processes of the same program, whose hits do not count: --children counts them, too\n"},
		{[]string{"--children"}, (workers + 2) * calls, ""},
	} {
		w := startWaiting(t, "", path, strconv.Itoa(workers), strconv.Itoa(calls))
		cmd := program(append([]string{"stat", "-o", "json", "-p", strconv.Itoa(w.Process.Pid), "work"}, c.flags...)...)
		r := finish(t, cmd, func() {
			waitForProbe(t, cmd.Process.Pid)
			w.work(t)
			w.in.Close() // with it the children end, and stat
		})
		if p := lastLine(t, r.out).Probes[0]; r.status != 0 || p.Hits != c.want || !strings.HasSuffix(r.errors, c.told) || c.told == "" && r.errors != "" {
			t.Errorf("%v: %d hits, want %d; status %d: %s", c.flags, p.Hits, c.want, r.status, r.errors)
		}
	}
	for _, flag := range []string{"--children=true", "--children=false"} {
		r := run(t, "stat", "-o", "json", flag, path, "work", "--", "sh", "-c", fmt.Sprintf("echo | %s 1 100 >/dev/null; exit 0", path))
		if p := lastLine(t, r.out).Probes[0]; r.status != 0 || p.Hits != map[bool]uint64{true: 300}[flag == "--children=true"] {
			t.Errorf("%s: %d hits; status %d: %s", flag, p.Hits, r.status, r.errors)
		}
	}
	if r := run(t, "stat", "--children", path, "work"); r.status != 2 || !strings.Contains(r.errors, "name it with -p") {
		t.Errorf("%+v", r)
	}
}

// One of several workers is told to be one.
func TestStatWorker(t *testing.T) {
	requireBPF(t)
	w := startWaiting(t, "", target(t, "workers"), "3", "1")
	worker := firstChild(t, w.Process.Pid)
	r := run(t, "stat", "-d", "10ms", "-p", worker, "work")
	if want := fmt.Sprintf("workers %s is 1 of 3 workers, and the others do not count: -p %d --children counts all\n", worker, w.Process.Pid); r.status != 0 || !strings.HasSuffix(r.errors, want) {
		t.Errorf("%+v", r)
	}
}

func firstChild(t *testing.T, pid int) string {
	t.Helper()
	list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if words := strings.Fields(string(list)); len(words) > 0 {
		return words[0]
	}
	t.Skipf("this kernel does not list children: %v", err)
	return ""
}
