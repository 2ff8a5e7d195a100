package probes

import "time"

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
	Args     [3]uint64 // the registers of the first three integer arguments at entry
	Return   uint64    // the register of an integer result

	// What the scheduler knows of the thread between entry and return; nil if it
	// could not be had.
	Thread *ThreadStats
	// Callees is the time in other timed probes that this call called itself.
	Callees time.Duration
}

// ThreadStats is what happened to a thread during a call. Times are only as
// fresh as the kernel's last update: a scheduler tick or switch.
type ThreadStats struct {
	OnCPU                  time.Duration // running
	Waiting                time.Duration // ready to run, no CPU was free
	Voluntary, Involuntary uint64        // context switches
	MinorFaults            uint64
	MajorFaults            uint64
}

// NoCalls is the threshold of a probe whose calls are not reported one by one.
const NoCalls = time.Duration(-1)
