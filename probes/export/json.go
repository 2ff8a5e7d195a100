// Package export writes snapshots for other programs.
package export

import (
	"cmp"
	"io"
	"time"

	"uprobetop/probes"
	"uprobetop/probes/hist"
	"uprobetop/symbols"
)

// Schema names the form of the objects. New fields may come; none changes its
// meaning.
const Schema = "uprobetop/1"

// What was not or cannot be measured is null: a pointer that is nil.
type object struct {
	Schema   string   `json:"schema"`
	Type     string   `json:"type"` // snapshot; a single call is of another
	Final    bool     `json:"final"`
	At       string   `json:"at"`
	Elapsed  float64  `json:"elapsed_s"`
	Interval float64  `json:"interval_s"`
	CPUs     int      `json:"cpus"`
	Kernel   string   `json:"kernel"`
	Targets  []target `json:"targets"`
	Filter   filter   `json:"filter"`
	Attach   string   `json:"attach"`
	InFlight string   `json:"inflight"`
	Probes   []probe  `json:"probes"`
	Lost     lost     `json:"lost"`
	HeldBack held     `json:"held_back"`

	Unfollowed uint64 `json:"unfollowed"` // processes that found no room in the filter: their hits are missing

	KernelCounts *kernelCounts `json:"kernel_counts"` // of the final one
	Gaps         []gap         `json:"gaps"`
	Inside       []insider     `json:"in_flight_calls"`
}

type target struct {
	Path    string `json:"path"`
	BuildID string `json:"build_id"`

	Replaced string `json:"replaced"` // deleted, or replaced, since it was mapped
}

// cgroup is the first of cgroups, or empty.
type filter struct {
	PIDs    []int    `json:"pids"`
	TIDs    []int    `json:"tids"`
	Cgroup  string   `json:"cgroup"`
	Cgroups []string `json:"cgroups"`

	Children bool `json:"children"` // and what those of pids started
}

type lost struct {
	Cells   uint64      `json:"cells"`
	Calls   uint64      `json:"calls"`
	CallsBy causes      `json:"calls_by"`
	PerCPU  []lostCalls `json:"per_cpu"` // CPUs that lost calls
}

// The ring buffer was full, or others held its lock for too long.
type causes struct {
	Full uint64 `json:"full"`
	Busy uint64 `json:"busy"`
}

type lostCalls struct {
	CPU   int    `json:"cpu"`
	Calls causes `json:"calls_by"`
}

func lostObject(l probes.Lost) lost {
	o := lost{Cells: l.Cells, Calls: l.Calls, CallsBy: causes{l.Calls - l.Busy, l.Busy}, PerCPU: []lostCalls{}}
	for _, on := range l.ByCPU {
		o.PerCPU = append(o.PerCPU, lostCalls{on.CPU, causes{on.Full, on.Busy}})
	}
	return o
}

type held struct {
	Calls uint64 `json:"calls"`
}

type probe struct {
	ID        uint64    `json:"id"`
	Name      string    `json:"name"`
	Symbol    string    `json:"symbol"`
	Aliases   []string  `json:"aliases"`
	Path      string    `json:"path"`
	Address   string    `json:"address"`
	Points    []pt      `json:"points"`
	Kind      string    `json:"kind"`
	State     string    `json:"state"`
	Note      string    `json:"note"`
	Hits      *uint64   `json:"hits"`
	Rate      *float64  `json:"rate"`
	Counted   *float64  `json:"counted_s"`
	PerCPU    []cpu     `json:"per_cpu"`
	Returned  *uint64   `json:"returned"`
	InFlight  *int64    `json:"in_flight"`
	Unwound   *uint64   `json:"unwound"`
	UnwoundBy *unwound  `json:"unwound_by"`
	Pending   *int64    `json:"unreturned"` // in flight and unwound, where they cannot be told apart
	Orphans   *uint64   `json:"orphans"`
	Filtered  *uint64   `json:"filtered"`
	Missed    *missed   `json:"missed"`
	Oldest    *int64    `json:"oldest_in_flight_ns"`
	Load      *float64  `json:"load"`
	Self      *int64    `json:"self_ns"` // of the sum of latency_ns
	Latency   *latency  `json:"latency_ns"`
	Floor     *uint64   `json:"floor_ns"` // median of an empty function
	Cost      *struct{} `json:"cost"`
	Why       *string   `json:"why"` // of the final one, without hits
	Audit     *audit    `json:"audit"`
	shares
}

