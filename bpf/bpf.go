// Package bpf is the kernel side of uprobetop: the programs in C, the types
// that they share with Go, loading them, and asking the kernel what it can do.
//
// layout.h is the contract between the two sides. uprobetop.bpf.c says what
// runs when.
package bpf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
)

//go:generate go tool bpf2go -tags linux -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -go-package bpf -type cell -type cell_field -type probe_switch -type switch_flags -type hist -type record -type record_kind -type call -type thread_field -type call_known -type share -type share_key -type share_record -type share_args -type share_size -type share_thread -type filter_size -type flush_args uprobetop uprobetop.bpf.c -- -O2 -Wall -Wextra -Wno-unused-parameter -Werror -mcpu=v1 -I/usr/include/x86_64-linux-gnu
//go:generate go tool bpf2go -tags linux -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -go-package bpf -no-global-types session session.bpf.c -- -O2 -Wall -Wextra -Wno-unused-parameter -Werror -mcpu=v1 -I/usr/include/x86_64-linux-gnu
//go:generate go tool bpf2go -tags linux -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -go-package bpf -no-global-types sessionContext session.bpf.c -- -O2 -Wall -Wextra -Wno-unused-parameter -Werror -mcpu=v1 -I/usr/include/x86_64-linux-gnu -DSESSION_TAKES_CONTEXT

// The shared types of layout.h.
type (
	// Record is struct record: what the flush writes into the ring buffer.
	Record = uprobetopRecord
	// Call is struct call: what a single call writes into its ring buffer.
	Call = uprobetopCall
	// Cell is struct cell: one CPU's counters of one probe.
	Cell = uprobetopCell
	// Hist is struct hist: one CPU's latencies of one probe.
	Hist = uprobetopHist
)

// The kinds of record: the first number of each. RecordCall, RecordInside and
// RecordEnumerated are of a Call, the others are of a Record.
const (
	RecordCell       = uint32(uprobetopRecordKindRECORD_CELL)
	RecordGroup      = uint32(uprobetopRecordKindRECORD_GROUP)
	RecordTick       = uint32(uprobetopRecordKindRECORD_TICK)
	RecordCall       = uint32(uprobetopRecordKindRECORD_CALL)
	RecordInside     = uint32(uprobetopRecordKindRECORD_INSIDE)
	RecordEnumerated = uint32(uprobetopRecordKindRECORD_ENUMERATED)
)

// Fields is the number of counters in a cell, and of values in a Record.
const Fields = uprobetopCellFieldCELL_FIELDS

// The counters of a cell: indices into Cell.Value and a RecordCell's Value.
const (
	Hits         = uprobetopCellFieldCELL_HITS
	Returned     = uprobetopCellFieldCELL_RETURNED
	SumNs        = uprobetopCellFieldCELL_SUM_NS
	Pushed       = uprobetopCellFieldCELL_PUSHED
	Popped       = uprobetopCellFieldCELL_POPPED
	UnwoundJump  = uprobetopCellFieldCELL_UNWOUND_JUMP
	UnwoundExec  = uprobetopCellFieldCELL_UNWOUND_EXEC
	UnwoundExit  = uprobetopCellFieldCELL_UNWOUND_EXIT
	Orphans      = uprobetopCellFieldCELL_ORPHANS
	Filtered     = uprobetopCellFieldCELL_FILTERED
	MissedDepth  = uprobetopCellFieldCELL_MISSED_DEPTH
	MissedNoSlot = uprobetopCellFieldCELL_MISSED_NO_SLOT
	HeldBack     = uprobetopCellFieldCELL_HELD_BACK
	CallsLost    = uprobetopCellFieldCELL_CALLS_LOST
	CallsBusy    = uprobetopCellFieldCELL_CALLS_BUSY
	CalleesNs    = uprobetopCellFieldCELL_CALLEES_NS
	MaxNs        = uprobetopCellFieldCELL_MAX_NS
	MinNsNot     = uprobetopCellFieldCELL_MIN_NS_NOT
)

