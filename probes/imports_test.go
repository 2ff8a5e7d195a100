package probes

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"uprobetop/bpf/bpftest"
	"uprobetop/symbols"
)

// A name that a program only imports is that of the library from which its loader
// takes it; the library joins the target, and where it led is said.
func TestImportLeads(t *testing.T) {
	libc := libcCopy(t)
	t.Setenv("LD_LIBRARY_PATH", filepath.Dir(libc))
	program := bpftest.Compile(t, "testdata/allocs.c", "-no-pie")
	target := fileTarget(t, program)
	r, err := resolve(t, target, "malloc")
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Requests) != 1 || r.Requests[0].File.Path != libc || r.Requests[0].Function.Name != "malloc" || r.Requests[0].Function.Addr == 0 {
		t.Fatalf("%+v", r.Requests)
	}
	if want := "malloc of allocs is that of " + libc; len(r.Led) != 1 || r.Led[0] != want {
		t.Errorf("it says %q, want %q", r.Led, want)
	}
	if len(target.Files) != 2 || target.Files[1].Path != libc || target.Hazards("").Shared != libc {
		t.Errorf("the target is %v, dangers %+v", target.Files, target.Hazards(""))
	}
	if _, err := resolve(t, fileTarget(t, program), "no_such_function"); err == nil {
		t.Error("a name that nobody has is found")
	}
}

// Where a file of the target has the name, imports of it are not mentioned.
func TestImportsBesideTheirProvider(t *testing.T) {
	libc := libcCopy(t)
	program := bpftest.Compile(t, "testdata/allocs.c", "-no-pie")
	for _, text := range []string{"free", "fre?"} {
		r, err := resolve(t, fileTarget(t, program, libc), text)
		if err != nil || len(r.Requests) != 1 || r.Requests[0].File.Path != libc || r.LeftOut()+len(r.Led) != 0 {
			t.Errorf("%s: %+v, %v", text, r, err)
		}
	}
	both, err := fileTarget(t, program, libc).List(Spec{Function: "free"})
	if err != nil || len(both) != 1 || both[0].File.Path != libc {
		t.Errorf("the list of both files: %+v, %v", both, err)
	}
	alone, err := fileTarget(t, program).List(Spec{Function: "free"})
	if err != nil || len(alone) != 1 || len(alone[0].Functions) != 1 || alone[0].Functions[0].Place != symbols.Imported || alone[0].Imported() == 0 {
		t.Fatalf("the list of the program: %+v, %v", alone, err)
	}
	if why := alone[0].Limits[alone[0].Functions[0].Function]; why.Ability != Cannot || !strings.Contains(why.Reason, "imported: its code is in libc.so") {
		t.Errorf("%+v", why)
	}
	// A pattern that means nothing else tells it; one that means more counts them.
	if _, err := resolve(t, fileTarget(t, program), "pthread_*"); err == nil || !strings.Contains(err.Error(), "imported: its code is in libc.so") {
		t.Errorf("imports alone: %v", err)
	}
	r, err := resolve(t, fileTarget(t, program), "*")
	if err != nil || !slices.ContainsFunc(r.Skipped, func(s Skipped) bool { return strings.Contains(s.Reason, "imported") && s.N > 3 }) ||
		!slices.ContainsFunc(r.Skipped, func(s Skipped) bool { return strings.Contains(s.Reason, "start-up code") && s.N > 5 }) {
		t.Errorf("all of the program: %+v, %v", r.Skipped, err)
	}
}

