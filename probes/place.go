package probes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"uprobetop/bpf"
	"uprobetop/symbols"
)

// probe is a Probe with what the collector has to know of it.
type probe struct {
	Probe
	state   State
	note    string
	placed  uint64 // from when on its hits count, on the clock of monotonic; 0: they never did
	halted  uint64 // and from when on they do not; 0: they do
	slot    int
	hist    int // -1: no histogram
	slow    time.Duration
	class   Class      // of a timed one
	link    *placement // nil: it has none, or none any more
	witness *witness   // nil: it is not audited
	gone    bool       // its row was taken away
	watch   watch
}

// placement is the links that one call of the attach tier made, for one probe or
// many. They close when the last of these is taken away.
type placement struct {
	enter, leave io.Closer // nil: there is none
	probes       []*probe
	inUse        int
}

// slots hands out the numbers 0…n-1: those never used first, then the one that
// has been free for the longest time.
type slots struct {
	n, used int
	free    []int
}

func (s *slots) take() (i int, ok bool) {
	if s.used < s.n {
		s.used++
		return s.used - 1, true
	}
	if len(s.free) == 0 {
		return 0, false
	}
	i = s.free[0]
	s.free = s.free[1:]
	return i, true
}

func (s *slots) give(i int) { s.free = append(s.free, i) }

// Place puts probes on functions and blocks while the kernel works, which can
// take seconds where a process that maps the file is busy with its memory map.
// A probe that is refused or failed is in the snapshots with its State and Note;
// the others stand. An error means that not all could be asked for: there is no
// room, ctx ended, or the numbers are final. Those listed by then are Failed.
func (c *Collector) Place(ctx context.Context, requests ...Request) error {
	c.mu.Lock()
	if c.final {
		c.mu.Unlock()
		return errors.New("nothing is placed any more: the numbers are final")
	}
	c.placing.Add(1)
	c.mu.Unlock()
	defer c.placing.Done()
	byFile := map[*symbols.File][]*probe{}
	var files []*symbols.File
	var failed error
	for _, r := range requests {
		p, err := c.enlist(r)
		if err != nil {
			failed = err
			break
		}
		if p == nil {
			continue
		}
		if byFile[r.File] == nil {
			files = append(files, r.File)
		}
		byFile[r.File] = append(byFile[r.File], p)
	}
	c.progress(&c.toPlace, len(slices.Concat(slices.Collect(maps.Values(byFile))...)), 0)
	if c.config.Audit && failed == nil {
		failed = c.auditable(slices.Concat(slices.Collect(maps.Values(byFile))...))
	}
	for _, f := range files {
		if failed == nil {
			failed = ctx.Err()
		}
		if failed != nil {
			c.fail(byFile[f], failed)
			continue
		}
		c.attachAll(ctx, f, byFile[f])
		if c.config.Audit {
			failed = c.audit(f, byFile[f])
		}
	}
	c.begin(files, byFile, failed)
	return failed
}

// progress adds to what is to be done and to what is done of it; once both are
// the same it begins anew.
func (c *Collector) progress(p *Progress, of, done int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.Of += of
	if p.Done += done; p.Done >= p.Of {
		*p = Progress{}
	}
}

// fail gives up probes that have no links.
func (c *Collector) fail(ps []*probe, why error) {
	c.progress(&c.toPlace, 0, len(ps))
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range ps {
		if p.state == Placing {
			p.state, p.note = Failed, why.Error()
		}
	}
	c.retired = append(c.retired, ps...)
}

// settle says what a probe's hits do from now on: nothing once they ceased to count.
// c.mu is held.
func (c *Collector) settle(p *probe, on bool) error {
	on = on && p.halted == 0
	slow := p.slow
	if p.Kind != Return {
		slow = NoCalls
	}
	return c.objs.Switch(p.cookie, bpf.Switch{On: on, Timed: p.Kind == Return, Hist: p.hist, Slow: slow, Ended: c.final && !on, Watched: p.watch.on})
}

