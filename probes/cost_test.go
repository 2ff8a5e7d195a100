package probes

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"uprobetop/bpf"
	"uprobetop/bpf/bpftest"
	"uprobetop/symbols"
)

// What a probe costs, against the floor and against other programs: all contenders take
// turns on one program, in one run, and only ratios mean anything. By the kernel's
// statistics alone: -bench CostKernel, or CostKernel/pair.
//
//	go test -run '^$' -bench Cost -benchtime 10x ./probes

// emptyProgram is the least that can be attached by a method.
func emptyProgram(t testing.TB, method Method) *ebpf.Program {
	t.Helper()
	spec := &ebpf.ProgramSpec{
		Name: "empty", Type: ebpf.Kprobe, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	}
	if method == UprobeMulti {
		spec.AttachType = ebpf.AttachTraceUprobeMulti
	}
	p, err := ebpf.NewProgram(spec)
	bpftest.Require(t, err)
	t.Cleanup(func() { p.Close() })
	return p
}

// contender is one way to probe work5. It returns its programs and what ends it.
type contender struct {
	name   string
	attach func(t testing.TB) (progs []*ebpf.Program, end func())
	floor  string // the contender that does nothing in the same way; "": floor
}

func tierOf(method Method) attacher {
	if method == PerfEvent {
		return perf{}
	}
	return multi{}
}

func floorOf(method Method, kind Kind, f *symbols.File) contender {
	return contender{name: "floor", attach: func(t testing.TB) ([]*ebpf.Program, func()) {
		p := emptyProgram(t, method)
		at := []point{{Point: symbols.Point{Offset: f.Lookup("work5")[0].Offset}}}
		var all links
		for _, when := range []when{atEntry, atReturn}[:1+int(kind)] {
			l, err := tierOf(method).attach(p, when, f, at)
			bpftest.Require(t, err)
			all = append(all, l)
		}
		return []*ebpf.Program{p}, func() { all.Close() }
	}}
}

func oursOf(config Config, kind Kind, f *symbols.File) contender {
	ours := contender{name: "uprobetop"}
	if config.InFlight != "" {
		ours.name += "/" + string(config.InFlight)
	}
	if config.InFlight == SessionStore {
		ours.floor = "floor/session"
	}
	ours.attach = func(t testing.TB) ([]*ebpf.Program, func()) {
		c, err := New(config)
		bpftest.Require(t, err)
		place(t, c, request(t, f, kind, "work5"))
		progs := []*ebpf.Program{c.objs.Enter, c.objs.Leave}[:1+int(kind)]
		if c.objs.Session != nil { // runs at the hit and at its return
			progs = []*ebpf.Program{c.objs.Session}
		}
		return progs, func() { c.Close() }
	}
	return ours
}

// sessionsOf are our timed probe with session cookies and the floor of it: a program
// that does nothing, at the hit and at its return. Both have one link instead of two.
// None if this kernel has no session cookies.
func sessionsOf(config Config, f *symbols.File) []contender {
	if bpf.HaveSession() != nil {
		return nil
	}
	floor := contender{name: "floor/session", attach: func(t testing.TB) ([]*ebpf.Program, func()) {
		p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
			Name: "empty", Type: ebpf.Kprobe, AttachType: bpf.AttachSession, License: "GPL",
			Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}, // 0: the return, too
		})
		bpftest.Require(t, err)
		at := []point{{Point: symbols.Point{Offset: f.Lookup("work5")[0].Offset}}}
		l, err := multi{}.attach(p, atBoth, f, at)
		bpftest.Require(t, err)
		return []*ebpf.Program{p}, func() { l.Close(); p.Close() }
	}}
	config.InFlight = SessionStore
	return []contender{floor, oursOf(config, Return, f)}
}

// BenchmarkCostThroughput is the rate of calls of a function that begins with a
// 5-byte nop, under our probes as a share of the rate under programs that do
// nothing, attached in the same way: 1 is the floor.
func BenchmarkCostThroughput(b *testing.B) {
	target := bpftest.Build(b, "loop")
	f := open(b, target)
	const calls = 200000
	for _, method := range []Method{UprobeMulti, PerfEvent} {
		for _, kind := range []Kind{Entry, Return} {
			b.Run(string(method)+"/"+[]string{"count", "latency"}[kind], func(b *testing.B) {
				two := []contender{floorOf(method, kind, f), oursOf(Config{Attach: method}, kind, f)}
				took := map[string][]float64{}
				for i := 0; b.Loop(); i++ {
					for k := range two {
						c := two[(i+k)%2] // each is first in every second round
						_, end := c.attach(b)
						ns := truth(b, target, strconv.Itoa(calls))["ns"]
						end()
						took[c.name] = append(took[c.name], float64(ns)/calls)
					}
				}
				b.ReportMetric(median(took["floor"]), "ns/call-floor")
				b.ReportMetric(median(took["uprobetop"]), "ns/call")
				b.ReportMetric(median(took["floor"])/median(took["uprobetop"]), "of-floor")
			})
		}
	}
}

// bpftraceOf is bpftrace with one of its own idioms. by: "", or a key of its map.
func bpftraceOf(kind Kind, by string, f *symbols.File) contender {
	at := ":" + f.Path + ":work5 "
	script := "uprobe" + at + "{ @" + by + " = count(); }"
	if kind == Return {
		script = "uprobe" + at + "{ @start[tid] = nsecs; } uretprobe" + at +
			"/@start[tid]/ { @ns" + by + " = hist(nsecs - @start[tid]); delete(@start[tid]); }"
	}
	return rivalOf(kind, "bpftrace", "-e", script)
}

