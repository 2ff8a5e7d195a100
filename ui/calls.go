package ui

import (
	"cmp"
	"slices"
	"time"

	"uprobetop/probes"
)

// callLog is what was reported of one probe, call by call, since its threshold
// was set or the numbers were cleared.
type callLog struct {
	least    time.Duration // the threshold; the collector takes a while to follow
	since    time.Time     // from when on it holds
	newest   []probes.Call // ascending in time
	slowest  []probes.Call // descending in latency
	reported uint64        // all of them, kept or not
	base     withheld
}

// withheld is what was to be reported of all probes and was not, as counted by
// the collector.
type withheld struct{ held, lost, busy uint64 }

func withheldBy(s *probes.Snapshot) withheld { return withheld{s.HeldBack, s.Lost.Calls, s.Lost.Busy} }

// ringWas says why calls were lost.
func ringWas(lost, busy uint64) string {
	switch busy {
	case 0:
		return "full"
	case lost:
		return "locked for too long"
	}
	return "full, or locked for too long"
}

// How many calls of a probe are kept: more than anybody scrolls through.
const (
	keepNewest  = 500
	keepSlowest = 100
)

func (l *callLog) add(c probes.Call) {
	if c.Latency < l.least {
		return
	}
	l.reported++
	if len(l.newest) == 2*keepNewest {
		l.newest = slices.Delete(l.newest, 0, keepNewest)
	}
	l.newest = append(l.newest, c)
	i, _ := slices.BinarySearchFunc(l.slowest, c, slower)
	if i == keepSlowest {
		return
	}
	if len(l.slowest) == keepSlowest {
		l.slowest = l.slowest[:keepSlowest-1]
	}
	l.slowest = slices.Insert(l.slowest, i, c)
}

// slower orders calls by latency, the slowest first; of two the newer.
func slower(a, b probes.Call) int {
	return cmp.Or(cmp.Compare(b.Latency, a.Latency), cmp.Compare(b.Start, a.Start))
}

// inOrder are the calls to show, the newest or the slowest first.
func (l *callLog) inOrder(bySlowest bool) []probes.Call {
	if l == nil {
		return nil
	}
	if bySlowest {
		return l.slowest
	}
	out := slices.Clone(l.newest[max(len(l.newest)-keepNewest, 0):])
	slices.Reverse(out)
	return out
}

// over sets the threshold: it drops the calls below, and begins to count anew.
func (l *callLog) over(threshold time.Duration, base withheld, at time.Time) {
	if threshold < l.least {
		l.since = at // what was between the two before is not known
	}
	below := func(c probes.Call) bool { return c.Latency < threshold }
	l.newest = slices.DeleteFunc(l.newest, below)
	l.slowest = slices.DeleteFunc(l.slowest, below)
	l.least, l.reported, l.base = threshold, uint64(len(l.newest)), base
}

func (l *callLog) clone() *callLog {
	return &callLog{l.least, l.since, slices.Clone(l.newest), slices.Clone(l.slowest), l.reported, l.base}
}

// callsOf is the log of a probe, made if there is none: it then begins to count
// at a snapshot.
func (h *history) callsOf(id probes.ID, s *probes.Snapshot) *callLog {
	if h.calls == nil {
		h.calls = map[probes.ID]*callLog{}
	}
	l := h.calls[id]
	if l == nil {
		l = &callLog{since: s.At, base: withheldBy(s)}
		h.calls[id] = l
	}
	return l
}

// hear takes the calls of a snapshot; before is the one that was seen last.
// Calls of snapshots between the two were never seen.
func (h *history) hear(s, before *probes.Snapshot) {
	if before.Seq > 0 && s.Seq > before.Seq+1 && len(h.calls) > 0 {
		h.skipped += s.Seq - before.Seq - 1
	}
	for _, c := range s.Calls {
		h.callsOf(c.Probe, before).add(c)
	}
}

// forget drops the calls of probes that are in no snapshot any more.
func (h *history) forget(s *probes.Snapshot) {
	for id := range h.calls {
		if s.Find(id) == nil {
			delete(h.calls, id)
		}
	}
}