// The semaphore, in the file as well, and the arguments are of usdt probes.
type pt struct {
	Offset    string `json:"offset"`
	Semaphore string `json:"semaphore,omitempty"`
	Arguments string `json:"arguments,omitempty"`
}

func points(ps []symbols.Point) []pt {
	all := make([]pt, len(ps))
	for i, p := range ps {
		all[i] = pt{Offset: hex(p.Offset), Arguments: p.Arguments}
		if p.Semaphore != 0 {
			all[i].Semaphore = hex(p.Semaphore)
		}
	}
	return all
}

type cpu struct {
	CPU  int     `json:"cpu"`
	Hits uint64  `json:"hits"`
	Rate float64 `json:"rate"`
}

type unwound struct {
	Jump uint64 `json:"jump"`
	Exec uint64 `json:"exec"`
	Exit uint64 `json:"exit"`
}

type missed struct {
	Depth  uint64  `json:"depth"`
	NoSlot *uint64 `json:"no_slot"`
}

// Min and max are of the independent count, of hits and filtered together. It is not
// known whether it agrees where the kernel did not count all the time.
type audit struct {
	Min    uint64 `json:"min"`
	Max    uint64 `json:"max"`
	Agrees *bool  `json:"agrees"`
}

func auditObject(a *probes.Audit) *audit {
	switch {
	case a == nil:
		return nil
	case a.Partly:
		return &audit{Min: a.Min, Max: a.Max}
	}
	return &audit{a.Min, a.Max, &a.Agrees}
}

// The extremes and percentiles of no calls are null.
type latency struct {
	Count   uint64     `json:"count"`
	Sum     uint64     `json:"sum"`
	Min     *uint64    `json:"min"`
	Mean    *float64   `json:"mean"`
	P50     *uint64    `json:"p50"`
	P90     *uint64    `json:"p90"`
	P99     *uint64    `json:"p99"`
	P999    *uint64    `json:"p999"`
	Max     *uint64    `json:"max"`
	Buckets [][]uint64 `json:"buckets"`
}

// JSON writes one snapshot as one line. Rates and load are over the part of the
// interval in which the probe counted, in the final one over all the time in which
// it did.
func JSON(w io.Writer, s *probes.Snapshot) error { return JSONWith(w, s, Extra{}) }

// JSONWith is JSON with what is known beside the numbers.
func JSONWith(w io.Writer, s *probes.Snapshot, x Extra) error {
	o := object{
		Schema: Schema, Type: "snapshot", Final: s.Final, At: s.At.UTC().Format(time.RFC3339Nano),
		Elapsed: s.Elapsed.Seconds(), Interval: s.Interval.Seconds(),
		CPUs: s.CPUs, Kernel: s.Kernel, Attach: methods[s.Method], InFlight: string(cmp.Or(s.InFlight, probes.TaskStore)),
		Targets: []target{}, Probes: []probe{},
		Filter: filterObject(s.Filter),
		Lost:   lostObject(s.Lost), HeldBack: held{s.HeldBack}, Unfollowed: s.Unfollowed,
		KernelCounts: x.kernel(), Gaps: x.gaps(),
	}
	seen := map[*symbols.File]bool{}
	for i := range s.Probes {
		st := &s.Probes[i]
		if !seen[st.File] {
			seen[st.File] = true
			o.Targets = append(o.Targets, target{st.File.Path, st.File.BuildID, st.File.Replaced})
		}
		p := probeObject(s, st, x.By)
		p.Why = x.why(st)
		o.Probes = append(o.Probes, p)
	}
	o.Inside = insiders(s)
	return writeLine(w, o)
}

