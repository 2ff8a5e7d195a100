package cli

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"uprobetop/bpf/bpftest"
	"uprobetop/symbols"
)

// Functions of the C library that are easily taken for others: IFUNCs, versions, and
// a plain one. What a program calls is what is counted, whether it runs already or
// is started.
func TestLibcCalls(t *testing.T) {
	requireBPF(t)
	path := target(t, "libccalls", "-fno-builtin")
	libs, libc := privateLibc(t, path)
	names := libcCalls(t, libc)
	const calls = 3000
	for how, count := range map[string]func(t *testing.T, n int) map[string]uint64{
		"command": func(t *testing.T, n int) map[string]uint64 {
			return hitsOf(t, statCommand(t, libs, append(specsOf("libc:", names), "--", path, strconv.Itoa(n))...))
		},
		"process": func(t *testing.T, n int) map[string]uint64 {
			w := startWaiting(t, libs, path, strconv.Itoa(n), "wait")
			cmd := program(append([]string{"stat", "-o", "json", "-I", "20ms", "-p", strconv.Itoa(w.Process.Pid), "libc"}, names...)...)
			_, out := bpftest.Start(t, cmd)
			first, err := out.ReadString('\n') // from now on they count
			if err != nil {
				t.Fatal(err)
			}
			w.work(t)
			w.in.Close()
			rest, err := io.ReadAll(out)
			if err != nil {
				t.Fatal(err)
			}
			return hitsOf(t, result{out: first + string(rest)})
		},
	} {
		t.Run(how, func(t *testing.T) {
			without, with := count(t, 0), count(t, calls)
			for _, name := range names {
				if made := with[name] - without[name]; made != calls {
					t.Errorf("%s: %d hits, %d without the calls: %d of %d", name, with[name], without[name], made, calls)
				}
			}
		})
	}
}

