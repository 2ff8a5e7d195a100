package probes

import (
	"sort"
	"time"

	"uprobetop/probes/hist"
	"uprobetop/symbols"
)

// Kind is what a probe measures.
type Kind uint8

const (
	// Entry is a uprobe: it counts hits.
	Entry Kind = iota
	// Return is a uprobe and a uretprobe: it counts hits and times calls.
	Return
	// USDT is a uprobe on each site of a usdt probe: it counts hits.
	USDT
)

func (k Kind) String() string { return [...]string{"uprobe", "uretprobe", "usdt"}[k] }

// CountingKind is what counts the hits of a function and does nothing else.
func CountingKind(fn *symbols.Function) Kind {
	if fn.Place == symbols.Marker {
		return USDT
	}
	return Entry
}

// State is where a probe is in its life.
type State uint8

const (
	Placing  State = iota // the kernel is being asked
	Attached              // hits are counted
	Stopped               // taken away; its numbers stay
	Refused               // not asked for, because it would do harm
	Failed                // asked for, and the kernel said no
	Gone                  // the target has ended; the numbers stay
)

func (s State) String() string {
	return [...]string{"placing", "attached", "stopped", "refused", "failed", "gone"}[s]
}

// ID identifies a probe for as long as the collector lives: it is never used
// for another one.
type ID uint64

// Probe is what does not change about one function being measured.
type Probe struct {
	ID       ID
	Kind     Kind
	File     *symbols.File
	Function *symbols.Function
	Points   []symbols.Point

	cookie uint64 // what records call it; 0: it was never to be placed
}

// Snapshot is an immutable copy of all the numbers at one instant. Counts are
// since the probe was placed.
type Snapshot struct {
	Seq      uint64        // 1 for the first tick; 0 before it
	At       time.Time     // wall clock at the end of the tick: a label
	Elapsed  time.Duration // since the first probe stood, until the tick or the end; 0: none did
	Interval time.Duration // since the snapshot before; both by the kernel's clock, see monotonic
	Kernel   string        // release
	CPUs     int           // online CPUs of the host
	Method   string        // how probes are attached: uprobe_multi
	InFlight Store         // where calls in flight are kept; empty: TaskStore
	Gone     bool          // the target has ended
	Final    bool          // the last one: no hit counts any more, and no number changes
	Filter   Filter
	Probes   []Stats // in order of ID
	Lost     Lost
	HeldBack uint64 // calls to be reported that the rate limit held back, of all probes there ever were

	// Calls are those reported by themselves since the snapshot before, in the
	// order in which they returned.
	Calls []Call

	// Inside is who is inside the timed functions now; nil: nobody, or it is not
	// known. Where listing them takes long, it can be of a tick before.
	Inside *Inside

	// Container: Inside lists threads of this PID namespace alone, which is one of a
	// container. See Unlisted.
	Container bool

	Placing, Leaving Progress // what the kernel is being asked for now

	// Unfollowed counts processes whose hits should count, as children of
	// others, but that found no room in the filter.
	Unfollowed uint64
}

// Progress is how far the kernel has come with the points of probes.
type Progress struct{ Done, Of int }

// Filter says whose hits are counted: whoever one of these lets through. The
// zero value lets everybody.
type Filter struct {
	PIDs    []int    // processes
	TIDs    []int    // threads
	Cgroups []string // directories of cgroup v2: processes in them, or below, now and later
	Follow  bool     // and the processes that those of PIDs have started or start
}

// Everybody tells whether no hit is left out.
func (f Filter) Everybody() bool { return len(f.PIDs)+len(f.TIDs)+len(f.Cgroups) == 0 }

// HostWide tells whether breakpoints go into every process that maps a file, also
// into those whose hits do not count. The kernel can be told of a few processes
// that it shall probe alone, by a link for each; but not of those that they start,
// nor of a cgroup.
func (f Filter) HostWide() bool {
	const most = 16 // each link is another one to ask at every hit
	n := len(f.PIDs) + len(f.TIDs)
	return n == 0 || n > most || f.Follow || len(f.Cgroups) > 0
}

// Lost counts the records that did not fit into a ring buffer. A lost cell is
// sent again by the next flush: it delays a number and changes none.
type Lost struct {
	Cells uint64
	Calls uint64      // for whatever cause
	Busy  uint64      // those of Calls for which the ring, not full, was locked for too long
	ByCPU []LostCalls // of CPUs that lost any, ascending; together they are Calls
}

// LostCalls is how many reports of calls one CPU lost, by cause: the ring was full, or
// others held its lock for too long (Linux 6.15).
type LostCalls struct {
	CPU        int
	Full, Busy uint64
}

// CPUStats is one CPU's share of a probe's hits.
type CPUStats struct {
	CPU  int
	Hits uint64
	Rate float64 // hits/s, as that of Stats
}

