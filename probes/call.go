package probes

import (
	"time"

	"uprobetop/bpf"
)

// Call is one call of a timed probe that was reported by itself, because it was
// slow or because every call of the probe is.
type Call struct {
	Probe    ID
	PID, TID int    // 0: see Outside
	Comm     string // of the thread, raw
	CPU      int    // on which it returned
	At       time.Time
	Start    uint64 // CLOCK_MONOTONIC at entry, ns
	Latency  time.Duration
	Return   uint64 // the register of an integer result

	// Args are the registers of the first three integer arguments at entry, and
	// Thread what the scheduler knows of the thread between entry and return. Thread
	// is nil, and Args say nothing, for a call that had begun before its report was
	// asked for.
	Args   [3]uint64
	Thread *ThreadStats
	// Callees is the time in other timed probes that this call called itself; -1: the
	// in-flight store does not know.
	Callees time.Duration
}

// ThreadStats is what happened to a thread during a call.
//
// The kernel adds up a thread's time on CPU at ticks and switches only (update_curr,
// kernel/sched/fair.c, Linux 5.15 to 7.3), so that what it has added up may be a tick
// old at either end of a call. When it last did is read, too, and the rest is worked
// out. OnCPU is then right to 500 ppm of the latency, by which the clock of latencies,
// which NTP keeps right, and that of the scheduler can differ; and of a call in which
// it was not added up at all, because there was neither tick nor switch, exactly.
//
// Where the kernel does not tell when it last did (without CONFIG_FAIR_GROUP_SCHED), the
// two clocks are not made of one counter (see oneClock), or those of its CPUs differ by
// more than two ticks, OnCPU is right to a tick, 1 to 10 ms, and with CPUs that have no
// ticks (nohz_full) to a second; but of a call that never gave up its CPU it is all the
// time in which that did not wait for one.
//
// Interrupts, and what a hypervisor takes, are no time on CPU as far as the kernel has
// taken them off by then: it looks at ticks and switches. What was taken just before a
// call, and not yet taken off, is then missing in it.
type ThreadStats struct {
	OnCPU                  time.Duration // running
	OnCPUError             time.Duration // by which OnCPU can be wrong, up or down
	Waiting                time.Duration // ready to run, no CPU was free; -1: this kernel does not keep it
	Voluntary, Involuntary uint64        // context switches
	MinorFaults            uint64
	MajorFaults            uint64
}

// Vague tells that the time on CPU can be wrong by more than 2 % of the latency.
func (c *Call) Vague() bool { return c.Thread != nil && 50*c.Thread.OnCPUError > c.Latency }

// Outside tells that the caller has no ids here: uprobetop runs in a container, and
// it is none of its processes.
func (c *Call) Outside() bool { return c.PID == 0 }

// Blocked is how long a call slept or waited for something else than a CPU, as right
// as OnCPU is; -1 if that cannot be told from waiting for a CPU. Thread must not be nil.
func (c *Call) Blocked() time.Duration {
	switch t := c.Thread; {
	case t.Voluntary == 0:
		return 0
	case t.Waiting < 0:
		return -1
	default:
		return max(c.Latency-t.Waiting-t.OnCPU, 0)
	}
}

// NoCalls is the threshold of a probe whose calls are not reported one by one.
const NoCalls = time.Duration(-1)

// idOf is the probe that a cookie belongs to, cookieOf its cookie in a slot. No
// two probes ever have the same.
func idOf(cookie uint64) ID           { return ID(cookie>>32) - 1 }
func cookieOf(id ID, slot int) uint64 { return uint64(id+1)<<32 | uint64(slot) }

// callOf reads a record; the wall clock is not in it.
func callOf(c *bpf.Call) Call {
	call := Call{
		Probe: idOf(c.Cookie), PID: int(c.Tgid), TID: int(c.Tid), Comm: text(c.Comm[:]), CPU: int(c.Cpu),
		Start: c.Start, Args: c.Args, Return: c.Result, Callees: time.Duration(c.Callees),
	}
	if c.At > c.Start {
		call.Latency = time.Duration(c.At - c.Start)
	}
	if c.Known&bpf.KnownEntry != 0 {
		call.Thread = &ThreadStats{
			OnCPU: time.Duration(c.Thread[bpf.OnCPU]), Waiting: -1,
			Voluntary: c.Thread[bpf.Voluntary], Involuntary: c.Thread[bpf.Involuntary],
			MinorFaults: c.Thread[bpf.MinorFaults], MajorFaults: c.Thread[bpf.MajorFaults],
		}
		if c.Known&bpf.KnownWaiting != 0 {
			call.Thread.Waiting = time.Duration(c.Thread[bpf.Waiting])
		}
		call.Thread.onCPU(c, call.Latency)
	}
	return call
}

// onCPU works out the time on CPU from what the kernel had added up and what not.
func (t *ThreadStats) onCPU(c *bpf.Call, latency time.Duration) {
	room := max(latency-max(t.Waiting, 0), 0)
	tick, rest := time.Duration(c.Tick), time.Duration(c.Unaccounted)
	switch {
	case c.Known&bpf.KnownUpdate != 0 && t.OnCPU == 0 && rest == latency:
		t.OnCPU = latency
	case c.Known&bpf.KnownUpdate != 0 && rest.Abs() <= 2*tick: // one may come late
		t.OnCPU += rest
		t.OnCPUError = min(latency/2000, tick)
	case t.Voluntary == 0 && (t.Waiting >= 0 || t.Involuntary == 0):
		t.OnCPU = room
	default:
		t.OnCPUError = tick
	}
	t.OnCPU = min(max(t.OnCPU, 0), room)
	t.OnCPUError = min(t.OnCPUError, max(t.OnCPU, room-t.OnCPU))
}