// methods are the words of --attach.
var methods = map[string]string{string(probes.UprobeMulti): "multi", string(probes.PerfEvent): "perf"}

func filterObject(f probes.Filter) filter {
	o := filter{PIDs: append([]int{}, f.PIDs...), TIDs: append([]int{}, f.TIDs...), Cgroups: append([]string{}, f.Cgroups...), Children: f.Follow}
	if len(f.Cgroups) > 0 {
		o.Cgroup = f.Cgroups[0]
	}
	return o
}

func probeObject(s *probes.Snapshot, st *probes.Stats, by By) probe {
	fn := st.Function
	p := probe{
		ID: uint64(st.ID), Name: fn.Demangled(), Symbol: fn.Symbol.Raw(), Aliases: aliases(fn),
		Path: st.File.Path, Address: hex(fn.Addr), Points: points(st.Points),
		Kind: st.Kind.String(), State: st.State.String(), Note: st.Note,
	}
	if !st.Stood() {
		return p
	}
	over := st.Counted.Seconds()
	rate := st.Rate
	if s.Final {
		rate = ratio(float64(st.Hits), over)
	}
	p.Hits, p.Rate, p.Counted, p.Filtered, p.PerCPU = &st.Hits, &rate, &over, &st.Filtered, []cpu{}
	p.Audit = auditObject(st.Audit)
	for _, c := range st.PerCPU {
		rate := c.Rate
		if s.Final {
			rate = ratio(float64(c.Hits), over)
		}
		p.PerCPU = append(p.PerCPU, cpu{c.CPU, c.Hits, rate})
	}
	p.shares = sharesObject(s, st, by)
	if st.Latency == nil {
		return p
	}
	load := st.Load
	if s.Final {
		load = ratio(float64(st.Latency.Sum), over*1e9)
	}
	p.Returned, p.Orphans, p.Load = &st.Returned, &st.Orphans, &load
	p.Missed = &missed{Depth: st.Missed.Depth}
	if st.NoFrames {
		p.Pending = &st.Unreturned
	} else {
		total := st.Unwound.Total()
		p.InFlight, p.Unwound, p.Missed.NoSlot = &st.InFlight, &total, &st.Missed.NoSlot
		p.UnwoundBy = &unwound{st.Unwound.Jump, st.Unwound.Exec, st.Unwound.Exit}
		self := st.Self().Nanoseconds()
		p.Self = &self
	}
	p.Latency = latencyObject(st.Latency)
	if st.Oldest > 0 && s.Unlisted(st) == 0 {
		oldest := st.Oldest.Nanoseconds()
		p.Oldest = &oldest
	}
	if st.Floor.P50 > 0 {
		p.Floor = &st.Floor.P50
	}
	return p
}

func latencyObject(h *hist.Histogram) *latency {
	l := &latency{Count: h.Count(), Sum: h.Sum, Buckets: [][]uint64{}}
	for i, n := range h.Counts {
		if n != 0 {
			low, high := hist.Bounds(i)
			l.Buckets = append(l.Buckets, []uint64{low, high, n})
		}
	}
	if l.Count == 0 {
		return l
	}
	q := func(share float64) *uint64 { v := h.Quantile(share); return &v }
	mean := h.Mean()
	l.Min, l.Mean, l.Max = &h.Min, &mean, &h.Max
	l.P50, l.P90, l.P99, l.P999 = q(0.5), q(0.9), q(0.99), q(0.999)
	return l
}

func ratio(n, d float64) float64 {
	if d <= 0 {
		return 0
	}
	return n / d
}
