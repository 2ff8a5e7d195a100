package probes

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"uprobetop/bpf/bpftest"
	"uprobetop/symbols"
)

// libcCopy is a copy of the libc that programs here use.
func libcCopy(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("ldd", "/bin/sh").Output()
	if err != nil {
		t.Skipf("ldd: %v", err)
	}
	for field := range strings.FieldsSeq(string(out)) {
		if !strings.Contains(field, "/libc.so") {
			continue
		}
		content, err := os.ReadFile(field)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), filepath.Base(field))
		if err := os.WriteFile(path, content, 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Skip("sh uses no shared libc")
	return ""
}

func fileTarget(t testing.TB, paths ...string) *Target {
	t.Helper()
	target, err := FileTarget(paths...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { target.Close() })
	return target
}

func resolve(t testing.TB, target *Target, text string) (*Resolved, error) {
	t.Helper()
	s, err := ParseSpec(text)
	if err != nil {
		t.Fatal(err)
	}
	return target.Resolve([]Spec{s}, false)
}

// Every function of a C library and every second point inside some comes back
// from the text that stands for it: versions, aliases and duplicates included.
func TestSpecOf(t *testing.T) {
	for _, path := range []string{libcCopy(t), bpftest.Compile(t, "testdata/calls.c"), names(t), bpftest.Compile(t, "testdata/markers.c")} {
		target := fileTarget(t, path)
		f := target.Files[0]
		requests := make([]Request, 0, 2*len(f.Functions))
		for i := range f.Functions {
			kind := Kind(i % 2)
			switch f.Functions[i].Place {
			case symbols.Imported:
				continue // it leads to another file
			case symbols.Marker:
				kind = USDT
			}
			requests = append(requests, Request{Kind: kind, File: f, Function: &f.Functions[i]})
			for into := uint64(1); i%16 == 0 && into < 8; into++ {
				if p, err := f.Inside(&f.Functions[i], into); err == nil {
					requests = append(requests, Request{File: f, Function: p})
				}
			}
		}
		for _, r := range requests {
			text := SpecOf(r).String()
			again, err := resolve(t, target, text)
			if err != nil || len(again.Requests) != 1 {
				t.Errorf("%s of %s is %+v, %v", text, r.Function, again, err)
				continue
			}
			if a := again.Requests[0]; a.Kind != r.Kind || a.File != r.File || a.Function.Offset != r.Function.Offset || a.Function.Name != r.Function.Name {
				t.Errorf("%s of %s at %#x is %s at %#x", text, r.Function, r.Function.Offset, a.Function, a.Function.Offset)
			}
		}
	}
}

