package probes

import (
	"maps"
	"slices"
	"time"

	"uprobetop/bpf"
	"uprobetop/probes/hist"
)

// share is one entry of a thread as the last record had it.
type share struct {
	ThreadShare
	told uint64 // hits in the last snapshot
}

// shareOf is what the record of an entry says.
func shareOf(r *bpf.ShareRecord) ThreadShare {
	s := ThreadShare{
		PID: int(r.Tgid), TID: int(r.Tid), Threads: 1, Comm: text(r.Share.Comm[:]), Hits: r.Share.Hits,
		Returned: r.Share.Returned, Sum: r.Share.SumNs,
	}
	if s.Outside() {
		s.Threads, s.Comm = 0, ""
	}
	for i, n := range &r.Share.Count {
		if n != 0 {
			s.Latency = append(s.Latency, hist.CoarseBucket{Index: i, Count: n})
		}
	}
	s.Max = s.Latency.Largest(r.Share.MaxNs)
	return s
}

// share takes one record of a thread.
func (d *decoder) share(r *bpf.ShareRecord) {
	of := bpf.Thread{TGID: r.Tgid, TID: r.Tid}
	n := d.numbers(r.Cookie)
	old, known := n.threads[of]
	if !known {
		d.shares++
	}
	if n.threads == nil {
		n.threads = map[bpf.Thread]share{}
	}
	n.threads[of] = share{shareOf(r), old.told}
}

// threadsOf are the threads of a probe that records told of.
func (d *decoder) threadsOf(cookie uint64) []bpf.Thread {
	n := d.probes[cookie]
	if n == nil {
		return nil
	}
	return slices.Collect(maps.Keys(n.threads))
}

// forgetThreads drops the rows of a probe.
func (d *decoder) forgetThreads(cookie uint64) {
	if n := d.probes[cookie]; n != nil {
		d.shares -= len(n.threads)
		n.threads = nil
	}
}

// takeThreads gives the rows of a watched probe for a snapshot, in new memory.
func (d *decoder) takeThreads(cookie uint64, since time.Duration) *Threads {
	t := &Threads{Since: since}
	n := d.probes[cookie]
	if n == nil {
		return t
	}
	for of, s := range n.threads {
		row := s.ThreadShare
		row.before, s.told = s.told, s.Hits
		n.threads[of] = s
		if of.TID == bpf.Others {
			row.PID, row.TID, row.Threads, row.Comm = 0, 0, 0, ""
			t.Others = row
		} else {
			t.Rows = append(t.Rows, row)
		}
	}
	byHits(t.Rows)
	return t
}

// rates fills in what is per second.
func (t *Threads) rates(seconds float64) {
	for i := range t.Rows {
		t.Rows[i].Rate = float64(t.Rows[i].Hits-t.Rows[i].before) / seconds
	}
	t.Others.Rate = float64(t.Others.Hits-t.Others.before) / seconds
}
