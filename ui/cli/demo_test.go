package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"uprobetop/assets"
	"uprobetop/probes"
	"uprobetop/probes/hist"
)

// The demo shows rates and a histogram at once and leaves no process behind.
func TestDemo(t *testing.T) {
	requireBPF(t)
	start := time.Now()
	x := openTerminal(t, 120, 40, "demo")
	screen := x.wait(`(?s)handle_request +ret +[1-9].*read_page +ret +[1-9].*p50 [0-9]`)
	t.Logf("rates after %v", time.Since(start))
	x.wait(`(?:█[^█]*){20}`) // the histogram
	t.Logf("and a histogram after %v", time.Since(start))
	pid := regexp.MustCompile(`demo (\d+)`).FindStringSubmatch(screen)
	if pid == nil {
		t.Fatalf("the header does not name the demo's process:\n%s", screen)
	}
	if header, _, _ := strings.Cut(screen, "\n"); strings.Contains(header, "disk") {
		t.Errorf("the demo's program, which never was on a disk, is told to be gone from it: %s", header)
	}
	x.leave(nil)
	if _, err := os.Stat("/proc/" + pid[1]); err == nil {
		t.Errorf("the demo still runs as process %s", pid[1])
	}
}

// weather is a running demo under probes.
type weather struct {
	t *testing.T
	*demo
	ids map[string]probes.ID
}

