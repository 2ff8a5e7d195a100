package probes

import (
	"bytes"
	"time"

	"uprobetop/bpf"
)

// Call is one call of a timed probe that was reported by itself, because it was
// slow or because every call of the probe is.
type Call struct {
	Probe    ID
	PID, TID int
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

// ThreadStats is what happened to a thread during a call. The kernel brings OnCPU up
// to date at ticks and switches only: of a call that slept it can be wrong by a
// tick (4 ms at 250 Hz), though never more than the call has room for. A call that
// never gave up its CPU was on one whenever it did not wait for one.
type ThreadStats struct {
	OnCPU                  time.Duration // running
	Waiting                time.Duration // ready to run, no CPU was free; -1: this kernel does not keep it
	Voluntary, Involuntary uint64        // context switches
	MinorFaults            uint64
	MajorFaults            uint64
}

// NoCalls is the threshold of a probe whose calls are not reported one by one.
const NoCalls = time.Duration(-1)

// idOf is the probe that a cookie belongs to, cookieOf its cookie in a slot. No
// two probes ever have the same.
func idOf(cookie uint64) ID           { return ID(cookie>>32) - 1 }
func cookieOf(id ID, slot int) uint64 { return uint64(id+1)<<32 | uint64(slot) }

// callOf reads a record; the wall clock is not in it.
func callOf(c *bpf.Call) Call {
	comm := make([]byte, len(c.Comm))
	for i, b := range c.Comm {
		comm[i] = byte(b)
	}
	name, _, _ := bytes.Cut(comm, []byte{0})
	call := Call{
		Probe: idOf(c.Cookie), PID: int(c.Tgid), TID: int(c.Tid), Comm: string(name), CPU: int(c.Cpu),
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
		room := max(call.Latency-max(call.Thread.Waiting, 0), 0)
		t := call.Thread
		if t.OnCPU > room || t.Voluntary == 0 && (t.Waiting >= 0 || t.Involuntary == 0) {
			call.Thread.OnCPU = room
		}
	}
	return call
}
