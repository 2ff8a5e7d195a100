package probes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"uprobetop/bpf"
	"uprobetop/symbols"
)

// EndedNote is the note of a probe that is gone, if it has no other.
const EndedNote = "the target has ended"

// Tick is how often the numbers are collected unless something else is said.
const Tick = 250 * time.Millisecond

// flushBudget is the work of one run of the flush. A run cannot be interrupted
// on kernels without preemption, so it has to be shorter than what a latency
// sensitive thread on its CPU would notice; the last slot begun comes on top.
const flushBudget = 500 * time.Microsecond

// stepBack lowers the calling thread's priority: what is measured goes first.
func stepBack() { _ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), 10) }

// Config says what a collector is for. Its zero value counts every process.
type Config struct {
	Filter Filter
	// Room for probes, and for timed ones; 0 is the default of bpf.DefaultOptions.
	MaxProbes, MaxTimed int
	RingBytes           int // of each ring buffer; 0 is the default
	// Probes and Timed of them are to be placed: there is room for these at least.
	Probes, Timed int
	// Attach is how probes are attached; empty is the best that the kernel has.
	Attach Method
	// InFlight is where calls in flight are kept; empty is task storage. HashStore has
	// room for the Stacks of so many threads; 0 is the default.
	InFlight Store
	Stacks   int
	// Slow has every timed call that takes at least this long reported; 0: none.
	Slow time.Duration
	// Watch has every probe counted by thread as well, from its first hit on.
	Watch bool
	// Threads is how many rows of threads there is room for, over all watched probes;
	// 0 is bpf.DefaultThreads.
	Threads int
	// Audit has every point counted a second time, by the kernel itself; see Stats.Audit.
	// Breakpoints then go into every process that maps the file.
	Audit bool
	// Hazards are those of the target; see Check.
	Hazards Hazards
	// Ended tells that the target has ended; nil if it never does.
	Ended func() bool
	// Tap gets all that the collector reads and makes; nil: nobody. See Recorder.
	Tap Tap
	// Object is for tests: BPF programs with a fault; see bpf.Options.
	Object []byte
}

// Tap is told what a recording needs. Its methods are called one at a time, and
// every tick waits for them.
type Tap interface {
	// Begin comes once, before all else, with the snapshot before the first tick,
	// the numbers of the CPUs that are online and of those that are possible.
	Begin(s *Snapshot, online []int, possible int)
	// Sample is a record as it came from the kernel. raw is overwritten after the
	// call.
	Sample(raw []byte)
	// Tick is the snapshot that the samples since the last one led to.
	Tick(s *Snapshot)
}

// Collector owns everything that is in the kernel: programs, maps and links.
// They go when it is closed, or when the process ends in whatever way. Its
// methods may be called from several goroutines.
type Collector struct {
	objs    *bpf.Objects
	tier    attacher
	rings   []*ringbuf.Reader // of records and of calls
	host    Host
	config  Config
	closers chan struct{} // full: enough links are being closed at once
	log     *kernelLog    // nil: it may not be read
	looking time.Duration // how long a look at the processes may take

	surveying chan struct{} // full: one is under way

	latest atomic.Pointer[Snapshot]

	tick    sync.Mutex // one flush at a time; guards what follows
	dead    []*probe   // retired ones whose last numbers were sent
	decoder *decoder
	last    *Snapshot
	lastAt  uint64 // when last was, on the clock of monotonic; 0: there was none

	nextLook time.Time // when the calls in flight may be enumerated again
	looked   bool      // it was done for the last time: the kernel no longer tells whose they are

	mu        sync.Mutex      // guards what follows
	probes    []*probe        // in order of ID
	timedAt   map[spot]*probe // the last one that was to leave frames there
	nextID    ID
	slots     slots    // of all probes
	timed     slots    // of histograms
	started   uint64   // when the first probe stood, on the clock of monotonic; 0: none did
	retired   []*probe // whose links are closed
	final     bool     // nothing is placed any more
	stopped   uint64   // from when on no hit counts; 0: some may
	toPlace   Progress
	toLeave   Progress
	left      int // links that were closed since final
	entries   int // probes that have entries of threads in the kernel
	unwatched []unwatched
	witnesses []*witness
	settled   bool // nothing runs that changes a number: the snapshot that follows is the last

	placing sync.WaitGroup // calls of Place
	closing sync.WaitGroup // links that were taken away while others stand
	leaving sync.WaitGroup // and those at the end
	away    chan struct{}  // closed with the first of the latter
	first   sync.Once

	calibrating sync.Mutex      // one Calibrate at a time
	floors      map[Class]Floor // that were asked for; guarded by mu
}

// Snapshot is the newest one; never nil.
func (c *Collector) Snapshot() *Snapshot { return c.latest.Load() }

