package probes

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"uprobetop/symbols"
)

// Audit is what an independent count of a probe's points says, of which the kernel
// keeps one beside ours: perf events that count and run no program. All that reached
// the points while hits counted, Hits + Filtered, are at least Min and at most Max.
//
// Both are the same, and the check exact, if nobody hit the points while counting
// began and ended: as under a command, which is held until then. Else the two counts
// do not begin and end at the same instant, and each thread may be in the middle of a
// hit that one of them has and the other has not.
//
// A thread that the scheduler moves to another CPU in the middle of a hit may be counted
// once too often or not at all: there is one event for each CPU, and the kernel comes to
// one after the other.
type Audit struct {
	Min, Max uint64
	Agrees   bool
	Partly   bool // the kernel did not count all the time: the rest says nothing
}

// witness is the other count of one probe. What it reads only grows.
type witness struct {
	events []*os.File

	start, end border
	another    func() (*os.File, error) // one more event at its first point
	partly     bool                     // an event was not counting all the time
	err        error                    // of the first read that failed
	threads    uint64                   // of the host: who may be in the middle of a hit
}

// border is what a witness read around the instant at which hits began or ceased to
// count: some time before it, just before, just after, and some time after it.
type border struct {
	long, before, after, later uint64
	prepared, settled          bool // long, and later, were read
}

// most perf events of an audit: the kernel takes about 80 ms to take one away, one
// after the other (Linux 6.18).
const mostWitnesses = 1024

// auditable tells whether so many points can be audited.
func (c *Collector) auditable(ps []*probe) error {
	points, cpus := 0, len(c.host.CPUs)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.witnesses {
		points += len(w.events) / cpus
	}
	for _, p := range ps {
		points += len(p.Points)
	}
	if most := mostWitnesses / cpus; points > most {
		return fmt.Errorf("an audit takes an open file for each point and CPU: with %d CPUs it has room for %d points, and %d are asked for, so name fewer functions",
			cpus, most, points)
	}
	return nil
}

// audit gives probes that are attached their witnesses.
func (c *Collector) audit(f *symbols.File, ps []*probe) error {
	for _, p := range ps {
		if p.link == nil {
			continue
		}
		w := &witness{another: func() (*os.File, error) { return countOn(c.host.CPUs[0], f, p.Points[0]) }}
		for _, at := range p.Points {
			for _, cpu := range c.host.CPUs {
				event, err := countOn(cpu, f, at)
				if err != nil {
					w.close()
					return err
				}
				w.events = append(w.events, event)
			}
		}
		c.mu.Lock()
		p.witness = w
		c.witnesses = append(c.witnesses, w)
		c.mu.Unlock()
	}
	return nil
}

// dismissWitness lets go of the witness of a probe of which nobody will ask. c.mu is
// held.
func (c *Collector) dismissWitness(p *probe) {
	w := p.witness
	if w == nil {
		return
	}
	p.witness = nil
	c.witnesses = slices.DeleteFunc(c.witnesses, func(other *witness) bool { return other == w })
	c.closing.Go(w.close) // the kernel takes its time
}

// countOn counts hits of a point on one CPU, by whomever. (An event of a thread could
// be had by its children, too: but the kernel makes theirs from the same attributes,
// whose path is an address in this process.)
func countOn(cpu int, f *symbols.File, at symbols.Point) (*os.File, error) {
	text, err := os.ReadFile("/sys/bus/event_source/devices/uprobe/type")
	if err != nil {
		return nil, &sentence{"this kernel has no perf events for uprobes (CONFIG_UPROBE_EVENTS), with which an audit counts: leave out --audit", err}
	}
	kind, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
	if err != nil {
		return nil, fmt.Errorf("the kernel does not tell the type of its perf events for uprobes: %w", err)
	}
	if at.Semaphore>>32 != 0 {
		return nil, errors.New("a semaphore behind the first 4 GiB of a file cannot be audited: leave out --audit")
	}
	path, err := unix.BytePtrFromString(f.Open)
	if err != nil {
		return nil, err
	}
	var pinner runtime.Pinner // the kernel gets its address as a number
	pinner.Pin(path)
	defer pinner.Unpin()
	attr := unix.PerfEventAttr{
		Type: uint32(kind), Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Config: uint64(at.Semaphore) << 32, Ext1: uint64(uintptr(unsafe.Pointer(path))), Ext2: uint64(at.Offset),
		Read_format: unix.PERF_FORMAT_TOTAL_TIME_ENABLED | unix.PERF_FORMAT_TOTAL_TIME_RUNNING,
	}
	fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, &sentence{"an audit counts on whole CPUs, which needs root or CAP_SYS_ADMIN: leave out --audit", err}
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		return nil, &sentence{"too many files are open: an audit takes one for each point and CPU, see ulimit -n", err}
	case err != nil:
		return nil, placeError(err, f, []point{{Point: at}})
	}
	return os.NewFile(uintptr(fd), "perf-event"), nil
}

