package export

import "uprobetop/probes"

// Findings is what is known of a run at its end beside its numbers. What is nil is null.
type Findings struct {
	Why    func(*probes.Stats) probes.Explanation // of a probe without hits
	Gaps   []probes.Gap
	Kernel *probes.KernelCounts
}

// What the kernel does not tell is null.
type kernelCounts struct {
	Recursions uint64  `json:"recursions"`
	Runs       *uint64 `json:"runs"`
	Depth      *uint64 `json:"log_depth"` // at least, as are the next two
	Killed     *uint64 `json:"log_killed"`
	Left       *uint64 `json:"log_left"`
}

// gap is a breakpoint that is missing in a process.
type gap struct {
	Probe uint64 `json:"probe"`
	PID   int    `json:"pid"`
	Why   string `json:"why"`
}

func (f Findings) kernel() *kernelCounts {
	if f.Kernel == nil {
		return nil
	}
	k := &kernelCounts{Recursions: f.Kernel.Recursions, Runs: f.Kernel.Runs}
	if l := f.Kernel.Log; l != nil {
		k.Depth, k.Killed, k.Left = &l.Depth, &l.Killed, &l.Left
	}
	return k
}

// gaps is nil where nobody looked.
func (f Findings) gaps() []gap {
	if f.Why == nil {
		return nil
	}
	all := []gap{}
	for _, g := range f.Gaps {
		all = append(all, gap{uint64(g.Probe), g.PID, g.Why})
	}
	return all
}

func (f Findings) why(st *probes.Stats) *string {
	if f.Why == nil || st.Hits > 0 || !st.Stood() {
		return nil
	}
	text := f.Why(st).String()
	if text == "" {
		return nil
	}
	return &text
}
