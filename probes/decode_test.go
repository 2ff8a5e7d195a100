package probes

import (
	"encoding/binary"
	"testing"
	"time"

	"uprobetop/bpf"
	"uprobetop/probes/hist"
)

// raw is a record as the ring buffer gives it.
func raw(r bpf.Record) []byte {
	b, err := binary.Append(nil, binary.NativeEndian, r)
	if err != nil {
		panic(err)
	}
	return b
}

func decode(t *testing.T, d *decoder, rs ...bpf.Record) (ticks int) {
	t.Helper()
	for _, r := range rs {
		var got bpf.Record
		if err := parse(raw(r), &got); err != nil {
			t.Fatal(err)
		}
		if got != r {
			t.Fatalf("read %+v, written %+v", got, r)
		}
		tick, err := d.apply(&got)
		if err != nil {
			t.Fatal(err)
		}
		if tick {
			ticks++
		}
	}
	return ticks
}

func TestRecordSize(t *testing.T) {
	for what, bytes := range map[any]int{bpf.Record{}: recordBytes, bpf.Call{}: callBytes, bpf.ShareRecord{}: shareBytes} {
		if n := binary.Size(what); n != bytes { // nothing is between the fields
			t.Errorf("a %T has %d bytes, the decoder reads %d", what, n, bytes)
		}
	}
	if n := binary.Size(bpf.Hist{}.Count) / 8; n != hist.Buckets {
		t.Errorf("the kernel counts in %d buckets, package hist has %d", n, hist.Buckets)
	}
}

func TestDecoder(t *testing.T) {
	d := newDecoder()
	cell := bpf.Record{Kind: bpf.RecordCell, Index: 1, Cookie: 7}
	cell.Value[bpf.Hits], cell.Value[bpf.Returned] = 10, 8
	cell.Value[bpf.Pushed], cell.Value[bpf.Popped] = 9, 9
	cell.Value[bpf.UnwoundExit], cell.Value[bpf.MissedDepth] = 1, 1
	cell.Value[bpf.SumNs], cell.Value[bpf.MaxNs], cell.Value[bpf.MinNsNot] = 800, 120, ^uint64(70)
	other := bpf.Record{Kind: bpf.RecordCell, Index: 0, Cookie: 7}
	other.Value[bpf.Hits], other.Value[bpf.Pushed] = 5, 5
	group := bpf.Record{Kind: bpf.RecordGroup, Index: 3, Cookie: 7} // 64…127 ns
	group.Value[1], group.Value[14] = 7, 1                          // 68…71, 120…123
	tick := bpf.Record{Kind: bpf.RecordTick, At: 42}
	tick.Value[0] = 3
	if n := decode(t, d, cell, other, group, cell, tick); n != 1 {
		t.Errorf("%d ticks", n)
	}
	if d.at != 42 || d.lost != 3 {
		t.Errorf("at %d, lost %d", d.at, d.lost)
	}
	s := Stats{Probe: &Probe{Kind: Return}}
	d.probes[7].count(&s, 3, func(cpu int) bool { return cpu < 2 })
	d.probes[7].ledger(&s)
	if s.Hits != 15 || s.Returned != 8 || s.InFlight != 5 || s.Unwound.Exit != 1 || s.Missed.Depth != 1 {
		t.Errorf("%+v", s)
	}
	if len(s.PerCPU) != 2 || s.PerCPU[0].Hits != 5 || s.PerCPU[1].Hits != 10 {
		t.Errorf("per CPU: %+v", s.PerCPU)
	}
	if h := s.Latency; h.Count() != 8 || h.Min != 70 || h.Max != 120 || h.Sum != 800 {
		t.Errorf("latency: %d calls, min %d, max %d, sum %d", h.Count(), h.Min, h.Max, h.Sum)
	}
	if b := s.Balance(); b != 0 {
		t.Errorf("the books are off by %d", b)
	}
}

func TestDecoderRefuses(t *testing.T) {
	d := newDecoder()
	for name, r := range map[string]bpf.Record{
		"unknown kind": {Kind: 99},
		"group":        {Kind: bpf.RecordGroup, Index: hist.Groups},
	} {
		if _, err := d.apply(&r); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if err := parse(make([]byte, recordBytes-1), new(bpf.Record)); err == nil {
		t.Error("a short record is accepted")
	}
	if _, err := d.read(rawShare(1, bpf.Thread{}, 1)[:shareBytes-1]); err == nil {
		t.Error("a short record of a thread is accepted")
	}
	if len(d.probes) != 0 {
		t.Error("a refused record changed something")
	}
}

// rawShare is the record of a thread with so many calls in each bucket.
func rawShare(cookie uint64, of bpf.Thread, calls uint64) []byte {
	r := bpf.ShareRecord{Kind: bpf.RecordShare, Cookie: cookie, Tgid: of.TGID, Tid: of.TID}
	for i := range r.Share.Count {
		r.Share.Count[i] = calls
		r.Share.Hits += calls
	}
	b, _ := binary.Append(nil, binary.NativeEndian, r)
	return b
}

// Rows come and go with their probe, and what is damaged is none.
func TestDecoderThreads(t *testing.T) {
	d := newDecoder()
	for tid := range uint32(3) {
		for calls := range uint64(3) {
			if _, err := d.read(rawShare(5, bpf.Thread{TGID: 1, TID: tid}, calls)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := d.read(rawShare(5, bpf.Thread{TGID: bpf.Others, TID: bpf.Others}, 1)); err != nil {
		t.Fatal(err)
	}
	th := d.takeThreads(5, time.Second)
	equal(t, "rows", uint64(len(th.Rows)), 3)
	equal(t, "hits", Total(th.Rows).Hits, 3*2*uint64(bpf.ShareBuckets))
	equal(t, "hits of others", th.Others.Hits, uint64(bpf.ShareBuckets))
	equal(t, "entries", uint64(d.shares), 4)
	d.forget(5)
	d.forget(5)
	equal(t, "entries of nobody", uint64(d.shares), 0)
	if th := d.takeThreads(5, 0); len(th.Rows) > 0 || th.Others.Hits > 0 {
		t.Errorf("there are rows of nobody: %+v", th)
	}
}

func FuzzDecoder(f *testing.F) {
	f.Add(raw(bpf.Record{Kind: bpf.RecordCell, Index: 3, Cookie: 1}))
	f.Add(raw(bpf.Record{Kind: bpf.RecordGroup, Index: 33, Cookie: 1}))
	f.Add(raw(bpf.Record{Kind: bpf.RecordTick}))
	f.Add(rawShare(1, bpf.Thread{TGID: 7, TID: 8}, ^uint64(0)))
	f.Fuzz(func(t *testing.T, b []byte) {
		d := newDecoder()
		_, _ = d.read(b)
		for cookie := range d.probes {
			for _, row := range ByProcess(d.takeThreads(cookie, 0).Rows) {
				_ = row.Middle(0.99)
			}
		}
		for len(b) > 0 {
			n := min(len(b), recordBytes)
			var r bpf.Record
			if parse(b[:n], &r) == nil {
				_, _ = d.apply(&r)
			}
			b = b[n:]
		}
		for _, n := range d.probes {
			s := Stats{Probe: &Probe{Kind: Return}}
			n.count(&s, 4, func(int) bool { return true })
			n.ledger(&s)
			_ = s.Latency.Quantile(0.99)
		}
	})
}
