package probes

import (
	"os/exec"
	"runtime"
	"testing"

	"uprobetop/bpf/bpftest"
)

// However a program is linked, the same names are counted, and exactly.
func TestKernelBuilds(t *testing.T) {
	for name, flags := range map[string][]string{
		"no-pie":          {"-no-pie", "-fno-pie"},
		"pie":             {"-pie", "-fPIE"},
		"static":          {"-static", "-no-pie", "-fno-pie"},
		"static-pie":      {"-static-pie", "-fPIE"},
		"noseparate-code": {"-Wl,-z,noseparate-code"},
		"shifted":         {"-no-pie", "-fno-pie", "-Wl,-Ttext-segment=0x10000000"},
		"large pages":     {"-Wl,-z,max-page-size=0x200000", "-Wl,-z,common-page-size=0x200000"},
		"prelinked":       {"-pie", "-fPIE", "-Wl,-Ttext-segment=0x3000000000"},
	} {
		t.Run(name, func(t *testing.T) {
			target := bpftest.Compile(t, "testdata/calls.c", flags...)
			f := open(t, target)
			c := newCollectorHere(t, Config{})
			place(t, c, request(t, f, Return, "work"), request(t, f, Entry, "run"), request(t, f, Entry, "main"))
			equal(t, "calls", truth(t, target, "3", "500")["calls"], 1500)
			s := finish(t, c)
			for i, want := range []uint64{1500, 3, 1} {
				equal(t, s.Probes[i].Function.Name, s.Probes[i].Hits, want)
				checkBooks(t, &s.Probes[i])
			}
			equal(t, "returned", s.Probes[0].Returned, 1500)
		})
	}
}

// 32-bit programs are counted and timed as others are. What the kernel could
// misread as 64-bit code is refused: placed, it crashes the program.
func TestKernel32(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("32-bit x86 only")
	}
	target := bpftest.Compile(t, "testdata/tiny32.c", "-O1", "-m32", "-fno-pic", "-no-pie", "-nostdlib", "-static", "-fno-stack-protector", "-mno-sse")
	if err := exec.Command(target).Run(); err != nil {
		t.Skipf("32-bit programs do not run here: %v", err)
	}
	f := open(t, target)
	for _, kind := range []Kind{Entry, Return} {
		c := newCollectorHere(t, Config{})
		absolute := request(t, f, kind, "absolute")
		if finding := c.Check(absolute); finding.Verdict != Refuses {
			t.Fatalf("absolute: %+v", finding)
		}
		place(t, c, request(t, f, kind, "work"), request(t, f, kind, "recurse"))
		said := truth(t, target)
		equal(t, "wrong", said["wrong"], 0)
		s := finish(t, c)
		for i := range s.Probes {
			p := &s.Probes[i]
			equal(t, p.Function.Name, p.Hits, said[p.Function.Name])
			if kind == Return {
				equal(t, p.Function.Name+" returned", p.Returned+p.Missed.Depth, said[p.Function.Name])
			}
			checkBooks(t, p)
		}
	}
}

// Where a loop goes back to the probed instruction, hits are more than calls, and the
// probe says so.
func TestKernelComesBack(t *testing.T) {
	target := bpftest.Build(t, "again")
	f := open(t, target)
	c := newCollectorHere(t, Config{})
	place(t, c, request(t, f, Entry, "comes"), request(t, f, Entry, "main"))
	truth(t, target)
	s := finish(t, c)
	if p := &s.Probes[0]; p.Hits != 300 || !p.HitsAgain() || p.Note != AgainNote {
		t.Errorf("%d hits, marked: %v, %q", p.Hits, p.HitsAgain(), p.Note)
	}
	if p := &s.Probes[1]; p.Hits != 1 || p.HitsAgain() || p.Note != "" {
		t.Errorf("main: %d hits, marked: %v, %q", p.Hits, p.HitsAgain(), p.Note)
	}
}