func openWeather(t *testing.T) *weather {
	t.Helper()
	requireBPF(t)
	d, err := openDemo(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.close)
	more, err := d.target.Resolve([]probes.Spec{{Function: "wait_disk"}}, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.col.Place(t.Context(), append(d.requests, more.Requests...)...); err != nil {
		t.Fatal(err)
	}
	s, err := d.col.Collect()
	if err != nil {
		t.Fatal(err)
	}
	w := &weather{t, d, map[string]probes.ID{}}
	for _, p := range s.Probes {
		w.ids[p.Function.Name] = p.ID
	}
	return w
}

func (w *weather) of(s *probes.Snapshot, name string) *probes.Stats { return s.Find(w.ids[name]) }

// latency is that of a function between two snapshots.
func (w *weather) latency(from, to *probes.Snapshot, name string) *hist.Histogram {
	return w.of(to, name).Latency.Sub(w.of(from, name).Latency)
}

// show changes the scene and collects until there is to be seen what it shows.
func (w *weather) show(scene string, seen func(from, to *probes.Snapshot) bool) {
	w.t.Helper()
	for i, s := range assets.DemoScenes {
		if s.Name == scene {
			if err := w.process.SetScene(i); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	from := w.col.Snapshot()
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer cancel()
	there := false
	err := w.col.Run(ctx, 50*time.Millisecond, func(s *probes.Snapshot) {
		if there = there || seen(from, s); there {
			cancel()
		}
	})
	if err != nil || !there {
		w.t.Errorf("%s: not to be seen, %v", scene, err)
	}
}

// tasks calls do for the status of every thread of the demo with such a name.
func (w *weather) tasks(name string, do func(status string)) {
	w.t.Helper()
	paths, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", w.process.PID()))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, path := range paths {
		status, err := os.ReadFile(path)
		if err != nil {
			w.t.Fatal(err)
		}
		if strings.HasPrefix(string(status), "Name:\t"+name) {
			do(string(status))
		}
	}
}

// preempted is how often the demo's workers had to leave a CPU that they needed.
func (w *weather) preempted() int {
	n := 0
	w.tasks("worker", func(status string) {
		var one int
		_, after, _ := strings.Cut(status, "nonvoluntary_ctxt_switches:")
		if _, err := fmt.Sscan(after, &one); err != nil {
			w.t.Error(err)
		}
		n += one
	})
	return n
}

func field(status, name string) string {
	_, after, _ := strings.Cut(status, name+":")
	value, _, _ := strings.Cut(after, "\n")
	return value
}

// Each scene shows what it says it does, and is over when the next one begins.
func TestDemoScenes(t *testing.T) {
	w := openWeather(t)
	w.show("lock storm", func(from, to *probes.Snapshot) bool {
		h := w.latency(from, to, "lock_shard")
		return h.Count() >= 30 && h.Quantile(0.9) > 4e6
	})
	w.show("slow disk", func(from, to *probes.Snapshot) bool {
		h := w.latency(from, to, "wait_disk")
		return h.Count() >= 20 && h.Quantile(0.5) > 5e6
	})
	before := w.preempted()
	w.show("CPU hog", func(from, to *probes.Snapshot) bool {
		return w.preempted() > before+10
	})
	hogs := 0
	w.tasks("hog", func(string) { hogs++ })
	if hogs == 0 || hogs > runtime.NumCPU() {
		t.Errorf("there are %d hogs on %d CPUs", hogs, runtime.NumCPU())
	}
	hanging := 0
	var first *probes.Snapshot
	w.show("hang", func(from, to *probes.Snapshot) bool {
		if hanging++; w.of(to, "send_reply").InFlight == 0 || w.of(to, "handle_request").InFlight == 0 {
			hanging = 0
		}
		if hanging <= 1 {
			first = to
		}
		return hanging >= 10 && w.of(to, "handle_request").Hits >= w.of(first, "handle_request").Hits+20
	})
	w.show("calm", func(from, to *probes.Snapshot) bool {
		locks, disk := w.latency(from, to, "lock_shard"), w.latency(from, to, "wait_disk")
		return w.of(to, "send_reply").Latency.Max >= 4e8 && // the call that hung has come back
			locks.Count() >= 30 && locks.Quantile(0.9) < 4e6 && disk.Count() >= 20 && disk.Quantile(0.5) < 5e6
	})
	var free string
	w.tasks("demo", func(status string) { free = field(status, "Cpus_allowed") })
	w.tasks("worker", func(status string) {
		if cpus := field(status, "Cpus_allowed"); cpus != free {
			t.Errorf("a worker is still held on the CPUs %s of %s", cpus, free)
		}
	})
}

// The recording is what it is there for: all functions from the first tick on,
// and every scene.
func TestDemoRecording(t *testing.T) {
	source := assets.DemoRecording()
	if size, err := source.Seek(0, io.SeekEnd); err != nil || size > 600_000 {
		t.Errorf("it has %d bytes, %v", size, err)
	}
	r, err := probes.NewReplay(source)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Label != "demo" || strings.Contains(r.Host.Kernel, "-") {
		t.Errorf("it names %q on %q", r.Label, r.Host.Kernel)
	}
	ids := map[string]probes.ID{}
	var last *probes.Snapshot
	for {
		s, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		last = s
		if len(s.Probes) != len(assets.DemoFunctions) {
			t.Fatalf("tick %d has %d probes", s.Seq, len(s.Probes))
		}
		for i, f := range assets.DemoFunctions {
			p := &s.Probes[i]
			if p.Function.Name != f.Name || (p.Kind == probes.Return) != f.Timed || p.State != probes.Attached {
				t.Fatalf("tick %d: %s %s is %s", s.Seq, p.Kind, p.Function.Name, p.State)
			}
			ids[f.Name] = p.ID
		}
	}
	if last.Elapsed < 20*time.Second || last.Elapsed > 40*time.Second || last.Lost.Cells+last.Lost.Calls != 0 {
		t.Errorf("it lasts %v and lost %v", last.Elapsed, last.Lost)
	}
	for i := range last.Probes {
		if last.Probes[i].Hits == 0 {
			t.Errorf("%s is never hit", last.Probes[i].Function.Name)
		}
	}
	for name, least := range map[string]time.Duration{
		"lock_shard": 20 * time.Millisecond, "write_log": 40 * time.Millisecond, "handle_request": 3 * time.Second,
	} {
		if p := last.Find(ids[name]); time.Duration(p.Latency.Max) < least {
			t.Errorf("the longest %s takes %v", name, time.Duration(p.Latency.Max))
		}
	}
}

// Who may not probe sees the recording: numbers that move, functions to be found,
// and why it is one.
func TestDemoWithoutRights(t *testing.T) {
	cmd := program("demo")
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	} else if probes.Supported() == nil {
		t.Skip("this user may probe")
	}
	x := openTerminalOf(t, 130, 40, cmd)
	rate := regexp.MustCompile(`handle_request +ret +([1-9][0-9.]*)`)
	first := rate.FindStringSubmatch(x.wait(rate.String()))[1]
	x.until("another rate than "+first, func(screen string) bool {
		now := rate.FindStringSubmatch(screen)
		return now != nil && now[1] != first
	})
	x.press(" ")
	x.wait(`this is a recording: nothing can be placed`)
	x.press("/hash")
	x.wait(`(?s)› hash .*hash_key`)
	x.press("\x1b")
	x.wait(`q quit`) // before: escape and q together are another key
	x.leave(nil)
	if screen := x.emu.String(); !strings.Contains(strings.Join(strings.Fields(screen), " "),
		"a recording of the demo: probing needs root or CAP_BPF and CAP_PERFMON: run sudo uprobetop demo") {
		t.Errorf("in the end the terminal shows\n%s", screen)
	}
}

// What was opened before something failed is closed.
func TestDemoCannotStart(t *testing.T) {
	requireBPF(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if d, err := openDemo(ctx, nil); err == nil {
		d.close()
		t.Error("it starts after its end")
	}
}

func TestDemoIsRecordedOnce(t *testing.T) {
	requireBPF(t)
	path := filepath.Join(t.TempDir(), "there")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := run(t, "demo", "--record", path); r.status != exitFailed || !strings.Contains(r.errors, "exists") {
		t.Errorf("%+v", r)
	}
}