// funclatencyOf is the program of libbpf-tools, which times calls.
func funclatencyOf(f *symbols.File) contender { return rivalOf(Return, "funclatency", f.Path+":work5") }

// rivalOf is another program that probes work5 until it is interrupted.
func rivalOf(kind Kind, name string, args ...string) contender {
	return contender{name: name, attach: func(t testing.TB) ([]*ebpf.Program, func()) {
		cmd := exec.Command(name, args...)
		var said strings.Builder
		cmd.Stderr = &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		end := func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() }
		var mine []*ebpf.Program
		for deadline := time.Now().Add(20 * time.Second); len(mine) < 1+int(kind); {
			if time.Now().After(deadline) {
				end()
				t.Fatalf("%s places no probe: %s", name, &said)
			}
			mine = programsOf(t, cmd.Process.Pid)
			time.Sleep(20 * time.Millisecond) // it has no way to say that it is ready
		}
		time.Sleep(300 * time.Millisecond) // loaded, and attached soon
		return mine, end
	}}
}

// programsOf are those that a process holds, of the type that uprobes have.
func programsOf(t testing.TB, pid int) (all []*ebpf.Program) {
	t.Helper()
	infos, err := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[ebpf.ProgramID]bool{}
	for _, info := range infos {
		text, _ := os.ReadFile(info) // closed meanwhile
		_, after, found := strings.Cut(string(text), "\nprog_id:\t")
		var id ebpf.ProgramID
		if _, err := fmt.Sscan(after, &id); !found || err != nil || seen[id] {
			continue
		}
		seen[id] = true
		if p, err := ebpf.NewProgramFromID(id); err == nil && p.Type() == ebpf.Kprobe {
			all = append(all, p)
		}
	}
	return all
}

// BenchmarkCostKernel is the time that the programs of a hit take by the kernel's
// own statistics, less that of an empty program (its share is the statistics' own):
// ours, the rivals' for the same job as far as they are installed (packages bpftrace
// and libbpf-tools), and our share of theirs. A job is one row.
func BenchmarkCostKernel(b *testing.B) {
	target := bpftest.Build(b, "loop")
	f := open(b, target)
	const calls = 200000
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	bpftest.Require(b, err)
	defer stats.Close()
	timing := []contender{bpftraceOf(Return, "", f), funclatencyOf(f)}
	byMulti := func(c Config) Config { c.Attach = UprobeMulti; return c }
	stores := append([]contender{oursOf(byMulti(Config{InFlight: HashStore}), Return, f)}, sessionsOf(byMulti(Config{}), f)...)
	for _, job := range []struct {
		name   string
		kind   Kind
		config Config
		others []contender // of our own stores
		rivals []contender
	}{
		{"count", Entry, Config{}, nil, []contender{bpftraceOf(Entry, "", f)}},
		{"pair", Return, Config{}, stores, timing},
		{"watched", Return, Config{Slow: time.Hour}, nil, timing}, // for slow calls, of which there is none
		{"reported", Return, Config{Slow: 1}, nil, timing},        // every call, as far as the rate limit lets them
		{"threads", Return, Config{Watch: true}, sessionsOf(byMulti(Config{Watch: true}), f), []contender{bpftraceOf(Return, "[tid]", f)}},
	} {
		b.Run(job.name, func(b *testing.B) {
			ours := oursOf(byMulti(job.config), job.kind, f)
			all := append([]contender{floorOf(UprobeMulti, job.kind, f), ours}, job.others...)
			var rivals []string
			for _, r := range job.rivals {
				if _, missing := exec.LookPath(r.name); missing == nil {
					all = append(all, r)
					rivals = append(rivals, r.name)
				}
			}
			took := map[string][]float64{}
			for i := 0; b.Loop(); i++ {
				for k := range all {
					c := all[(i+k)%len(all)] // each is first in turn
					progs, end := c.attach(b)
					truth(b, target, strconv.Itoa(calls))
					took[c.name] = append(took[c.name], perHit(b, progs, calls+1000))
					end()
				}
			}
			net := map[string]float64{}
			for _, c := range all {
				net[c.name] = median(took[c.name])
				if !strings.HasPrefix(c.name, "floor") {
					net[c.name] -= median(took[cmp.Or(c.floor, "floor")])
				}
				b.ReportMetric(net[c.name], "ns/hit-"+c.name)
			}
			for _, r := range rivals {
				b.ReportMetric(net[ours.name]/net[r], "of-"+r)
			}
		})
	}
}

// perHit is the run time of programs, in ns a hit. Each must have run once a hit
// (an empty one as often as it is attached, one of sessions twice).
func perHit(t testing.TB, progs []*ebpf.Program, hits uint64) float64 {
	t.Helper()
	var sum float64
	for _, p := range progs {
		s, err := p.Stats()
		if err != nil {
			t.Fatal(err)
		}
		if s.RunCount < hits || s.RunCount%hits != 0 {
			t.Fatalf("a program ran %d times for %d hits", s.RunCount, hits)
		}
		sum += float64(s.Runtime) / float64(hits)
	}
	return sum
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[len(values)/2]
}