// What a Call says of its thread: indices into Call.Thread, and the bits of
// Call.Known.
const (
	OnCPU        = uprobetopThreadFieldTHREAD_ON_CPU
	Waiting      = uprobetopThreadFieldTHREAD_WAITING
	Voluntary    = uprobetopThreadFieldTHREAD_VOLUNTARY
	Involuntary  = uprobetopThreadFieldTHREAD_INVOLUNTARY
	MinorFaults  = uprobetopThreadFieldTHREAD_MINOR_FAULTS
	MajorFaults  = uprobetopThreadFieldTHREAD_MAJOR_FAULTS
	KnownEntry   = uint64(uprobetopCallKnownKNOWN_ENTRY)
	KnownWaiting = uint64(uprobetopCallKnownKNOWN_WAITING)
	KnownUpdate  = uint64(uprobetopCallKnownKNOWN_UPDATE)
)

// MaxCgroups is how many cgroups a filter can name.
const MaxCgroups = int(uprobetopFilterSizeMAX_CGROUPS)

// Method is a way to attach a program to points. A loaded program serves one.
type Method string

const (
	// UprobeMulti is one link for thousands of points (Linux 6.6, commit 89ae89f53d20).
	UprobeMulti Method = "uprobe_multi"
	// PerfEvent is one perf event a point, with a cookie (Linux 5.15).
	PerfEvent Method = "perf_event"
)

// Store is where calls in flight are kept.
type Store string

const (
	// TaskStore keeps a stack of frames with each thread, in task storage.
	TaskStore Store = "task"
	// HashStore keeps the same in a hash by thread, which can be full.
	HashStore Store = "hash"
	// SessionStore leaves it to the kernel; see HaveSession. It tells hits and returns,
	// and keeps no frames.
	SessionStore Store = "session"
)

// Options size and shape what is loaded.
type Options struct {
	MaxProbes int    // slots for probes
	MaxTimed  int    // slots for latency histograms
	RingBytes int    // ring buffer of records; a power of two, at least a page
	CallBytes int    // ring buffer of single calls, likewise
	Store     Store  // of calls in flight
	Stacks    int    // threads that HashStore has room for, some 2 kB each
	Threads   int    // entries of threads, over all watched probes
	Filter    Filter // whose hits count
	Method    Method // how Enter and Leave will be attached

	// PIDNamespace is the inode of the PID namespace by whose ids the filter and Call
	// go; 0 is the initial one.
	PIDNamespace uint32
	// Tick is the longest time for which the kernel may leave the time on CPU of a
	// running thread as it is.
	Tick time.Duration
	// OneClock says that CLOCK_MONOTONIC and the scheduler's clock are made of one
	// counter, which is the same on all CPUs.
	OneClock bool
	// Object is loaded instead of the embedded one: the same source with a fault,
	// for tests; see increase in hit.h. nil: the embedded one.
	Object []byte
}

// Filter says which numbers a filter goes by; without any everybody counts. A hit
// counts if one of them lets it through.
type Filter struct {
	Processes bool // those that are admitted
	Follow    bool // and those that they start
	Threads   bool // those that are admitted
	Cgroups   int  // so many, at most MaxCgroups
}

// The kernel memory that histograms take, over all CPUs: unless more are asked
// for, and at most.
const (
	histBytes    = 64 << 20
	maxHistBytes = 1 << 30
	maxCellBytes = 1 << 30 // of counters
)

// perHist is the size of struct hist.
const perHist = int(unsafe.Sizeof(Hist{}))

// MaxProbes is how many probes a host with this many possible CPUs has room for.
func MaxProbes(cpus int) int {
	const perCell = int(unsafe.Sizeof(Cell{})) + 8 // and what was sent of it
	return maxCellBytes / (perCell * cpus)
}

// MaxTimed is how many latency histograms a host with this many possible CPUs has
// room for.
func MaxTimed(cpus int) int { return maxHistBytes / (perHist * cpus) }

// DefaultOptions are for a host with this many possible CPUs: 1,024 probes, 256
// of them timed, fewer where 256 histograms a CPU would take over 64 MiB.
func DefaultOptions(cpus int) Options {
	return Options{
		MaxProbes: 1024,
		MaxTimed:  min(256, max(16, histBytes/(perHist*cpus))),
		RingBytes: 1 << 20,
		CallBytes: 1 << 18,
		Store:     TaskStore,
		Stacks:    8192,
		Threads:   DefaultThreads,
		Method:    UprobeMulti,
	}
}

