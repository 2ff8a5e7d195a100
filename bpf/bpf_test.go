package bpf

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"uprobetop/bpf/bpftest"
)

func TestMain(m *testing.M) { os.Exit(bpftest.Main(m)) }

// The programs load for every attach tier and store, filtered and not.
func TestLoad(t *testing.T) {
	for _, way := range []Options{
		{Method: UprobeMulti, Store: TaskStore},
		{Method: UprobeMulti, Store: HashStore},
		{Method: UprobeMulti, Store: SessionStore},
		{Method: PerfEvent, Store: TaskStore},
	} {
		if way.Store == SessionStore && errors.Is(HaveSession(), ebpf.ErrNotSupported) {
			continue
		}
		for _, filtered := range []bool{false, true} {
			o := DefaultOptions(1)
			o.Method, o.Store = way.Method, way.Store
			if filtered {
				o.PIDNamespace = 1
				o.Filter = Filter{Processes: true, Follow: true, Threads: true, Cgroups: 2}
			}
			l, err := Load(o)
			bpftest.Require(t, err)
			next, err := l.Flush(0, o.MaxProbes, time.Second)
			if err != nil || next != o.MaxProbes {
				t.Errorf("%s, %s: a flush of nothing comes to slot %d: %v", way.Method, way.Store, next, err)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// No function of the hot path has so much stack that the kernel takes it from
// the CPU's memory, where a thread that preempts it overwrites it; see
// uprobetop.bpf.c.
func TestStackDepth(t *testing.T) {
	const limit = 48
	plain := Options{Object: bpftest.Object(t, "PLAIN_ADDS")}.spec // tests run it, too
	for _, load := range []func() (*ebpf.CollectionSpec, error){loadUprobetop, loadSession, loadSessionContext, plain} {
		spec, err := load()
		if err != nil {
			t.Fatal(err)
		}
		for name, p := range spec.Programs {
			if name == "flush" || name == "flush_shares" || name == "inside" {
				continue // not a uprobe program: nothing else runs it
			}
			for function, depth := range stackDepths(p) {
				t.Logf("%s: %s uses %d bytes of stack", name, function, depth)
				if depth > limit {
					t.Errorf("%s: %s uses %d bytes of stack, %d are safe", name, function, depth, limit)
				}
			}
		}
	}
}

func stackDepths(p *ebpf.ProgramSpec) map[string]int {
	depths := map[string]int{}
	function := p.Name
	var frame asm.Register // holds a copy of the frame pointer
	for _, ins := range p.Instructions {
		if s := ins.Symbol(); s != "" {
			function, frame = s, asm.R10
		}
		var at int
		switch {
		case ins.OpCode.Class().IsLoad() && ins.Src == asm.R10, ins.OpCode.Class().IsStore() && ins.Dst == asm.R10:
			at = int(ins.Offset)
		case ins.OpCode.Class().IsALU() && ins.OpCode.ALUOp() == asm.Mov && ins.Src == asm.R10 && ins.OpCode.Source() == asm.RegSource:
			frame = ins.Dst
		case ins.OpCode.Class().IsALU() && ins.OpCode.ALUOp() == asm.Add && ins.Dst == frame && ins.OpCode.Source() == asm.ImmSource:
			at = int(ins.Constant)
		}
		depths[function] = max(depths[function], -at)
	}
	return depths
}

// What a kernel has is found by trying; this one has to give one answer twice.
func TestFeatures(t *testing.T) {
	if err := HaveUprobeMulti(); err != nil {
		bpftest.Require(t, err)
	}
	if n, err := PossibleCPUs(); err != nil || n < 1 {
		t.Errorf("%d possible CPUs, %v", n, err)
	}
	t.Logf("the process filter means a process: %v", ProcessFilter())
}
