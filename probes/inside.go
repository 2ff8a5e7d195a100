package probes

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"uprobetop/bpf"
)

// Inside is who was inside the timed functions at one instant: the calls that had
// not returned.
type Inside struct {
	At    time.Time // when they were enumerated
	Total uint64    // how many there were
	// Calls are the oldest of each probe, at most 250, the oldest first. At is when a
	// call was looked at, and Latency how old it was; CPU and Return say nothing.
	Calls []Call
}

// Of are the listed calls of one probe, the oldest first.
func (i *Inside) Of(id ID) (calls []Call) {
	if i == nil {
		return nil
	}
	for _, c := range i.Calls {
		if c.Probe == id {
			calls = append(calls, c)
		}
	}
	return calls
}

// Unlisted is how many calls in flight of a probe Inside does not have, since their
// threads are outside of this PID namespace. While calls come and go it can be off by
// those that did so between counting and listing.
func (s *Snapshot) Unlisted(st *Stats) int {
	if !s.Container || st.State == Stopped {
		return 0
	}
	of := s.Inside.Of(st.ID)
	if len(of) == keepInside {
		return 0
	}
	return max(int(st.InFlight)-len(of), 0)
}

// Hangs tells whether a call in flight is older than any that has returned.
func (s *Stats) Hangs() bool { return s.Latency != nil && s.Oldest > time.Duration(s.Latency.Max) }

// keepInside is how many calls in flight of a probe are listed. They are of each,
// so that many who wait in one function do not hide the few that hang in another.
const keepInside = 250

// enumeration is what the records of one told.
type enumeration struct {
	at    uint64 // CLOCK_MONOTONIC at its end, ns; 0: there was none
	total uint64
	of    map[uint64][]bpf.Call // by cookie: the oldest
	kept  int                   // in of
}

func (e *enumeration) add(c *bpf.Call) {
	if e.of == nil {
		e.of = map[uint64][]bpf.Call{}
	}
	calls := append(e.of[c.Cookie], *c)
	e.kept++
	if n := len(calls); n == 2*keepInside {
		calls = oldest(calls)
		e.kept -= n - len(calls)
	}
	e.of[c.Cookie] = calls
	e.total++
}

// oldest sorts calls and keeps those that are to be listed.
func oldest(calls []bpf.Call) []bpf.Call {
	slices.SortStableFunc(calls, func(a, b bpf.Call) int { return cmp.Compare(a.Start, b.Start) })
	return calls[:min(len(calls), keepInside)]
}

// enumerated writes into a snapshot who is inside, as far as that is known. An
// enumeration from before the tick says nothing of a probe that has no calls in
// flight any more, and none of one that was stopped: its calls return unseen.
func (d *decoder) enumerated(s *Snapshot) {
	e := &d.inside
	if e.at == 0 {
		return
	}
	now := max(d.at, e.at)
	inside := &Inside{At: s.At.Add(-time.Duration(now - e.at)), Total: e.total}
	for i := range s.Probes {
		st := &s.Probes[i]
		if st.Latency == nil || st.State == Stopped || st.InFlight == 0 && e.at < d.at {
			continue
		}
		calls := oldest(e.of[st.cookie])
		for j := range calls {
			c := callOf(&calls[j])
			c.Probe, c.At = st.ID, s.At.Add(-time.Duration(int64(now-calls[j].At)))
			if j == 0 {
				st.Oldest = max(c.Latency, 1)
			}
			inside.Calls = append(inside.Calls, c)
		}
	}
	slices.SortStableFunc(inside.Calls, func(a, b Call) int { return cmp.Compare(a.Start, b.Start) })
	if len(inside.Calls) > 0 || e.at > d.at {
		s.Inside = inside
	}
}

// lookShare is what part of a CPU enumerating may take: one in so many.
const lookShare = 50

// lookInside lists the calls in flight, if there are any. It takes the longer the
// more threads the host has, and is done the less often then: not at every tick. last
// says that it cannot be done any more after this one.
func (c *Collector) lookInside(s *Snapshot, last bool) error {
	hasCalls := func(st Stats) bool { return st.InFlight != 0 && st.State != Stopped }
	due := !c.looked && slices.ContainsFunc(s.Probes, hasCalls)
	if began := time.Now(); due && (s.Final || last || began.After(c.nextLook)) {
		if err := c.enumerate(); err != nil {
			return err
		}
		c.nextLook = time.Now().Add((lookShare - 1) * time.Since(began))
	}
	c.looked = c.looked || last
	c.decoder.enumerated(s)
	s.Container = InContainer()
	return nil
}

func (c *Collector) enumerate() error {
	file, err := c.objs.Inside()
	if err != nil {
		return err
	}
	defer file.Close()
	// The kernel's own buffer of such a file is as large.
	for r, raw := bufio.NewReaderSize(file, 32<<10), make([]byte, callBytes); ; {
		switch _, err := io.ReadFull(r, raw); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("the calls in flight cannot be enumerated: %w", err)
		}
		if _, err := c.take(raw); err != nil {
			return err
		}
	}
}
