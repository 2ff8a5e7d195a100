package export

import "uprobetop/probes"

// Extra is what is known beside the numbers, the rest of it at the end of a run. What
// is nil is null.
type Extra struct {
	By     By                                     // of watched probes, the rows of threads or of processes
	Why    func(*probes.Stats) probes.Explanation // of a probe without hits
	Gaps   []probes.Gap
	Kernel *probes.KernelCounts
}

// What the kernel does not tell is null.
type kernelCounts struct {
	Recursions  uint64  `json:"recursions"`
	UnseenEnds  uint64  `json:"unseen_ends"` // at most, as is the next
	UnseenForks uint64  `json:"unseen_forks"`
	Runs        *uint64 `json:"runs"`
	Depth       *uint64 `json:"log_depth"` // at least, as are the next two
	Killed      *uint64 `json:"log_killed"`
	Left        *uint64 `json:"log_left"`
}

// gap is a breakpoint that is missing in a process.
type gap struct {
	Probe uint64 `json:"probe"`
	PID   int    `json:"pid"`
	Why   string `json:"why"`
}

func (x Extra) kernel() *kernelCounts {
	if x.Kernel == nil {
		return nil
	}
	k := &kernelCounts{
		Recursions: x.Kernel.Recursions, Runs: x.Kernel.Runs,
		UnseenEnds: x.Kernel.UnseenEnds, UnseenForks: x.Kernel.UnseenForks,
	}
	if l := x.Kernel.Log; l != nil {
		k.Depth, k.Killed, k.Left = &l.Depth, &l.Killed, &l.Left
	}
	return k
}

// gaps is nil where nobody looked.
func (x Extra) gaps() []gap {
	if x.Why == nil {
		return nil
	}
	all := []gap{}
	for _, g := range x.Gaps {
		all = append(all, gap{uint64(g.Probe), g.PID, g.Why})
	}
	return all
}

func (x Extra) why(st *probes.Stats) *string {
	if x.Why == nil || st.Hits > 0 || !st.Stood() {
		return nil
	}
	text := x.Why(st).String()
	if text == "" {
		return nil
	}
	return &text
}
