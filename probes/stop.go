package probes

import (
	"errors"
	"fmt"
	"slices"
)

// atOnce is how many links are taken away at once: each takes a thread, and nearly
// all of its time is waiting for the kernel's grace periods.
const atOnce = 64

// close takes the breakpoints away: entries first, so that the returns of
// calls just begun are still seen. It waits for programs that are running.
func (l *placement) close() error {
	var err error
	if l.enter != nil {
		err = l.enter.Close()
	}
	if l.leave != nil {
		err = errors.Join(err, l.leave.Close())
	}
	return err
}

// Stop ends the counting of a probe at once. Its breakpoint is taken away in the
// background, together with those that were placed by the same call of Place:
// once all of them are stopped. Its numbers stay in the snapshots.
func (c *Collector) Stop(id ID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stop(id)
}

func (c *Collector) stop(id ID) error {
	p := c.find(id)
	if p == nil {
		return fmt.Errorf("there is no probe %d", id)
	}
	if p.state == Attached || p.state == Placing {
		p.state = Stopped
	}
	c.halt(p)
	return nil
}

// Remove stops a probe and drops its row from the snapshots.
func (c *Collector) Remove(id ID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.find(id)
	if p != nil && p.watch.on && !c.final {
		if err := c.endWatch(p); err != nil {
			return err
		}
	}
	if p != nil && !c.final {
		c.dismissWitness(p)
	}
	if err := c.stop(id); err != nil {
		return err
	}
	p.gone = true
	c.probes = slices.DeleteFunc(c.probes, func(p *probe) bool { return p.gone })
	return nil
}

func (c *Collector) find(id ID) *probe {
	i := slices.IndexFunc(c.probes, func(p *probe) bool { return p.ID == id })
	if i < 0 {
		return nil
	}
	return c.probes[i]
}

// silence ends the counting of probes, each at an instant that is known. c.mu is held.
func (c *Collector) silence(ps ...*probe) {
	prepare(ps, endOf)
	for _, p := range ps {
		off := func() error { return c.settle(p, false) }
		if p.halted == 0 {
			_ = p.witness.ending(off)
			p.halted = monotonic()
		} else {
			_ = off()
		}
	}
}

// halt switches a probe off and closes its links if no other probe uses them.
// c.mu is held. What cannot be closed here ends with the process.
func (c *Collector) halt(p *probe) {
	l := p.link
	if l == nil {
		return
	}
	p.link = nil
	c.silence(p)
	if l.inUse--; l.inUse > 0 {
		return
	}
	c.toLeave.Of += len(l.probes)
	final, group := c.final, &c.closing
	if final {
		c.left++
		group = &c.leaving
	}
	group.Go(func() {
		c.closers <- struct{}{}
		_ = l.close()
		<-c.closers
		c.progress(&c.toLeave, 0, len(l.probes))
		if final {
			c.first.Do(func() { close(c.away) })
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, p := range l.probes {
			p.witness.later(endOf)
		}
		c.retired = append(c.retired, l.probes...)
	})
}

// bury frees the slots of probes that were retired a tick ago: no program that
// began before then still runs. c.tick is held.
func (c *Collector) bury(dead []*probe) error {
	for _, p := range dead {
		if err := c.objs.Zero(p.slot, p.hist); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range dead {
		c.slots.give(p.slot)
		if p.hist >= 0 {
			c.timed.give(p.hist)
		}
		if err := c.dropEntries(p); err != nil {
			return err
		}
		if !p.watch.on {
			c.forgetRows(p)
		}
		if p.gone {
			c.decoder.forget(p.cookie)
		}
	}
	return nil
}