// An IFUNC of which nobody tells what it chose is refused, with the reason and what
// there is instead, and nothing runs.
func TestRefused(t *testing.T) {
	requireBPF(t)
	path := bpftest.Compile(t, "../../symbols/testdata/ifunc.c", "-DPROGRAM")
	ran := filepath.Join(t.TempDir(), "ran")
	r := run(t, "stat", path, "turn", "--", "touch", ran)
	for _, says := range []string{"turn is not probed: IFUNC: its address is of the code that chooses", "no running process tells which", "start the program and name it with -p", "turn_old", "turn_new"} {
		if r.status != 3 || !strings.Contains(r.errors, says) {
			t.Errorf("status %d and not %q: %s", r.status, says, r.errors)
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the command was started although nothing could be probed")
	}
}

// The name of an IFUNC leads to the variant in use, and to what there is to say of
// that.
func TestListIFUNC(t *testing.T) {
	requireBPF(t)
	path := bpftest.Compile(t, "../../symbols/testdata/ifunc.c", "-DPROGRAM")
	w := startWaiting(t, "", path)
	pid := strconv.Itoa(w.Process.Pid)
	if out := run(t, "list", "-p", pid, path, "turn").out; !strings.Contains(out, "turn  (also twist, turn_new; IFUNC, this variant is in use)") {
		t.Errorf("list says\n%s", out)
	}
	if out := run(t, "list", "-p", pid, "-o", "json", path, "turn").out; !strings.Contains(out, `"note":"IFUNC, this variant is in use"`) {
		t.Errorf("list says\n%s", out)
	}
	r := run(t, "stat", "-o", "json", "-d", "10ms", "-p", pid, path, "turn")
	if p := lastLine(t, r.out).Probes; len(p) != 1 || p[0].Symbol != "turn" || !slices.Contains(p[0].Aliases, "twist") {
		t.Errorf("stat says\n%s", r.out)
	}
	if runtime.GOARCH != "amd64" {
		return
	}
	if out := run(t, "list", "-p", pid, path, "wide").out; !strings.Contains(out, "  no     –         wide  (also wide_new; IFUNC, this variant is in use; the first instruction is an AVX") {
		t.Errorf("list says\n%s", out)
	}
	r = run(t, "stat", "-o", "json", "-d", "10ms", "-p", pid, path, "wi[dt]*")
	if p := lastLine(t, r.out).Probes; len(p) == 0 || !strings.Contains(r.errors, "is an AVX") {
		t.Errorf("stat of a pattern says\n%s%s", r.out, r.errors)
	}
}

// Processes of one target can have chosen differently, by GLIBC_TUNABLES. The calls
// of both count, and as one function.
func TestIFUNCOfTwo(t *testing.T) {
	requireBPF(t)
	path := target(t, "libccalls", "-fno-builtin")
	libs, libc := privateLibc(t, path)
	names := libcCalls(t, libc)
	const calls, less = 1000, "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-AVX2_Usable,-AVX_Fast_Unaligned_Load"
	count := func(n int) (hits map[string]uint64, points int) {
		a := startWaiting(t, libs, path, strconv.Itoa(n), "wait")
		b := startWaiting(t, libs, "/usr/bin/env", less, path, strconv.Itoa(n), "wait")
		cmd := program(append([]string{"stat", "-o", "json", "-p", strconv.Itoa(a.Process.Pid), "-p", strconv.Itoa(b.Process.Pid), "libc"}, names...)...)
		r := finish(t, cmd, func() {
			waitForProbe(t, cmd.Process.Pid)
			for _, w := range []*waiting{a, b} {
				w.work(t)
				w.in.Close()
			}
		})
		return hitsOf(t, r), strings.Count(r.out, `{"offset":`)
	}
	without, points := count(0)
	with, _ := count(calls)
	for _, name := range names {
		if made := with[name] - without[name]; made != 2*calls {
			t.Errorf("%s: %d of %d", name, made, 2*calls)
		}
	}
	if code := codeOf(t, libc, "memset"); code[0]&^1 == 0xc4 { // as the one chose, and not the other
		a := startWaiting(t, libs, path, "0", "wait")
		b := startWaiting(t, libs, "/usr/bin/env", less, path, "0", "wait")
		r := run(t, "stat", "-d", "10ms", "-p", strconv.Itoa(b.Process.Pid), "-p", strconv.Itoa(a.Process.Pid), "libc", "memset")
		if r.status != 3 || !strings.Contains(r.errors, "is an AVX") {
			t.Errorf("memset of both: status %d, %s%s", r.status, r.out, r.errors)
		}
	}
	if runtime.GOARCH == "amd64" && points <= len(names) {
		t.Skipf("both chose alike: %d points", points) // such as on a CPU without AVX2
	}
}

// libcCalls is the functions that libccalls calls, of those that can be probed on
// this CPU.
func libcCalls(t *testing.T, libc string) (names []string) {
	t.Helper()
	for _, name := range []string{"memcpy", "strlen", "pthread_cond_signal", "calloc"} {
		if code := codeOf(t, libc, name); code[0] == 0x62 || code[0]&^1 == 0xc4 {
			t.Logf("%s begins with what must not be probed: %x", name, code)
			continue
		}
		names = append(names, name)
	}
	return names
}

// codeOf is the first byte of a function, which must be one.
func codeOf(t *testing.T, path, name string) []byte {
	t.Helper()
	f, err := symbols.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fns := f.Lookup(name)
	if len(fns) != 1 || fns[0].Place != symbols.InFile {
		t.Fatalf("%s is %+v: %s", name, fns, f.Untold)
	}
	code, err := f.Code(fns[0], 1)
	if err != nil || len(code) != 1 {
		t.Fatalf("the code of %s is %x, %v", name, code, err)
	}
	return code
}

func specsOf(prefix string, names []string) (specs []string) {
	for _, name := range names {
		specs = append(specs, prefix+name)
	}
	return specs
}

func statCommand(t *testing.T, libs string, args ...string) result {
	t.Helper()
	cmd := program(append([]string{"stat", "-o", "json"}, args...)...)
	cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+libs)
	return finish(t, cmd, nil)
}

// hitsOf is the final hits, by every name of a function.
func hitsOf(t *testing.T, r result) map[string]uint64 {
	t.Helper()
	if r.status != 0 {
		t.Fatalf("status %d: %s", r.status, r.errors)
	}
	hits := map[string]uint64{}
	for _, p := range lastLine(t, r.out).Probes {
		name, _, _ := strings.Cut(p.Symbol, "@")
		for _, name := range append(p.Aliases, name) {
			hits[name] = p.Hits
		}
	}
	return hits
}

// What has no code in the file is several functions all the same.
func TestNowhere(t *testing.T) {
	requireBPF(t)
	path := target(t, "libccalls", "-fno-builtin")
	r := run(t, "stat", "-o", "json", path, "calloc", "strlen", "main", "--", path, "0")
	if n := len(lastLine(t, r.out).Probes); n != 3 {
		t.Errorf("%d of 3 functions are listed: %s", n, r.errors)
	}
}
