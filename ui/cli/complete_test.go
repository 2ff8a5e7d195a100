package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// completions is what the shell is offered, and what it is told beside.
func completions(t *testing.T, env string, args ...string) ([]string, cobra.ShellCompDirective) {
	t.Helper()
	cmd := program(append([]string{"__complete"}, args...)...)
	cmd.Env = append(cmd.Env, env)
	r := finish(t, cmd, nil)
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	last := len(lines) - 1
	directive, err := strconv.Atoi(strings.TrimPrefix(lines[last], ":"))
	if err != nil || r.status != 0 || strings.Count(r.errors, "\n") != 1 {
		t.Fatalf("%v: %+v", args, r)
	}
	return lines[:last], cobra.ShellCompDirective(directive)
}

func TestComplete(t *testing.T) {
	lib := versioned(t)
	bin := t.TempDir()
	for name, mode := range map[string]os.FileMode{"tool-a": 0o755, "tool-b": 0o755, "tool-c": 0o644} {
		if err := os.WriteFile(filepath.Join(bin, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	const files, none = cobra.ShellCompDirectiveDefault, cobra.ShellCompDirectiveNoFileComp
	for _, c := range []struct {
		args      string
		want      string
		directive cobra.ShellCompDirective
	}{
		{"stat LIB st", "steady", none},
		{"LIB st", "steady", none},
		{"list LIB st", "steady", none},
		{"stat LIB steady a", "api", none},
		{"stat LIB steady st", "", none},
		{"stat LIB uretprobe:st", "uretprobe:steady", none},
		{"stat LIB NAME:st", "NAME:steady", none},
		{"stat LIB uretprobe:NAME:st", "uretprobe:NAME:steady", none},
		{"stat LIB other:st", "", none},
		{"stat LIB:st", "LIB:steady", none},
		{"stat uprobe:LIB:st", "uprobe:LIB:steady", none},
		{"uretprobe:LIB:st", "uretprobe:LIB:steady", none},
		{"stat libc:callo", "libc:calloc", none},
		{"stat uretprobe:libc:callo", "uretprobe:libc:calloc", none},
		{"stat LIB libc:callo", "libc:calloc", none},
		{"stat /nope:st", "", none},
		{"stat -o json -r LIB st", "steady", none},
		{"stat LIB steady -- st", "", files},
		{"stat /nope st", "", none},
		{"stat tool-", "tool-a tool-b", files},
		{"stat ./too", "", files},
		{"stat -o ", "table json", none},
		{"doctor --output ", "table json", none},
		{"stat -d ", "", none},
		{"stat --inflight ", "auto task session hash", none},
		{"--inflight ", "auto task session hash", none},
		{"stat -p 4194300 st", "", none},
	} {
		args := strings.Split(strings.NewReplacer("LIB", lib, "NAME", filepath.Base(lib)).Replace(c.args), " ")
		got, directive := completions(t, "PATH="+bin, args...)
		want := strings.Fields(strings.NewReplacer("LIB", lib, "NAME", filepath.Base(lib)).Replace(c.want))
		if !slices.Equal(got, want) || directive != c.directive {
			t.Errorf("%s: %q %d, want %q %d", c.args, got, directive, want, c.directive)
		}
	}
	if got, _ := completions(t, "", "stat", "--uni"); !slices.Equal(got, []string{"--unit\ta systemd unit by its NAME, such as nginx"}) {
		t.Errorf("%q", got)
	}
	if got, _ := completions(t, "", ""); !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "completion\t") }) {
		t.Errorf("the command that makes the scripts is not offered: %q", got)
	}
}

func TestCompleteProcess(t *testing.T) {
	p := strconv.Itoa(startWaiting(t, "", target(t, "allocs")).Process.Pid)
	if got, _ := completions(t, "", "stat", "-p", p, "callo"); !slices.Equal(got, []string{"calloc"}) {
		t.Errorf("%q", got)
	}
	if got, _ := completions(t, "", "stat", "-p", p, "libc.so"); !slices.Contains(got, "libc.so.6") {
		t.Errorf("%q", got)
	}
	if got, _ := completions(t, "", "stat", "-p", p, "libc:callo"); !slices.Equal(got, []string{"libc:calloc"}) {
		t.Errorf("%q", got)
	}
	if got, _ := completions(t, "", "stat", "-p", p, "libc", "callo"); !slices.Equal(got, []string{"calloc"}) {
		t.Errorf("%q", got)
	}
	if got, _ := completions(t, "", "stat", "-p", p); !slices.Contains(got, p+"\tallocs") {
		t.Errorf("process %s is not offered: %q", p, got)
	}
	if got, _ := completions(t, "", "stat", "-p", p[:1]); !slices.Contains(got, p+"\tallocs") || slices.Contains(got, "2\tkthreadd") {
		t.Errorf("process %s is not offered: %q", p, got)
	}
}