// Check finds what speaks against a request.
func (c *Collector) Check(r Request) Finding { return Check(r, c.config.Hazards) }

// Run ticks until ctx ends and calls each with every snapshot (nil: nobody). It
// wants a goroutine of its own, which takes its thread, at low priority, along
// when it ends.
func (c *Collector) Run(ctx context.Context, interval time.Duration, each func(*Snapshot)) error {
	runtime.LockOSThread() // not unlocked: the thread ends with its priority
	stepBack()
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		s, err := c.Collect()
		if err != nil {
			return err
		}
		if each != nil {
			each(s)
		}
	}
}

// Leaving is how far the kernel has come with taking probes away.
func (c *Collector) Leaving() Progress {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.toLeave
}

// Followed is how many processes the filter lets through now.
func (c *Collector) Followed() (int, error) {
	pids, err := c.objs.Admitted()
	return len(pids), err
}

// ended tells that nobody is left who could be hit: of those who were named, and of
// those whom these started.
func (c *Collector) ended() (bool, error) {
	if c.config.Ended == nil || !c.config.Ended() {
		return false, nil
	}
	for c.config.Filter.Follow {
		pid, found, err := c.objs.AnyAdmitted()
		if err != nil || !found {
			return err == nil, err
		}
		if symbols.Runs(pid) {
			return false, nil
		}
		if err := c.objs.Dismiss(pid); err != nil { // its hook was skipped, or comes now
			return false, err
		}
	}
	return true, nil
}

// Collect takes a snapshot now.
func (c *Collector) Collect() (*Snapshot, error) {
	c.tick.Lock()
	defer c.tick.Unlock()
	c.mu.Lock()
	retired, unwatched := c.retired, c.unwatched
	c.retired, c.unwatched = nil, nil
	// Those that were not stopped one by one go at the end, when nothing runs that
	// changes a number, and take with them what is known of the calls in flight.
	last := slices.ContainsFunc(retired, func(p *probe) bool { return p.state == Attached })
	c.mu.Unlock()
	if err := c.bury(c.dead); err != nil {
		return nil, err
	}
	c.dead = nil
	if err := c.flushThreads(); err != nil {
		return nil, err
	}
	if err := c.flush(); err != nil {
		return nil, err
	}
	if err := c.unwatch(unwatched); err != nil {
		return nil, err
	}
	gone, err := c.ended()
	if err != nil {
		return nil, err
	}
	s := c.snapshot(gone)
	if err := c.lookInside(s, last); err != nil {
		return nil, err
	}
	if c.config.Tap != nil {
		c.config.Tap.Tick(s)
	}
	c.last = s
	for _, p := range retired {
		if err := c.objs.Retire(p.slot); err != nil {
			return nil, err
		}
	}
	c.dead = retired
	c.latest.Store(s)
	return s, nil
}

// flush has the kernel write what changed, run by run, and reads it after each
// run: the ring holds one run's records and cannot overflow for long.
func (c *Collector) flush() error {
	c.mu.Lock()
	last := c.slots.used
	c.mu.Unlock()
	var next, stuck int
	for {
		reached, err := c.objs.Flush(next, last, flushBudget)
		if err != nil {
			return err
		}
		giveWay()
		done, err := c.drain()
		if err != nil {
			return err
		}
		if done {
			return nil
		}
		giveWay()
		if reached > next {
			stuck = 0
		} else if stuck++; stuck > maxStuck {
			return errors.New("the ring buffer is too small for the records of one probe")
		}
		next = reached
	}
}

// giveWay lets a thread run that waits for this CPU. Low priority alone does not:
// the scheduler lets a thread have its slice of some ms to the end (EEVDF, Linux
// 6.6). Of 8,192 cells flushed without it, a thread on the CPU woke 4 ms late.
func giveWay() { _, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// maxStuck runs without finishing a slot end the flush: a slot's records may
// need several turns of a very small ring, but not that many.
const maxStuck = 1000

// drain reads the rings empty and tells whether the tick's end was in it.
func (c *Collector) drain() (done bool, err error) {
	for _, ring := range c.rings {
		ended, err := c.drainRing(ring)
		if err != nil {
			return false, err
		}
		done = done || ended
	}
	return done, nil
}

func (c *Collector) drainRing(ring *ringbuf.Reader) (done bool, err error) {
	var raw ringbuf.Record
	ring.SetDeadline(time.Unix(0, 1)) // past: what is there, no waiting
	for {
		err := ring.ReadInto(&raw)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return done, nil
		}
		if err != nil {
			return done, fmt.Errorf("the ring buffer cannot be read: %w", err)
		}
		tick, err := c.take(raw.RawSample)
		if err != nil {
			return done, err
		}
		done = done || tick
	}
}

