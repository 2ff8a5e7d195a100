package probes

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"uprobetop/bpf/bpftest"
	"uprobetop/symbols"
)

// want is what the ledger of a probe has to say; what is not named is 0.
type want struct {
	hits, returned, depth, jump, exec, exit, orphans uint64
}

func checkLedger(t *testing.T, p *Stats, w want) {
	t.Helper()
	name := p.Function.Name
	equal(t, name+" hits", p.Hits, w.hits)
	equal(t, name+" returned", p.Returned, w.returned)
	equal(t, name+" missed.depth", p.Missed.Depth, w.depth)
	equal(t, name+" missed.no_slot", p.Missed.NoSlot, 0)
	equal(t, name+" unwound by jumps", p.Unwound.Jump, w.jump)
	equal(t, name+" unwound by exec", p.Unwound.Exec, w.exec)
	equal(t, name+" unwound by exit", p.Unwound.Exit, w.exit)
	equal(t, name+" orphans", p.Orphans, w.orphans)
	equal(t, name+" in flight", uint64(p.InFlight), 0)
	checkBooks(t, p)
}

// ends is the program of testdata/ends.c.
func ends(t *testing.T) *symbols.File { return open(t, bpftest.Build(t, "ends")) }

// scene runs a scene of ends under return probes.
func scene(t *testing.T, f *symbols.File, names []string, args ...string) (*Snapshot, map[string]uint64) {
	t.Helper()
	c := newCollectorHere(t, Config{})
	var rs []Request
	for _, name := range names {
		rs = append(rs, request(t, f, Return, name))
	}
	place(t, c, rs...)
	said := truth(t, f.Path, args...)
	return finish(t, c), said
}

var abc = []string{"a", "b", "c"}

// Calls that longjmp has left do not get mixed up with those that follow: neither
// one too many returns, nor one that takes as long as since the jump.
func TestKernelJumps(t *testing.T) {
	const n = 10000
	s, said := scene(t, ends(t), abc, "jumps", strconv.Itoa(n))
	for i := range s.Probes {
		p := &s.Probes[i]
		name := p.Function.Name
		checkLedger(t, p, want{hits: said[name], returned: said[name+"_left"], jump: n})
		if p.Latency.Sum > said["loop_ns"] {
			t.Errorf("%s: %d ns in all calls, the loop around them took %d", name, p.Latency.Sum, said["loop_ns"])
		}
		if p.Latency.Max > said["longest_ns"] {
			t.Errorf("%s: a call of %d ns, the longest took %d", name, p.Latency.Max, said["longest_ns"])
		}
		if i > 0 && p.Latency.Sum >= s.Probes[i-1].Latency.Sum {
			t.Errorf("%s takes %d ns, which is not less than its caller", name, p.Latency.Sum)
		}
	}
}

// Functions that call each other share the 64 returns that the kernel keeps.
func TestKernelMutual(t *testing.T) {
	f := ends(t)
	for _, depth := range []uint64{1, 63, 64, 65, 100, 5000} {
		t.Run(strconv.FormatUint(depth, 10), func(t *testing.T) {
			const times = 3
			s, said := scene(t, f, []string{"odd", "even"}, "mutual", strconv.FormatUint(depth, 10), strconv.Itoa(times))
			kept := min(depth, 64)
			equal(t, "calls", said["odd"]+said["even"], times*depth)
			for i, returned := range []uint64{times * ((kept + 1) / 2), times * (kept / 2)} {
				p := &s.Probes[i]
				hits := said[p.Function.Name]
				checkLedger(t, p, want{hits: hits, returned: returned, depth: hits - returned})
			}
		})
	}
}

// A thread that ends in calls, and a process that a signal ends in them.
func TestKernelKilled(t *testing.T) {
	const n = 50
	f := ends(t)
	for name, args := range map[string][]string{
		"pthread_exit": {"threads", "200"},
		"SIGKILL":      {"killed", "9", strconv.Itoa(n)},
		"SIGSEGV":      {"killed", "11", strconv.Itoa(n)},
		"SIGTERM":      {"killed", "15", strconv.Itoa(n)},
	} {
		t.Run(name, func(t *testing.T) {
			s, said := scene(t, f, abc, args...)
			for i := range s.Probes {
				p := &s.Probes[i]
				equal(t, "calls", said[p.Function.Name], map[bool]uint64{true: 200, false: 4 * n}[args[0] == "threads"])
				checkLedger(t, p, want{hits: said[p.Function.Name], exit: said[p.Function.Name]})
			}
		})
	}
}