// Stats is one probe in one snapshot. For a probe that is no Return, and one that never
// stood, the terms of the ledger below Hits are not measured, and Latency is nil.
type Stats struct {
	*Probe
	State  State
	Note   string        // one sentence: why refused, why failed, what the hits do not mean
	Placed time.Duration // Snapshot.Elapsed at which it was attached
	Halted time.Duration // and at which it was stopped; 0: its hits count on

	// Counted is for how long its hits counted. What is per second is over the part of
	// the snapshot's interval in which they did: 0 where there is none.
	Counted time.Duration

	Hits   uint64
	Rate   float64 // hits/s
	PerCPU []CPUStats

	// The ledger: at rest Hits = Returned + InFlight + Unwound + Missed.Depth
	// + Missed.NoSlot. Each term is counted by itself.
	Returned uint64
	InFlight int64 // a gauge
	Unwound  Unwound
	Missed   Missed

	// NoFrames: the in-flight store keeps none (SessionStore). It does not know
	// InFlight, Unwound and Missed.NoSlot, which are 0 then, but all of them together:
	// at rest Hits = Returned + Unreturned + Missed.Depth.
	NoFrames   bool
	Unreturned int64 // a gauge; only with NoFrames

	Orphans  uint64 // returns whose hit was not seen
	Filtered uint64 // hits of processes that the filter leaves out

	HeldBack  uint64 // slow calls that the rate limit did not let be reported
	CallsLost uint64 // and those whose report the ring buffer did not take; see Lost
	CallsBusy uint64 // those of CallsLost for which it was locked

	Latency *hist.Histogram

	// Audit is the independent count's word on Hits + Filtered; nil before the last
	// snapshot, and where none was asked for.
	Audit *Audit

	// Load is Σ latency ÷ time, of the calls that returned in that time: how many threads
	// are inside on average, if calls are short against it (Little's law). A call that
	// lasts for many intervals counts where it ends, as a lump there and as nothing before;
	// what is inside now is InFlight, which is not added: over a longer time the same call
	// would count twice.
	Load    float64
	Callees time.Duration // part of Σ latency: in other timed probes, called directly
	Oldest  time.Duration // age of the oldest call in flight; 0: there is none, or it is not known
	Floor   Floor         // of these latencies

	Threads *Threads // by thread; nil: it is not watched
}

// Self is the part of Σ latency that was spent in the function itself, and in what
// it called that is not timed.
func (s *Stats) Self() time.Duration {
	if s.Latency == nil {
		return 0
	}
	return max(time.Duration(s.Latency.Sum)-s.Callees, 0)
}

// Stood tells whether the probe ever counted: if not, its 0 is none.
func (s *Stats) Stood() bool { return s.State != Placing && s.State != Refused && s.State != Failed }

// Unwound counts calls whose return can never come, by cause.
type Unwound struct{ Jump, Exec, Exit uint64 }

// Total is the sum over the causes.
func (u Unwound) Total() uint64 { return u.Jump + u.Exec + u.Exit }

// Missed counts hits whose return the kernel or the in-flight store could not
// follow: Depth because the thread had 64 returns pending, NoSlot because no
// frame could be had.
type Missed struct{ Depth, NoSlot uint64 }

// Total is the sum over the causes.
func (m Missed) Total() uint64 { return m.Depth + m.NoSlot }

// Balance is Hits less every other term of the ledger: 0 when the books
// balance. While calls are being made it may be off by the few that the flush
// caught between two additions.
func (s *Stats) Balance() int64 {
	return int64(s.Hits) - int64(s.Returned) - s.Pending() - int64(s.Unwound.Total()) - int64(s.Missed.Total())
}

// Pending is InFlight, or Unreturned where that is not known.
func (s *Stats) Pending() int64 {
	if s.NoFrames {
		return s.Unreturned
	}
	return s.InFlight
}

// Find returns a probe's numbers, or nil; of no snapshot nil, too.
func (s *Snapshot) Find(id ID) *Stats {
	if s == nil || len(s.Probes) == 0 {
		return nil
	}
	// IDs grow one by one: where no probe was removed, this is the one; else it is
	// one before.
	i := int(min(id-s.Probes[0].ID, ID(len(s.Probes)-1)))
	if s.Probes[i].ID != id {
		i = sort.Search(i, func(j int) bool { return s.Probes[j].ID >= id })
	}
	if s.Probes[i].ID != id {
		return nil
	}
	return &s.Probes[i]
}

// count fills in for how long hits counted, and returns how much of the snapshot's
// interval that is.
func (s *Stats) count(of *Snapshot, stood bool) (part time.Duration) {
	if !stood {
		return 0
	}
	end := of.Elapsed
	if s.Halted > 0 {
		end = min(end, s.Halted)
	}
	s.Counted = max(end-s.Placed, 0)
	if s.Threads != nil {
		s.Threads.Counted = max(end-s.Threads.Since, 0)
	}
	return max(end-max(s.Placed, of.Elapsed-of.Interval), 0)
}

// rates fills in what is per second, from the state before that time (nil: nothing
// had been counted).
func (s *Stats) rates(before *Stats, part time.Duration) {
	if before == nil {
		before = &Stats{}
	}
	seconds := part.Seconds()
	if seconds <= 0 {
		return
	}
	s.Rate = float64(s.Hits-before.Hits) / seconds
	if s.Threads != nil {
		s.Threads.rates(seconds)
	}
	old := before.PerCPU
	for i := range s.PerCPU {
		p := &s.PerCPU[i]
		for len(old) > 0 && old[0].CPU < p.CPU {
			old = old[1:]
		}
		p.Rate = float64(p.Hits) / seconds
		if len(old) > 0 && old[0].CPU == p.CPU {
			p.Rate = float64(p.Hits-old[0].Hits) / seconds
		}
	}
	if s.Latency != nil {
		sum := s.Latency.Sum
		if before.Latency != nil {
			sum -= before.Latency.Sum
		}
		s.Load = float64(sum) / (seconds * 1e9)
	}
}