// Objects are the loaded programs and maps. Enter, Leave and Session are to be
// attached by the caller; the hooks on exec, exit and fork are attached already.
type Objects struct {
	Enter, Leave *ebpf.Program
	Session      *ebpf.Program // instead of both for timed probes; only with SessionStore
	Records      *ebpf.Map     // the ring buffer of Record
	Calls        *ebpf.Map     // the ring buffer of Call
	Cells, Hists *ebpf.Map     // arrays: CPU × MaxProbes + slot, CPU × MaxTimed + histogram slot
	Stacks       *ebpf.Map     // of frames, by thread id; only with HashStore
	Shares       *ebpf.Map     // hash: ShareKey to Share, without those of the others
	Options      Options
	CPUs         int // possible CPUs: cells exist for each

	objs   uprobetopObjects
	hooks  hookList
	inside *link.Iter
}

// Load loads the programs and maps and attaches the hooks. An error that says
// that the caller may not do this is os.ErrPermission; one that says that the
// kernel lacks something is ebpf.ErrNotSupported.
func Load(o Options) (*Objects, error) {
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return nil, fmt.Errorf("cannot tell how many CPUs are possible: %w", err)
	}
	if err := rlimit.RemoveMemlock(); err != nil && !errors.Is(err, os.ErrPermission) {
		return nil, fmt.Errorf("cannot raise the limit of locked memory: %w", err)
	}
	spec, err := o.spec()
	if err != nil {
		return nil, fmt.Errorf("the BPF object is damaged: %w", err)
	}
	if err := shape(spec, o, cpus); err != nil {
		return nil, err
	}
	l := &Objects{Options: o, CPUs: cpus}
	if err := spec.LoadAndAssign(&l.objs, nil); err != nil {
		return nil, fmt.Errorf("the kernel does not load the BPF programs: %w", err)
	}
	l.Enter, l.Leave = l.objs.Enter, l.objs.Leave
	l.Records, l.Calls, l.Cells, l.Hists = l.objs.Records, l.objs.Calls, l.objs.Cells, l.objs.Hists
	l.Shares = l.objs.Shares
	switch o.Store {
	case HashStore:
		l.Stacks = l.objs.StacksByThread
	case SessionStore:
		if l.Session, err = loadSessionProgram(&l.objs.uprobetopMaps, o, cpus); err != nil {
			l.Close()
			return nil, err
		}
	}
	if err := l.attachHooks(); err != nil {
		l.Close()
		return nil, err
	}
	if l.inside, err = link.AttachIter(link.IterOptions{Program: l.objs.Inside}); err != nil {
		l.Close()
		return nil, fmt.Errorf("the kernel does not attach the iterator over threads: %w", err)
	}
	return l, nil
}

func (o Options) spec() (*ebpf.CollectionSpec, error) {
	if o.Object != nil {
		return ebpf.LoadCollectionSpecFromReader(bytes.NewReader(o.Object))
	}
	return loadUprobetop()
}