// read is how many hits there were since the witness came.
func (w *witness) read() (n uint64) {
	for _, e := range w.events {
		var b [24]byte
		if _, err := e.Read(b[:]); err != nil {
			w.err = errors.Join(w.err, err)
			continue
		}
		n += binary.NativeEndian.Uint64(b[:])
		enabled, running := binary.NativeEndian.Uint64(b[8:]), binary.NativeEndian.Uint64(b[16:])
		w.partly = w.partly || enabled != running
	}
	return n
}

// starting reads around the instant at which a probe is switched on, ending off. Of
// no witness they do just that.
func (w *witness) starting(on func() error) error {
	if w == nil {
		return on()
	}
	return w.around(&w.start, on)
}

func (w *witness) ending(off func() error) error {
	if w == nil {
		return off()
	}
	return w.around(&w.end, off)
}

// prepare reads some time before probes are switched, and lets that time pass.
func prepare(ps []*probe, side func(*witness) *border) {
	var last *witness
	for _, p := range ps {
		if w := p.witness; w != nil && !side(w).prepared {
			side(w).long, side(w).prepared = w.read(), true
			last = w
		}
	}
	last.wait()
}

// conclude lets time pass after probes were switched on, and reads.
func conclude(ps []*probe) {
	if i := slices.IndexFunc(ps, func(p *probe) bool { return p.witness != nil }); i >= 0 {
		ps[i].witness.wait()
	}
	for _, p := range ps {
		p.witness.later(startOf)
	}
}

// wait waits until every thread that is in the middle of a hit is through with it. The
// kernel does as it takes an event away, before Linux 6.12 for threads at that point.
func (w *witness) wait() {
	if w == nil {
		return
	}
	if event, err := w.another(); err == nil {
		_ = event.Close()
	}
}

func startOf(w *witness) *border { return &w.start }
func endOf(w *witness) *border   { return &w.end }

func (w *witness) around(b *border, turn func() error) error {
	w.threads = max(w.threads, threadsOfHost())
	b.before = w.read()
	err := turn()
	b.after = w.read()
	return err
}

// later reads some time after: at the end, when no program of ours runs any more.
func (w *witness) later(side func(*witness) *border) {
	if w != nil && !side(w).settled {
		side(w).later, side(w).settled = w.read(), true
	}
}

// audit holds what we saw against what the witness did. A thread in the middle of a
// hit at a border is one of the host's, and the witness sees the hit shortly before
// or after.
func (w *witness) audit(seen uint64) *Audit {
	middle := func(from, to uint64) uint64 { return min(w.threads, to-from) }
	s, e := &w.start, &w.end
	a := &Audit{Max: e.after - s.before + middle(s.long, s.before) + middle(e.after, e.later), Partly: w.partly || w.err != nil}
	if less := s.after + middle(s.after, s.later) + middle(e.long, e.before); e.before > less {
		a.Min = e.before - less
	}
	a.Agrees = a.Min <= seen && seen <= a.Max
	return a
}

func (w *witness) close() {
	for _, e := range w.events {
		_ = e.Close()
	}
}

// threadsOfHost is how many threads there are on the host: the fourth number of
// /proc/loadavg, after the slash.
func threadsOfHost() uint64 {
	text, _ := os.ReadFile("/proc/loadavg")
	if field := strings.Fields(string(text)); len(field) > 3 {
		_, all, _ := strings.Cut(field[3], "/")
		if n, err := strconv.ParseUint(all, 10, 32); err == nil {
			return n
		}
	}
	return 1 << 22 // the most that the kernel can have (PID_MAX_LIMIT)
}
