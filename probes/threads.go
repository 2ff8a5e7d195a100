package probes

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"uprobetop/probes/hist"
)

// Threads is what the threads did of a watched probe. The rows and the others
// together are what the probe counted since watching began; only the calls that
// were in flight then are returns without a hit.
type Threads struct {
	Since   time.Duration // Snapshot.Elapsed at which watching began
	Counted time.Duration // for how long hits counted since then
	Rows    []ThreadShare // by hits, the most first
	Others  ThreadShare   // all that found no room for a row; PID, TID and Comm say nothing
}

// ThreadShare is what one thread, or one process, did of a watched probe since
// watching began. A thread that has ended stays; another one that later has the
// same ids adds to its row.
//
// All threads outside of this PID namespace have one row together. They have no ids
// here: PID, TID and Threads are 0, and Comm is empty.
type ThreadShare struct {
	PID, TID int    // TID is 0 for a process
	Threads  int    // how many rows of threads it is the sum of: 1 for a thread
	Comm     string // of the thread, raw; of the main thread, for a process
	Hits     uint64
	Rate     float64 // hits/s over the snapshot's interval

	// Of a timed probe; else 0. For the others, and what contains them, Max may be
	// the bound of its bucket in Latency.
	Returned, Sum, Max uint64 // times in ns
	Latency            hist.Coarse

	before uint64 // hits at the snapshot before
}

// Outside tells that a row is of the threads outside of this PID namespace.
func (s *ThreadShare) Outside() bool { return s.PID == 0 }

// add puts what another thread did into a sum.
func (s *ThreadShare) add(o *ThreadShare) {
	s.Threads += o.Threads
	s.Hits += o.Hits
	s.Rate += o.Rate
	s.Returned += o.Returned
	s.Sum += o.Sum
	s.Max = max(s.Max, o.Max)
	s.Latency = s.Latency.Plus(o.Latency)
}

// Middle is the value in ns in the middle of the bounds between which the share q of
// the calls ends: from 16 ns on it is within 11 %. Without calls it is 0.
func (s *ThreadShare) Middle(q float64) float64 {
	low, high := s.Latency.Quantile(q, s.Max)
	return float64(low)/2 + float64(high)/2
}

// Total is the sum of rows.
func Total(rows []ThreadShare) (sum ThreadShare) {
	for i := range rows {
		sum.add(&rows[i])
	}
	return sum
}

// ByProcess is one row a process, the sum of those of its threads, by hits.
func ByProcess(rows []ThreadShare) []ThreadShare {
	var sums []ThreadShare
	at := map[int]int{} // by PID
	for i := range rows {
		r := &rows[i]
		k, known := at[r.PID]
		if !known {
			k = len(sums)
			at[r.PID] = k
			sums = append(sums, ThreadShare{PID: r.PID, Comm: r.Comm})
		}
		sums[k].add(r)
		if r.TID == r.PID {
			sums[k].Comm = r.Comm
		}
	}
	byHits(sums)
	return sums
}

func byHits(rows []ThreadShare) {
	slices.SortFunc(rows, func(a, b ThreadShare) int {
		return cmp.Or(cmp.Compare(b.Hits, a.Hits), cmp.Compare(a.PID, b.PID), cmp.Compare(a.TID, b.TID))
	})
}

// watch is what the collector knows of the watching of a probe. c.mu guards it.
type watch struct {
	on      bool
	since   uint64 // on the clock of monotonic; 0: there are no rows
	entries bool   // there are some in the kernel
	turns   int    // how often it was switched
}

// Watch has the hits and calls of a probe counted by thread as well, in
// Stats.Threads, or no more. Rows that go take a moment; a probe that is watched
// again before then goes on with them.
func (c *Collector) Watch(id ID, on bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.find(id)
	if p == nil {
		return fmt.Errorf("there is no probe %d", id)
	}
	stands := p.state == Attached && p.link != nil
	if on == p.watch.on || c.final || on && !stands && p.state != Placing {
		return nil
	}
	if !on {
		return c.endWatch(p)
	}
	if err := c.beginWatch(p); err != nil || !stands {
		return err
	}
	return c.settle(p, true)
}

// beginWatch makes room for the rows of a probe whose switch is set thereafter.
// c.mu is held.
func (c *Collector) beginWatch(p *probe) error {
	if err := c.objs.Watch(p.cookie); err != nil {
		return err
	}
	if !p.watch.entries {
		c.entries++
	}
	p.watch.on, p.watch.entries = true, true
	p.watch.turns++
	if p.watch.since == 0 {
		p.watch.since = monotonic()
	}
	return nil
}

// unwatched is a probe in whose entries nobody counts any more.
type unwatched struct {
	*probe
	turns int // watch.turns then: else somebody does again
}

// endWatch ends the watching of a probe and has its rows taken away: not before every
// program has ended that found it watched. c.mu is held.
func (c *Collector) endWatch(p *probe) error {
	p.watch.on = false
	p.watch.turns++
	ended := unwatched{p, p.watch.turns}
	switch {
	case !p.watch.entries, p.state == Placing: // nobody counts, or does so yet
		c.unwatched = append(c.unwatched, ended)
	case p.link != nil:
		if err := c.settle(p, p.state == Attached); err != nil {
			return err
		}
		c.closing.Go(func() {
			// Without that the rows stay until the probe is taken away.
			if c.objs.Quiesce() != nil {
				return
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.unwatched = append(c.unwatched, ended)
		})
	}
	// Else its link is being closed, and bury takes the entries away.
	return nil
}

// unwatch takes the rows of these probes away, all of whose entries have been read
// since nobody counts in them. c.tick is held.
func (c *Collector) unwatch(all []unwatched) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, u := range all {
		if u.turns != u.watch.turns {
			continue
		}
		if err := c.dropEntries(u.probe); err != nil {
			return err
		}
		c.forgetRows(u.probe)
	}
	return nil
}

func (c *Collector) forgetRows(p *probe) {
	p.watch.since = 0
	c.decoder.forgetThreads(p.cookie)
}

// dropEntries takes the entries of a probe out of the kernel, which no program
// uses any more. Every one of them was read. c.tick and c.mu are held.
func (c *Collector) dropEntries(p *probe) error {
	if !p.watch.entries {
		return nil
	}
	p.watch.entries = false
	c.entries--
	return c.objs.Unwatch(p.cookie, c.decoder.threadsOf(p.cookie))
}

// flushThreads has the kernel write what threads did since the last time, and reads
// it.
func (c *Collector) flushThreads() error {
	c.mu.Lock()
	entries := c.entries
	c.mu.Unlock()
	for more := entries > 0; more; {
		var err error
		if more, err = c.objs.FlushShares(c.last.Seq+1, flushBudget); err != nil {
			return err
		}
		giveWay()
		if _, err := c.drain(); err != nil {
			return err
		}
	}
	return nil
}