// shape sets sizes and constants in the spec.
func shape(spec *ebpf.CollectionSpec, o Options, cpus int) error {
	f := o.Filter
	if f.Cgroups > MaxCgroups {
		return fmt.Errorf("a filter can name %d cgroups, not %d", MaxCgroups, f.Cgroups)
	}
	for name, v := range map[string]any{
		"max_probes": uint32(o.MaxProbes),
		"max_timed":  uint32(o.MaxTimed),
		"cpus":       uint32(cpus),
		"filtered":   flag(f.Processes || f.Threads || f.Cgroups > 0),
		"by_process": flag(f.Processes),
		"by_thread":  flag(f.Threads),
		"by_cgroup":  uint32(f.Cgroups),
		"follow":     flag(f.Follow),
		"hashed":     flag(o.Store == HashStore),
		"stackless":  flag(o.Store == SessionStore),

		"pid_namespace": o.PIDNamespace,
		"tick_ns":       uint64(o.Tick),
		"one_clock":     flag(o.OneClock),
	} {
		known := spec.Variables[name]
		if known == nil { // not in this object
			continue
		}
		if err := known.Set(v); err != nil {
			return fmt.Errorf("cannot set %s in the BPF object: %w", name, err)
		}
	}
	stacks := 1
	if o.Store == HashStore {
		stacks = o.Stacks
	}
	entries := map[string]int{
		"switches":     o.MaxProbes,
		"call_budgets": o.MaxProbes,
		"cells":        o.MaxProbes * cpus,
		"sent_cells":   o.MaxProbes * cpus,
		"hists":        o.MaxTimed * cpus,
		"sent_hists":   o.MaxTimed,
		"records":      o.RingBytes,
		"calls":        o.CallBytes,

		"stacks_by_thread": stacks,

		"shares":       o.Threads,
		"other_shares": o.MaxProbes,
	}
	for name, m := range spec.Maps {
		if n, sized := entries[name]; sized {
			m.MaxEntries = uint32(n)
		}
	}
	if o.Method == PerfEvent {
		spec.Programs["enter"].AttachType = ebpf.AttachNone
		spec.Programs["leave"].AttachType = ebpf.AttachNone
	}
	return nil
}