// Report has the calls of a timed probe that take at least this long come one by
// one, in Snapshot.Calls; 0: every call, NoCalls: none.
func (c *Collector) Report(id ID, slower time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.find(id)
	if p == nil {
		return fmt.Errorf("there is no probe %d", id)
	}
	p.slow = slower
	if p.state != Attached || p.link == nil {
		return nil // it is told when it stands, if it ever does
	}
	return c.settle(p, true)
}

// enlist gives a request its ID and slots. The result is nil if there is nothing
// to place: it is refused, and listed as such.
func (c *Collector) enlist(r Request) (*probe, error) {
	finding := c.Check(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	p := &probe{Probe: Probe{ID: c.nextID, Kind: r.Kind, File: r.File, Function: r.Function, Points: r.File.Points(r.Function)}, slot: -1, hist: -1, slow: c.config.slow()}
	if finding.Verdict == Refuses || finding.Verdict == Asks && !r.Accepted {
		p.state, p.note = Refused, finding.String()
		c.list(p)
		return nil, nil
	}
	if r.Kind == Return && c.timedBefore(p) {
		p.state, p.note = Refused, "its latency is measured already"
		c.list(p)
		return nil, nil
	}
	if err := c.reserve(p); err != nil {
		return nil, err
	}
	if !r.File.Go && r.File.ComesBack(r.Function) {
		p.Points = slices.Clone(p.Points)
		p.Points[0].Again = true // of further variants the file knows it
	}
	if p.HitsAgain() {
		p.note = AgainNote
	}
	if r.Kind == USDT {
		p.note = UnmarkedNote(r.File, r.Function)
	}
	if r.Kind == Return {
		p.class = ClassOf(r.File, r.Function)
		for _, at := range p.Points {
			c.timedAt[spotOf(p.File, at)] = p
		}
	}
	c.list(p)
	return p, nil
}

// AgainNote marks probes of which a hit may be no call: a loop goes back to the
// function's first instruction, or it is a Go function whose stack check is not
// understood, and Go begins a function again when its stack grows.
const AgainNote = "hits can be more than calls: the function can come back to the instruction that is probed"

// HitsAgain tells whether one call may hit the probe more than once.
func (p *Probe) HitsAgain() bool {
	return slices.ContainsFunc(p.Points, func(at symbols.Point) bool { return at.Again })
}

// site is where a function is, by whatever name; a usdt probe is by its own.
type site struct {
	dev, ino uint64
	offset   symbols.Offset
	name     string // of what has no code in the file
}

func siteOf(f *symbols.File, fn *symbols.Function) site {
	if fn.Place >= symbols.NoCode {
		return site{f.Dev, f.Ino, 0, fn.Symbol.String()}
	}
	return site{f.Dev, f.Ino, fn.Offset, ""}
}

// spot is where a breakpoint stands.
type spot struct {
	dev, ino uint64
	offset   symbols.Offset
}

func spotOf(f *symbols.File, at symbols.Point) spot { return spot{f.Dev, f.Ino, at.Offset} }

// timedBefore tells whether a probe already leaves frames at one of these points: the
// frames of two would be mistaken for each other.
func (c *Collector) timedBefore(p *probe) bool {
	return slices.ContainsFunc(p.Points, func(at symbols.Point) bool {
		old := c.timedAt[spotOf(p.File, at)]
		return old != nil && (old.state == Attached || old.state == Placing)
	})
}

// reserve finds slots for a probe and makes them its own, switched off. Slots
// that are free are zero.
func (c *Collector) reserve(p *probe) error {
	var ok bool
	if p.slot, ok = c.slots.take(); !ok {
		return fmt.Errorf("there is room for %d probes: take some away, or start with a larger --max-probes", c.slots.n)
	}
	if p.Kind == Return {
		if p.hist, ok = c.timed.take(); !ok {
			c.slots.give(p.slot)
			return fmt.Errorf("there is room for %d return probes: take some away", c.timed.n)
		}
	}
	p.cookie = cookieOf(p.ID, p.slot)
	if c.config.Watch {
		if err := c.beginWatch(p); err != nil {
			return err
		}
	}
	return c.settle(p, false)
}

func (c *Collector) list(p *probe) {
	c.nextID++
	c.probes = append(c.probes, p)
}

// attachAll makes the links for probes of one file, if it can be one for all;
// where the kernel refuses, it halves until the points that it refuses stand
// alone. Where every point has a link of its own they are made side by side.
func (c *Collector) attachAll(ctx context.Context, f *symbols.File, ps []*probe) {
	if err := ctx.Err(); err != nil {
		c.fail(ps, err)
		return
	}
	if !c.tier.together() && len(ps) > 1 {
		var g errgroup.Group
		g.SetLimit(8) // each has some files open meanwhile
		for i := range ps {
			g.Go(func() error { c.attachAll(ctx, f, ps[i:i+1]); return nil })
		}
		_ = g.Wait()
		return
	}
	l, err := c.attach(f, ps)
	switch {
	case err == nil:
		c.progress(&c.toPlace, 0, len(ps))
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, p := range ps {
			p.link = l
		}
	case len(ps) > 1 && !errors.Is(err, errEnded):
		c.attachAll(ctx, f, ps[:len(ps)/2])
		c.attachAll(ctx, f, ps[len(ps)/2:])
	default:
		c.fail(ps, err)
	}
}

// begin lets the hits of everything that was attached count, from one moment on. If
// something failed it takes all of it away instead.
func (c *Collector) begin(files []*symbols.File, byFile map[*symbols.File][]*probe, failed error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Concat(slices.Collect(maps.Values(byFile))...)
	if failed != nil {
		c.giveUp(all, failed)
		return
	}
	prepare(all, startOf)
	defer conclude(all)
	now := monotonic()
	for _, f := range files {
		for _, p := range byFile[f] {
			switch {
			case p.link == nil:
			case p.state != Placing || c.final: // it was stopped while the kernel worked
				c.dismissWitness(p)
				c.halt(p)
			default:
				p.state, p.placed = Attached, now
				if p.watch.on {
					p.watch.since = now
				}
				if c.started == 0 {
					c.started = now
				}
				if err := p.witness.starting(func() error { return c.settle(p, true) }); err != nil {
					p.state, p.note = Failed, err.Error()
					c.halt(p)
				}
			}
		}
	}
}

// giveUp takes the links of probes away that never counted. c.mu is held.
func (c *Collector) giveUp(ps []*probe, why error) {
	for _, p := range ps {
		if p.state == Placing {
			p.state, p.note = Failed, why.Error()
		}
		c.dismissWitness(p)
		c.halt(p)
	}
}

// attach makes the links: returns before entries, so that no counted hit is
// without its return.
func (c *Collector) attach(f *symbols.File, ps []*probe) (*placement, error) {
	session := c.objs.Session != nil // runs at entry, too
	var entries, timed []point
	for _, p := range ps {
		for _, at := range p.Points {
			pt := point{Point: at, cookie: p.cookie}
			if p.Kind == Return {
				timed = append(timed, pt)
			}
			if p.Kind != Return || !session {
				entries = append(entries, pt)
			}
		}
	}
	l := &placement{probes: ps, inUse: len(ps)}
	var err error
	if len(timed) > 0 {
		prog, at := c.objs.Leave, atReturn
		if session {
			prog, at = c.objs.Session, atBoth
		}
		if l.leave, err = c.tier.attach(prog, at, f, timed); err != nil {
			return nil, err
		}
	}
	if len(entries) == 0 {
		return l, nil
	}
	if l.enter, err = c.tier.attach(c.objs.Enter, atEntry, f, entries); err != nil {
		if l.leave != nil {
			err = errors.Join(err, l.leave.Close())
		}
		return nil, err
	}
	return l, nil
}
