package probes

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"

	"uprobetop/bpf/bpftest"
	"uprobetop/symbols"
)

func tool(t testing.TB, name string, args ...string) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("there is no %s", name)
	}
	if out, err := exec.Command(path, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
}

// A stripped program's functions are found by the names that something else has of
// them, and every call is counted.
func TestKernelStripped(t *testing.T) {
	whole := bpftest.Build(t, "calls", "-g", "-Wl,--build-id")
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	tool(t, "objcopy", "--only-keep-debug", whole, at("debug"))
	tool(t, "strip", "-o", at("stripped"), whole)
	tool(t, "objcopy", "-S", at("debug"), "--keep-symbol=run", "--keep-symbol=work", at("mini"))
	mini, err := os.ReadFile(at("mini"))
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w, err := xz.NewWriter(&packed)
	if err == nil {
		_, err = w.Write(mini)
	}
	if err = firstError(err, w.Close(), os.WriteFile(at("mini.xz"), packed.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	id := open(t, whole).BuildID
	if id == "" {
		t.Skip("the program was built without an id")
	}
	byID := at("root/usr/lib/debug/.build-id/" + id[:2] + "/" + id[2:] + ".debug")
	if err := os.MkdirAll(filepath.Dir(byID), 0o755); err != nil {
		t.Fatal(err)
	}
	tool(t, "cp", at("debug"), byID)
	tool(t, "objcopy", "--add-gnu-debuglink="+at("debug"), at("stripped"), at("linked"))
	tool(t, "objcopy", "--add-section", ".gnu_debugdata="+at("mini.xz"), at("stripped"), at("with-mini"))
	twin, err := symbols.OpenTwin(whole)
	if err != nil {
		t.Fatal(err)
	}
	defer twin.Close()
	for _, c := range []struct {
		file, source string
		names        symbols.Sources
	}{
		{"stripped", "--symbols " + whole, symbols.Sources{Twins: []*symbols.Twin{twin}, Root: at("none")}},
		{"stripped", "debug file " + byID, symbols.Sources{Root: at("root")}},
		{"linked", "debug file " + at("debug"), symbols.Sources{Root: at("none")}},
		{"with-mini", "MiniDebugInfo", symbols.Sources{Root: at("none")}},
	} {
		t.Run(c.source, func(t *testing.T) {
			f, err := c.names.Open(at(c.file))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if f.Source != c.source {
				t.Fatalf("names come from %q, want %q; notes %q", f.Source, c.source, f.Notes)
			}
			col := newCollectorHere(t, Config{})
			place(t, col, request(t, f, Return, "work"), request(t, f, Entry, "run"))
			made := truth(t, at(c.file), "4", "2500")["calls"]
			s := finish(t, col)
			equal(t, "work", s.Probes[0].Hits, made)
			equal(t, "returns of work", s.Probes[0].Returned, made)
			equal(t, "run, which is static", s.Probes[1].Hits, 4)
		})
	}
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Go's programs keep a table of their functions, however much was stripped of them.
func TestKernelStrippedGo(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no Go")
	}
	for _, cgo := range []string{"0", "1"} {
		for _, mode := range []string{"exe", "pie"} {
			t.Run(fmt.Sprintf("cgo=%s/%s", cgo, mode), func(t *testing.T) {
				if (cgo == "0") != (mode == "exe") { // each of the four is half of one that runs always
					bpftest.Long(t)
				}
				path := filepath.Join(t.TempDir(), "golang")
				cmd := exec.Command("go", "build", "-ldflags=-s -w", "-buildmode="+mode, "-o", path, ".")
				cmd.Dir, cmd.Env = "../symbols/testdata/golang", append(os.Environ(), "CGO_ENABLED="+cgo)
				if out, err := cmd.CombinedOutput(); err != nil {
					if _, noC := exec.LookPath("gcc"); noC != nil {
						t.Skip("there is no gcc")
					}
					t.Fatalf("%v\n%s", err, out)
				}
				f := open(t, path)
				if f.Source != "Go's function table" {
					t.Fatalf("names come from %q; notes %q", f.Source, f.Notes)
				}
				col := newCollectorHere(t, Config{})
				place(t, col, request(t, f, Entry, "main.work"), request(t, f, Entry, "main.main"))
				made := truth(t, path, "12345")["calls"]
				s := finish(t, col)
				equal(t, "main.work", s.Probes[0].Hits, made)
				if s.Probes[1].Hits == 0 { // with a check for stack, it can begin twice
					t.Error("main.main was not hit")
				}
			})
		}
	}
}

// Without any name a function is counted by its address, and an address that is
// inside an instruction is refused.
func TestKernelUnnamed(t *testing.T) {
	whole := bpftest.Build(t, "calls")
	bare := filepath.Join(t.TempDir(), "bare")
	tool(t, "strip", "-o", bare, whole)
	work := request(t, open(t, whole), Entry, "run").Function
	target := &Target{Names: &symbols.Sources{Root: t.TempDir()}}
	if err := target.Only(bare); err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	ask := func(text string, latency bool) (*Resolved, error) {
		spec, err := ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		return target.Resolve([]Spec{spec}, latency)
	}
	r, err := ask(fmt.Sprintf("%#x", uint64(work.Addr)), false)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := target.Resolve([]Spec{SpecOf(r.Requests[0])}, false); err != nil || again.Requests[0].Function.Offset != work.Offset {
		t.Errorf("its own spec leads to %v, %v", again, err)
	}
	refused := 0
	for n := range work.Size {
		if _, err := ask(fmt.Sprintf("%#x", uint64(work.Addr)+n), false); err != nil {
			refused++
			if !strings.Contains(err.Error(), "inside an instruction") {
				t.Errorf("+%d: %v", n, err)
			}
		}
	}
	if refused == 0 || refused == int(work.Size) {
		t.Errorf("%d of %d addresses are refused", refused, work.Size)
	}
	timed, err := ask(fmt.Sprintf("%#x", uint64(work.Addr)), true)
	if err != nil {
		t.Fatal(err)
	}
	if found := Check(timed.Requests[0], Hazards{}); found.Verdict != Refuses || !strings.Contains(found.Reason, "no symbol tells") {
		t.Errorf("timing what has no name: %+v", found)
	}
	_, err = ask("work", false)
	if err == nil || !strings.Contains(err.Error(), "stripped to the functions it exports, for others "+whatHelps) {
		t.Errorf("by its name: %v", err)
	}
	col := newCollectorHere(t, Config{})
	place(t, col, r.Requests...)
	truth(t, bare, "7", "100")
	equal(t, "run by its address", finish(t, col).Probes[0].Hits, 7)
}

// A twin that is of no file of the target is refused, with the ids of both.
func TestCheckTwins(t *testing.T) {
	whole := bpftest.Build(t, "calls", "-Wl,--build-id")
	other := bpftest.Build(t, "names", "-Wl,--build-id")
	twin, err := symbols.OpenTwin(other)
	if err != nil {
		t.Fatal(err)
	}
	defer twin.Close()
	target := &Target{Names: &symbols.Sources{Twins: []*symbols.Twin{twin}, Root: t.TempDir()}}
	defer target.Close()
	if err := target.Only(whole); err != nil {
		t.Fatal(err)
	}
	err = target.CheckTwins()
	if err == nil || !strings.Contains(err.Error(), twin.BuildID) || !strings.Contains(err.Error(), open(t, whole).BuildID) {
		t.Errorf("of one file: %v", err)
	}
	if err := target.Add(bpftest.Build(t, "slow", "-Wl,--build-id")); err != nil {
		t.Fatal(err)
	}
	if err := target.CheckTwins(); err == nil || !strings.Contains(err.Error(), "of none of the 2 files") {
		t.Errorf("of two files: %v", err)
	}
	if err := target.Add(other); err != nil {
		t.Fatal(err)
	}
	if err := target.CheckTwins(); err != nil {
		t.Error(err)
	}
}
