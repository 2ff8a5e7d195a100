package probes

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"
	"unsafe"

	"uprobetop/bpf"
	"uprobetop/probes/hist"
)

// shareBytes is the size of struct share_record.
const shareBytes = int(unsafe.Sizeof(bpf.ShareRecord{}))

// share is one entry of a thread as the last record had it.
type share struct {
	ThreadShare
	told uint64 // hits in the last snapshot
}

// parseShare reads the record of an entry.
func parseShare(raw []byte) (cookie uint64, of bpf.Thread, s ThreadShare, err error) {
	if len(raw) < shareBytes {
		return 0, of, s, fmt.Errorf("the record of a thread has %d bytes, %d are expected", len(raw), shareBytes)
	}
	e := binary.NativeEndian
	var h bpf.ShareRecord
	cookie = e.Uint64(raw[unsafe.Offsetof(h.Cookie):])
	of = bpf.Thread{TGID: e.Uint32(raw[unsafe.Offsetof(h.Tgid):]), TID: e.Uint32(raw[unsafe.Offsetof(h.Tid):])}
	raw = raw[unsafe.Offsetof(h.Share):]
	r := &h.Share
	comm, _, _ := bytes.Cut(raw[:len(r.Comm)], []byte{0})
	s = ThreadShare{
		PID: int(of.TGID), TID: int(of.TID), Threads: 1, Comm: string(comm), Hits: e.Uint64(raw[unsafe.Offsetof(r.Hits):]),
		Returned: e.Uint64(raw[unsafe.Offsetof(r.Returned):]), Sum: e.Uint64(raw[unsafe.Offsetof(r.SumNs):]),
	}
	if s.Outside() {
		s.Threads, s.Comm = 0, ""
	}
	for i := range r.Count {
		if n := e.Uint64(raw[int(unsafe.Offsetof(r.Count))+8*i:]); n != 0 {
			s.Latency = append(s.Latency, hist.CoarseBucket{Index: i, Count: n})
		}
	}
	s.Max = s.Latency.Largest(e.Uint64(raw[unsafe.Offsetof(r.MaxNs):]))
	return cookie, of, s, nil
}

// share takes one record of a thread.
func (d *decoder) share(raw []byte) error {
	cookie, of, s, err := parseShare(raw)
	if err != nil {
		return err
	}
	n := d.numbers(cookie)
	old, known := n.threads[of]
	if !known {
		d.shares++
	}
	if n.threads == nil {
		n.threads = map[bpf.Thread]share{}
	}
	n.threads[of] = share{s, old.told}
	return nil
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