// A program that becomes another one in the middle of calls has left them; the other
// one, of the same file or of another one, is counted from its first call on.
func TestKernelExecs(t *testing.T) {
	const n = 30
	f := ends(t)
	target, other := f.Path, copyOf(t, f.Path)
	g := open(t, other)
	for _, path := range []string{target, other} {
		for _, how := range []string{"exec", "execs", "vforks"} {
			t.Run(how+" "+filepath.Base(path), func(t *testing.T) {
				c := newCollectorHere(t, Config{})
				place(t, c, request(t, f, Return, "a"), request(t, f, Return, "b"), request(t, f, Return, "c"),
					request(t, f, Return, "plain"), request(t, g, Return, "plain"))
				said := truth(t, target, how, strconv.Itoa(n), path)
				s := finish(t, c)
				for i := range abc {
					p := &s.Probes[i]
					name := p.Function.Name
					w := want{hits: said[name], returned: said[name+"_left"], exec: n}
					switch {
					case how == "execs":
						w.exit = n // the first thread's
					case how == "vforks" && name == "a":
						w.exec = 0
					}
					checkLedger(t, p, w)
				}
				here, there := said["plain"], uint64(0)
				if path == other {
					here, there = there, here
				}
				equal(t, "calls after exec", here+there, 10*n)
				checkLedger(t, &s.Probes[3], want{hits: here, returned: here})
				checkLedger(t, &s.Probes[4], want{hits: there, returned: there})
			})
		}
	}
}

// copyOf is another file with the same content.
func copyOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, text, 0o755); err != nil {
		t.Fatal(err)
	}
	return other
}

// A child of vfork returns from the call that made it, on its parent's stack, and so
// does the parent: the child's return is an orphan.
func TestKernelVfork(t *testing.T) {
	const n = 100
	s, said := scene(t, ends(t), []string{"split", "split_once", "plain"}, "twice", strconv.Itoa(n))
	if said["split_left"] != 2*n {
		t.Skip("this target cannot do it")
	}
	checkLedger(t, &s.Probes[0], want{hits: n, returned: n, orphans: n})
	checkLedger(t, &s.Probes[1], want{hits: n, returned: n})
	checkLedger(t, &s.Probes[2], want{hits: n, returned: n})
}

// Processes that share their memory are processes all the same.
func TestKernelSharedMemory(t *testing.T) {
	const n = 500
	s, said := scene(t, ends(t), abc, "clones", strconv.Itoa(n))
	for i := range s.Probes {
		p := &s.Probes[i]
		equal(t, "calls", said[p.Function.Name], 2*n+1)
		checkLedger(t, p, want{hits: 2*n + 1, returned: 2*n + 1})
	}
}

// Calls in a signal handler on a stack of its own, and jumps out of it.
func TestKernelAlternateStack(t *testing.T) {
	const n = 1000
	s, said := scene(t, ends(t), append(abc, "handled"), "alt", strconv.Itoa(n))
	for i := range s.Probes {
		p := &s.Probes[i]
		name := p.Function.Name
		checkLedger(t, p, want{hits: said[name], returned: said[name+"_left"], jump: n / 2})
	}
}

// Where the other stack lies above the one that was interrupted, calls that a jump
// has left look as if they were under way, to the kernel as well: until the next
// entry up there, or the end of the thread.
func TestKernelStackAbove(t *testing.T) {
	const n = 1000
	s, said := scene(t, ends(t), append(abc, "handled"), "above", strconv.Itoa(n))
	for i := range abc {
		checkLedger(t, &s.Probes[i], want{hits: n, returned: n})
	}
	p := &s.Probes[3]
	equal(t, "hits", p.Hits, said["handled"])
	equal(t, "returned", p.Returned, said["handled_left"])
	equal(t, "unwound by jumps and the end", p.Unwound.Jump+p.Unwound.Exit, n/2)
	checkBooks(t, p)
}

// A call up there makes the kernel forget the returns of those it interrupted: the
// first of them ends the process (SIGILL), and the numbers say that it ended.
func TestKernelStackAcross(t *testing.T) {
	f := ends(t)
	c := newCollectorHere(t, Config{})
	place(t, c, request(t, f, Return, "a"), request(t, f, Return, "b"), request(t, f, Return, "c"), request(t, f, Return, "handled"))
	err := exec.Command(f.Path, "across", "10").Run()
	s := finish(t, c)
	var died *exec.ExitError
	if !errors.As(err, &died) || died.Sys().(syscall.WaitStatus).Signal() != syscall.SIGILL {
		t.Skipf("this kernel keeps them: %v", err)
	}
	for i := range abc {
		p := &s.Probes[i]
		equal(t, p.Function.Name+" hits", p.Hits, 1)
		equal(t, p.Function.Name+" unwound", p.Unwound.Total(), 1)
		checkBooks(t, p)
	}
	checkLedger(t, &s.Probes[3], want{hits: 1, returned: 1})
}