func flag(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// Close takes everything out of the kernel that has no other owner.
func (l *Objects) Close() error {
	var errs []error
	errs = append(errs, l.DetachHooks(0), l.DetachHooks(1))
	if l.Session != nil {
		errs = append(errs, l.Session.Close())
	}
	if l.inside != nil {
		errs = append(errs, l.inside.Close())
	}
	return errors.Join(append(errs, l.objs.Close())...)
}

// Flush writes what changed in the cells of the slots first ≤ slot < last into
// the ring buffer, for about budget of time or until the ring is full, and returns
// the slot to go on with. A run that comes to last ends with a RecordTick, if
// there is room for it.
func (l *Objects) Flush(first, last int, budget time.Duration) (next int, err error) {
	args := uprobetopFlushArgs{First: uint32(first), Last: uint32(last), BudgetNs: uint64(budget)}
	if _, err := l.objs.Flush.Run(&ebpf.RunOptions{Context: args, ContextOut: &args}); err != nil {
		return 0, fmt.Errorf("the kernel does not run the flush: %w", err)
	}
	return int(args.Next), nil
}

// Inside enumerates the calls that have not returned, as reading goes on: each is a
// RecordInside, and a RecordEnumerated ends them.
func (l *Objects) Inside() (io.ReadCloser, error) {
	r, err := l.inside.Open()
	if err != nil {
		return nil, fmt.Errorf("the kernel does not enumerate the calls in flight: %w", err)
	}
	return r, nil
}

// End says when counting ended, by CLOCK_MONOTONIC in ns: the calls in flight grew no
// older.
func (l *Objects) End(at uint64) error {
	if err := l.objs.Ended.Set(at); err != nil {
		return fmt.Errorf("cannot tell the BPF programs that counting ends: %w", err)
	}
	return nil
}

// Switch is what the programs do at a hit of a probe.
type Switch struct {
	On    bool          // count it
	Timed bool          // pair it with its return
	Hist  int           // slot of its histogram; only if Timed
	Slow  time.Duration // report calls that take at least this long; below 0: none
	Ended bool          // returns change nothing any more, either

	Watched bool // count it by thread as well; see Watch
}

// Switch says what is done at a hit of the probe with this cookie. A hit that
// comes with any other cookie of the same slot is ignored from now on.
func (l *Objects) Switch(cookie uint64, s Switch) error {
	sw := uprobetopProbeSwitch{Cookie: cookie, Hist: uint32(s.Hist), SlowNs: ^uint64(0)}
	if s.On {
		sw.Flags |= uint32(uprobetopSwitchFlagsSWITCH_ON)
	}
	if s.Timed {
		sw.Flags |= uint32(uprobetopSwitchFlagsSWITCH_TIMED)
	}
	if s.Ended {
		sw.Flags |= uint32(uprobetopSwitchFlagsSWITCH_ENDED)
	}
	if s.Watched {
		sw.Flags |= uint32(uprobetopSwitchFlagsSWITCH_WATCHED)
	}
	if s.Slow >= 0 {
		sw.Flags |= uint32(uprobetopSwitchFlagsSWITCH_CALLS)
		sw.SlowNs = uint64(s.Slow)
	}
	if err := l.objs.Switches.Put(uint32(cookie), sw); err != nil {
		return fmt.Errorf("cannot set the switch of probe %d: %w", cookie, err)
	}
	return nil
}

// Retire makes a slot belong to no probe: whatever still comes with a cookie of
// it counts nowhere, and the flush passes it by.
func (l *Objects) Retire(slot int) error {
	if err := l.objs.Switches.Put(uint32(slot), uprobetopProbeSwitch{}); err != nil {
		return fmt.Errorf("cannot retire slot %d: %w", slot, err)
	}
	return nil
}

// Zero clears the counters of a slot that was retired and, if hist ≥ 0, of its
// histogram slot. No flush may run meanwhile.
func (l *Objects) Zero(slot, hist int) error {
	var errs []error
	for cpu := range l.CPUs {
		i := uint32(cpu*l.Options.MaxProbes + slot)
		errs = append(errs, l.Cells.Put(i, uprobetopCell{}), l.objs.SentCells.Put(i, uint64(0)))
		if hist >= 0 {
			errs = append(errs, l.Hists.Put(uint32(cpu*l.Options.MaxTimed+hist), uprobetopHist{}))
		}
	}
	if hist >= 0 {
		errs = append(errs, l.objs.SentHists.Put(uint32(hist), uprobetopSentGroups{}))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cannot clear slot %d: %w", slot, err)
	}
	return nil
}

// Admit lets a process through the filter.
func (l *Objects) Admit(pid int) error {
	if err := l.objs.Admitted.Put(uint32(pid), uint8(1)); err != nil {
		return fmt.Errorf("cannot admit process %d: %w", pid, err)
	}
	return nil
}

// Dismiss takes a process off the list of Admit, if it is on it.
func (l *Objects) Dismiss(pid int) error {
	if err := l.objs.Admitted.Delete(uint32(pid)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("cannot take process %d out of the filter: %w", pid, err)
	}
	return nil
}

// AdmitThread lets a thread through the filter.
func (l *Objects) AdmitThread(tid int) error {
	if err := l.objs.AdmittedThreads.Put(uint32(tid), uint8(1)); err != nil {
		return fmt.Errorf("cannot admit thread %d: %w", tid, err)
	}
	return nil
}

// AdmitCgroup lets the processes of a directory of cgroup v2, and of those below
// it, through the filter: the i-th of Options.Filter.Cgroups.
func (l *Objects) AdmitCgroup(i int, directory string) error {
	d, err := os.Open(directory)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := l.objs.Cgroups.Put(uint32(i), uint32(d.Fd())); err != nil {
		return fmt.Errorf("%s is no directory of cgroup v2: %w", directory, err)
	}
	return nil
}

// Admitted is which processes the filter lets through by their number.
func (l *Objects) Admitted() ([]int, error) {
	most := l.objs.Admitted.MaxEntries()
	keys, values := make([]uint32, most), make([]uint8, most)
	n, err := l.objs.Admitted.BatchLookup(new(ebpf.MapBatchCursor), keys, values, nil)
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) { // that is the end of the list
		return nil, fmt.Errorf("the filter's list of processes cannot be read: %w", err)
	}
	pids := make([]int, n)
	for i := range pids {
		pids[i] = int(keys[i])
	}
	return pids, nil
}

// AnyAdmitted is one of Admitted, if there is any; it takes one system call.
func (l *Objects) AnyAdmitted() (pid int, found bool, err error) {
	var key uint32
	err = l.objs.Admitted.NextKey(nil, &key)
	switch {
	case errors.Is(err, ebpf.ErrKeyNotExist):
		return 0, false, nil
	case err != nil:
		return 0, false, fmt.Errorf("the filter's list of processes cannot be read: %w", err)
	}
	return int(key), true, nil
}