// In a process the files that it has mapped count, and what was preloaded comes first.
func TestImportOfProcess(t *testing.T) {
	libc := libcCopy(t)
	source := filepath.Join(t.TempDir(), "libmine.c")
	if err := os.WriteFile(source, []byte("#include <stddef.h>\nvoid *malloc(size_t n) { static char room[1 << 20]; static size_t used; used += (n + 63) / 64 * 64; return room + used - (n + 63) / 64 * 64; }\nvoid free(void *p) {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	mine := bpftest.Compile(t, source, "-shared", "-fPIC", "-fno-builtin")
	program := bpftest.Compile(t, "testdata/allocs.c")
	for _, c := range []struct{ preload, want string }{{"", libc}, {mine, mine}} {
		cmd := exec.Command(program, "1", "1")
		cmd.Env = []string{"LD_LIBRARY_PATH=" + filepath.Dir(libc), "LD_PRELOAD=" + c.preload}
		_, out := bpftest.Start(t, cmd)
		var ready [6]byte // by then the loader is done
		if _, err := out.Read(ready[:]); err != nil {
			t.Fatal(err)
		}
		target, err := ProcessTarget(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		defer target.Close()
		target.Narrow(program)
		r, err := resolve(t, target, "malloc")
		if err != nil || len(r.Requests) != 1 || r.Requests[0].File.Path != c.want {
			t.Errorf("preloaded %q: %+v, %v", c.preload, r, err)
		}
	}
}

// startAllocs runs a program with a libc of its own until the loader is done.
func startAllocs(t *testing.T, cmd *exec.Cmd, libc string) (pid int) {
	t.Helper()
	cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+filepath.Dir(libc))
	_, out := bpftest.Start(t, cmd)
	var ready [6]byte
	if _, err := io.ReadFull(out, ready[:]); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

// The files of a cgroup are those of its processes, too, and what the host has does not
// count.
func TestImportOfCgroup(t *testing.T) {
	libc := libcCopy(t)
	program := bpftest.Compile(t, "testdata/allocs.c")
	_, directory := testCgroup(t)
	cmd := within(t, directory, program, "1", "1")
	startAllocs(t, cmd, libc)
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() }) // before the cgroup goes
	target := processes(t, Filter{Cgroups: []string{directory}})
	if !target.Narrow(program) {
		t.Fatal("the program is not mapped")
	}
	r, err := resolve(t, target, "malloc")
	if err != nil || len(r.Requests) != 1 || r.Requests[0].File.Path != libc {
		t.Errorf("%+v, %v", r, err)
	}
	other := bpftest.Compile(t, "testdata/allocs.c", "-no-pie")
	if err := target.Only(other); err != nil {
		t.Fatal(err)
	}
	if r, err := resolve(t, target, "malloc"); err == nil || !strings.Contains(err.Error(), "has no library mapped that has it") {
		t.Errorf("of a file that no process has mapped: %+v, %v", r, err)
	}
}

// Of several processes each has its own libraries.
func TestImportOfProcesses(t *testing.T) {
	program, other := bpftest.Compile(t, "testdata/allocs.c"), bpftest.Compile(t, "testdata/allocs.c", "-no-pie")
	libcs := []string{libcCopy(t), libcCopy(t)}
	start := func(program, libc string) int { return startAllocs(t, exec.Command(program, "1", "1"), libc) }
	first, second, stranger := start(program, libcs[0]), start(program, libcs[1]), start(other, libcs[0])
	for _, c := range []struct {
		pids []int
		want []string
	}{
		{[]int{stranger, second}, libcs[1:]},
		{[]int{second, stranger}, libcs[1:]},
		{[]int{first, second}, libcs},
	} {
		target := processes(t, Filter{PIDs: c.pids})
		target.Narrow(program)
		r, err := resolve(t, target, "malloc")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, q := range r.Requests {
			got = append(got, q.File.Path)
		}
		if !slices.Equal(got, c.want) || len(r.Led) != len(c.want) {
			t.Errorf("it leads to %q (%q), want %q", got, r.Led, c.want)
		}
	}
}

// The libraries that glibc left for old programs lead to the one that has their
// functions.
func TestStubLeads(t *testing.T) {
	paths := symbols.Libraries("pthread")
	if len(paths) == 0 {
		t.Skip("no libpthread")
	}
	target := fileTarget(t, paths...)
	if !target.Files[0].Stub() {
		t.Skip("libpthread has functions of its own")
	}
	for _, text := range []string{"pthread_create", "pthread_crea*"} {
		r, err := resolve(t, fileTarget(t, paths...), text)
		if err != nil || len(r.Requests) != 1 || !strings.Contains(r.Requests[0].File.Path, "libc.so") || len(r.Led) != 1 {
			t.Errorf("%s: %+v, %v", text, r, err)
		}
	}
	l, err := target.List(Spec{Function: "pthread_create"})
	if err != nil || len(l) != 1 || !strings.Contains(l[0].File.Path, "libc.so") || l[0].Led == "" {
		t.Errorf("the list: %+v, %v", l, err)
	}
	if _, err := target.List(Spec{Function: "no_such_function"}); err == nil || !strings.Contains(err.Error(), "libpthread") {
		t.Errorf("a name that is nowhere: %v", err)
	}
}

// Stubs that need each other have no function of a pattern, and looking ends.
func TestStubsInACircle(t *testing.T) {
	dir := t.TempDir()
	source, one, two := filepath.Join(dir, "stub.c"), filepath.Join(dir, "libone.so"), filepath.Join(dir, "libtwo.so")
	if err := os.WriteFile(source, []byte("void __libstub_version_placeholder(void) {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{{one, ""}, {two, one}, {one, two}} {
		flags := []string{"-shared", "-fPIC", "-nostdlib", "-Wl,--no-as-needed,-rpath," + dir, "-Wl,-soname," + filepath.Base(c[0])}
		if c[1] != "" {
			flags = append(flags, c[1])
		}
		if err := os.Rename(bpftest.Compile(t, source, flags...), c[0]); err != nil {
			t.Fatal(err)
		}
	}
	target := fileTarget(t, one)
	if !target.Files[0].Stub() || len(target.Files[0].Needed()) != 1 {
		t.Fatalf("it is a stub: %v, and needs %q", target.Files[0].Stub(), target.Files[0].Needed())
	}
	for _, text := range []string{"no_such_*", "no_such_function"} {
		var none *NotFound
		if _, err := resolve(t, target, text); !errors.As(err, &none) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// What the compiler adds to every program is told from functions of the same name.
func TestStartupCode(t *testing.T) {
	for _, flags := range [][]string{{"-no-pie"}, {"-pie"}, {"-static"}, {"-static-pie"}} {
		f := open(t, bpftest.Compile(t, "testdata/sleeper.c", flags...))
		for name, want := range map[string]bool{"frame_dummy": true, "_init": true, "_fini": true, "register_tm_clones": true, "__do_global_dtors_aux": true, "_start": false, "main": false} {
			finding := Check(request(t, f, Entry, name), Hazards{})
			if got := strings.HasPrefix(finding.Reason, "start-up code"); got != want {
				t.Errorf("%v: %s: %+v", flags, name, finding)
			}
		}
		if fns := f.Lookup("_dl_relocate_static_pie"); len(fns) == 1 && startup(fns[0]) != (fns[0].Size < 16) {
			t.Errorf("%v: _dl_relocate_static_pie of %d bytes: %v", flags, fns[0].Size, startup(fns[0]))
		}
	}
	own := filepath.Join(t.TempDir(), "own.c")
	if err := os.WriteFile(own, []byte("int frame_dummy(int n) { return n * 3; }\nint main(int n, char **v) { return frame_dummy(n); }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	f := open(t, bpftest.Compile(t, own, "-fno-inline"))
	said := 0
	for _, fn := range f.Lookup("frame_dummy") {
		if Check(Request{File: f, Function: fn}, Hazards{}).Verdict == Refuses {
			said++
		}
	}
	if n := len(f.Lookup("frame_dummy")); n < 2 || said != n-1 {
		t.Errorf("of %d functions frame_dummy %d are refused", n, said)
	}
}

// Functions that are made at run time are said to be in no file.
func TestRuntime(t *testing.T) {
	jvm, _ := filepath.Glob("/usr/lib/jvm/*/lib/server/libjvm.so")
	for language, paths := range map[string][]string{
		"Java":       append(jvm[:min(1, len(jvm))], "/usr/bin/java"),
		"JavaScript": {"/usr/bin/node"},
		"Python":     {"/usr/bin/python3"},
		"Perl":       {"/usr/bin/perl"},
		"":           {"/bin/sh", "/usr/bin/make"},
	} {
		for _, path := range paths {
			f, err := symbols.Open(path)
			if err != nil {
				continue
			}
			t.Cleanup(func() { f.Close() })
			got := Runtime([]*symbols.File{f})
			if language == "" && got != "" || !strings.HasPrefix(got, "your own "+language+" functions are ") && language != "" {
				t.Errorf("%s: %q", path, got)
			}
			if language == "JavaScript" {
				continue // the names near to one take a second to find in so large a file
			}
			if _, err := resolve(t, fileTarget(t, path), "noSuchFunction"); err == nil || !strings.Contains(err.Error(), got) {
				t.Errorf("%s: the error is %v", path, err)
			}
		}
	}
	if got := Runtime(nil); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}

// In a process the runtime itself is named, whatever program has loaded it.
func TestRuntimeOfProcess(t *testing.T) {
	path, err := exec.LookPath("java")
	if err != nil {
		t.Skip("no java")
	}
	jvm := bpftest.Compile(t, "testdata/sleeper.c", "-shared", "-fPIC", "-Dmain=JNI_CreateJavaVM", "-Wl,-soname,libjvm.so")
	target := fileTarget(t, path, jvm)
	if got := Runtime(target.Files); !strings.Contains(got, "sleeper and libc") {
		t.Errorf("%q", got)
	}
}