// A name that only programs linked long ago call means that, and it is said so.
func TestResolveOld(t *testing.T) {
	dir := t.TempDir()
	script, source := filepath.Join(dir, "map"), filepath.Join(dir, "old.c")
	for path, content := range map[string]string{
		script: "V1 { global: gone; here; local: *; }; V2 { global: here; } V1;",
		source: "void a(void) {}\nvoid b(void) {}\n" +
			"__asm__(\".symver a, gone@V1\\n.symver a, here@V1\\n.symver b, here@@V2\");\n",
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	target := fileTarget(t, bpftest.Compile(t, source, "-shared", "-fPIC", "-s", "-Wl,--version-script="+script))
	for text, want := range map[string]string{"gone": "gone@V1", "gone@V1": "gone@V1", "here": "here@@V2", "here@V1": "gone@V1", "here@@V2": "here@@V2"} {
		r, err := resolve(t, target, text)
		if err != nil || len(r.Requests) != 1 || r.Requests[0].Function.Symbol.String() != want {
			t.Errorf("%s is %+v, %v; want %s", text, r, err, want)
		} else if said := len(r.Old) == 1 && r.Old[0] == text; said != (text == "gone") {
			t.Errorf("of %s is said: %q", text, r.Old)
		}
	}
}

// An address is the last resort of a text that means a function.
func TestSpecOfPrefersNames(t *testing.T) {
	// Of its exports alone: debug files have static functions that share a name.
	target := &Target{Names: &symbols.Sources{Root: t.TempDir()}}
	if err := target.Only(libcCopy(t)); err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	f := target.Files[0]
	byAddress := 0
	for i := range f.Functions {
		fn := &f.Functions[i]
		switch s := SpecOf(Request{File: f, Function: fn}); {
		case strings.HasPrefix(s.Function, "0x"):
			byAddress++
		case s.Function != fn.Name && s.Function != fn.Name+"@"+fn.Version:
			t.Errorf("%s is called %s", fn, s.Function)
		}
	}
	if byAddress > len(f.Functions)/100 {
		t.Errorf("%d of %d functions are named by their address", byAddress, len(f.Functions))
	}
}

// The first of these that finds something is what a text means: an exact name,
// name+0x10, an address, a pattern.
func TestResolve(t *testing.T) {
	target := fileTarget(t, names(t))
	f := target.Files[0]
	star := one(t, f, "operator*")
	for _, c := range []struct {
		text string
		want string // names, in order
		says string // in the error
	}{
		{"operator*", "operator*", ""},
		{"operator?", "operator*", ""},
		{"foo[abi:cxx11]", "foo[abi:cxx11]", ""},
		{"plus+2", "plus+2", ""}, // a function's name
		{"steps+1", "steps+0x1", ""},
		{"steps+0x1", "steps+0x1", ""},
		{"steps+0", "steps", ""},
		{fmt.Sprintf("%#x", uint64(star.Addr)), "operator*", ""},
		{"step[sz]", "steps", ""},
		{"twin", "twin twin", ""},
		{"nop?", "nop5", ""},
		{"steps+2", "", "inside an instruction"},
		{"steps+0x10000", "", "behind the end"},
		{"twin+1", "", "2 functions of"},
		{"wrong+1", "", "there is no function wrong in names"},
		{"stepz", "", "nearest name is steps"},
		{"stepz*", "", "no function matches stepz* in names: the nearest name is steps"},
		{"0x10", "", "outside the code"},
		{"nop5+0x1ffffffffffffffff", "", "there is no function"}, // no number of 64 bits
		{"vex?", "", "none of the 2 functions that match vex? can be probed: the first instruction is an AVX"},
	} {
		r, err := resolve(t, target, "names:"+c.text)
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v, want %q", c.text, err, c.says)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		var got []string
		for _, q := range r.Requests {
			got = append(got, q.Function.Demangled())
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s is %q, want %q", c.text, got, c.want)
		}
	}
}

// The loader's functions count only where no library has the name, and what is wrong
// in them only then.
func TestLoader(t *testing.T) {
	program := names(t)
	content, err := os.ReadFile(bpftest.Compile(t, "testdata/names.c"))
	if err != nil {
		t.Fatal(err)
	}
	loader := filepath.Join(t.TempDir(), "ld-linux-x86-64.so.2")
	if err := os.WriteFile(loader, content, 0o755); err != nil {
		t.Fatal(err)
	}
	other := fileTarget(t, loader, bpftest.Compile(t, "testdata/calls.c"))
	both := fileTarget(t, loader, program)
	for _, text := range []string{"steps", "steps+1", "step?", "twin"} {
		r, err := resolve(t, both, text)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range r.Requests {
			if q.File.Path != program {
				t.Errorf("%s is %s of %s", text, q.Function, q.File.Path)
			}
		}
		if r, err := resolve(t, other, text); err != nil || len(r.Requests) != 1 || r.Requests[0].File.Path != loader {
			t.Errorf("%s alone: %+v, %v", text, r, err)
		}
	}
	if _, err := resolve(t, other, "steps+2"); err == nil {
		t.Error("a point inside an instruction of the loader is found")
	}
}

// What cannot be probed is left out of a pattern, and counted; asked for by its
// name it is refused with the reason.
func TestPatternSkips(t *testing.T) {
	target := fileTarget(t, libcCopy(t))
	f := target.Files[0]
	r, err := resolve(t, target, "*")
	if err != nil {
		t.Fatal(err)
	}
	functions := f.Functions[:len(f.Functions)-len(f.Markers())]
	if r.Matched != len(functions) || len(r.Requests)+r.LeftOut() != r.Matched {
		t.Errorf("%d functions, %d match, %d asked for and %d left out", len(functions), r.Matched, len(r.Requests), r.LeftOut())
	}
	want := 0
	for i := range functions {
		fn := &functions[i]
		old := fn.Version != "" && !fn.Default
		for _, a := range fn.Aliases {
			old = old && a.Version != "" && !a.Default
		}
		if old || Check(Request{File: f, Function: fn}, Hazards{}).Verdict == Refuses {
			want++
		}
	}
	if r.LeftOut() != want || want == 0 {
		t.Errorf("%d left out, want %d: %+v", r.LeftOut(), want, r.Skipped)
	}
	for _, skipped := range r.Skipped {
		if named := min(skipped.N, fewNames); skipped.Reason != olderVersion && len(skipped.Names) != named {
			t.Errorf("%d names of %d: %s", len(skipped.Names), skipped.N, skipped.Reason)
		}
	}
	for i, q := range r.Requests {
		if Check(q, Hazards{}).Verdict == Refuses {
			t.Errorf("%s is asked for", q.Function)
		}
		if i > 0 && r.Requests[i-1].Function.Addr >= q.Function.Addr {
			t.Errorf("%s is not in order of address", q.Function)
		}
	}
	if r, err := resolve(t, target, "memset"); err != nil || len(r.Requests) != 1 || r.LeftOut() != 0 {
		t.Errorf("memset: %+v, %v", r, err)
	}
	with, err := resolve(t, target, "pthread_cond_*@*")
	if err != nil {
		t.Fatal(err)
	}
	without, err := resolve(t, target, "pthread_cond_*")
	if err != nil {
		t.Fatal(err)
	}
	if len(with.Requests) <= len(without.Requests) {
		t.Errorf("%d functions with @, %d without", len(with.Requests), len(without.Requests))
	}
}

// A point in mid-function takes no return probe, and none at all on a nop that the
// kernel makes a call of.
func TestMidFunction(t *testing.T) {
	f := open(t, names(t))
	for _, c := range []struct {
		fn   string
		into uint64
		kind Kind
		says string
	}{
		{"steps", 1, Entry, ""},
		{"steps", 1, Return, "a return probe inside a function"},
		{"nop5", 0, Entry, ""},
		{"nop5", 0, Return, ""},
		{"nop5", 5, Entry, "5-byte nop"},
		{"nop5", 10, Entry, ""},
		{"late", 1, Entry, "the instruction is an AVX"},
		{"late", 4, Entry, ""},
	} {
		p, err := f.Inside(one(t, f, c.fn), c.into)
		if err != nil {
			t.Fatal(err)
		}
		got := Check(Request{Kind: c.kind, File: f, Function: p}, Hazards{})
		if (got.Verdict == Refuses) != (c.says != "") || !strings.Contains(got.Reason, c.says) {
			t.Errorf("%s %s: %+v, want %q", c.kind, p, got, c.says)
		}
	}
}

func one(t testing.TB, f *symbols.File, name string) *symbols.Function {
	t.Helper()
	return request(t, f, Entry, name).Function
}

func BenchmarkResolve(b *testing.B) {
	const path = "/usr/bin/node"
	if _, err := os.Stat(path); err != nil {
		b.Skipf("no large program: %v", err)
	}
	target := fileTarget(b, path)
	for _, pattern := range []string{"*", "*Isolate*"} {
		b.Run("pattern="+pattern, func(b *testing.B) {
			for b.Loop() {
				r, err := target.Resolve([]Spec{{Function: pattern}}, false)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(len(r.Requests)), "functions")
			}
		})
	}
}

func names(t testing.TB) string {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("x86-64 only")
	}
	return bpftest.Compile(t, "testdata/names.c", "testdata/twin.c")
}