// take has a record decoded, and tells whether it ended a tick.
func (c *Collector) take(raw []byte) (tick bool, err error) {
	if c.config.Tap != nil {
		c.config.Tap.Sample(raw)
	}
	return c.decoder.read(raw)
}

// snapshot makes an immutable copy of all the numbers.
func (c *Collector) snapshot(gone bool) *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.decoder.at
	if c.stopped != 0 {
		at = min(at, c.stopped)
	}
	wall := wallAt(c.decoder.at)
	s := &Snapshot{
		Seq: c.last.Seq + 1, At: wall,
		Kernel: c.last.Kernel, CPUs: c.last.CPUs, Method: c.last.Method, InFlight: c.last.InFlight, Filter: c.last.Filter,
		Lost: c.decoder.losses(), HeldBack: c.decoder.heldBack, Unfollowed: c.decoder.unfollowed, Gone: gone, Final: c.settled,
		Calls: c.decoder.takeCalls(wall), Placing: c.toPlace, Leaving: c.toLeave,
	}
	if c.started != 0 {
		s.Elapsed = between(c.started, at)
	}
	s.Interval = s.Elapsed
	if c.lastAt != 0 {
		s.Interval = between(c.lastAt, at)
	}
	c.lastAt = at
	for _, p := range c.probes {
		st := Stats{Probe: &p.Probe, State: p.state, Note: p.note}
		if s.Gone && (st.State == Attached || st.State == Placing) {
			st.State = Gone
			st.Note = cmp.Or(st.Note, EndedNote)
		}
		if st.Floor.Class = p.class; c.floors[p.class].P50 > 0 {
			st.Floor = c.floors[p.class]
		}
		stood := p.placed != 0
		if stood {
			st.Placed, st.Halted = between(c.started, p.placed), between(c.started, p.halted)
		}
		c.decoder.measure(&st, stood, c.objs.CPUs, c.online)
		if p.watch.since != 0 {
			st.Threads = c.decoder.takeThreads(p.cookie, between(c.started, p.watch.since))
		}
		st.rates(c.last.Find(p.ID), st.count(s, stood))
		if w := p.witness; w != nil && stood && c.settled && w.end.settled {
			st.Audit = w.audit(st.Hits + st.Filtered)
		}
		s.Probes = append(s.Probes, st)
	}
	return s
}

func (c *Collector) online(cpu int) bool {
	_, found := slices.BinarySearch(c.host.CPUs, cpu)
	return found
}

// Finish stops every probe, waits until no program changes a number any more, and
// takes the last snapshot: its books are final. The probes keep the state that
// they had. Breakpoints of perf events may still be on their way out, see Leaving.
func (c *Collector) Finish() (*Snapshot, error) {
	left := c.halts()
	c.closing.Wait()
	switch {
	case left == 0:
	case c.tier.together(), c.config.Audit:
		c.leaving.Wait()
	default:
		// The kernel closes perf events one after the other, some 80 ms each (Linux
		// 6.18, event_mutex in perf_uprobe_destroy). The first has waited for every
		// program that was running (synchronize_rcu), and those that start since do
		// nothing.
		<-c.away
	}
	c.mu.Lock()
	c.settled = true
	c.mu.Unlock()
	return c.Collect()
}

// Halt takes every probe away for good, without waiting for it: no hit counts from
// now on.
func (c *Collector) Halt() { c.halts() }

// Quiet has no hit count from now on, and nothing be placed any more. Every breakpoint
// stays where it is, until Halt.
func (c *Collector) Quiet() {
	c.mu.Lock()
	c.final = true
	c.mu.Unlock()
	c.placing.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	var standing []*probe
	for _, p := range c.probes {
		if p.link != nil {
			standing = append(standing, p)
		}
	}
	c.silence(standing...)
	if c.stopped == 0 {
		c.stopped = monotonic()
		_ = c.objs.End(c.stopped) // else the calls that hang then look a little older
	}
}

// halts takes every probe away for good, and tells how many links are, or were,
// closed for it. First all are switched off.
func (c *Collector) halts() (left int) {
	c.Quiet()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.probes {
		c.halt(p)
	}
	return c.left
}

// Close takes every probe away, and everything else out of the kernel. Run must
// have returned.
func (c *Collector) Close() error {
	c.halts()
	c.closing.Wait()
	c.leaving.Wait()
	c.tick.Lock() // a flush may be under way
	defer c.tick.Unlock()
	var errs []error
	for _, w := range c.witnesses {
		w.close()
	}
	for _, r := range c.rings {
		errs = append(errs, r.Close())
	}
	return errors.Join(append(errs, c.log.close(), c.objs.Close())...)
}
