package probes

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"uprobetop/bpf"
	"uprobetop/probes/hist"
)

// The sizes of records, in bytes.
const (
	recordBytes = int(unsafe.Sizeof(bpf.Record{}))
	callBytes   = int(unsafe.Sizeof(bpf.Call{}))
	shareBytes  = int(unsafe.Sizeof(bpf.ShareRecord{}))
)

// parse reads one record as it came from the kernel: these types lie in memory as
// those of C do.
func parse[T bpf.Record | bpf.Call | bpf.ShareRecord](raw []byte, r *T) error {
	size := int(unsafe.Sizeof(*r))
	if len(raw) < size {
		return fmt.Errorf("a record of %d bytes is too short, %d are expected", len(raw), size)
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(r)), size), raw)
	return nil
}

// text is what the kernel has in an array of characters.
func text(chars []int8) string {
	b := make([]byte, 0, len(chars))
	for _, c := range chars {
		if c == 0 {
			break
		}
		b = append(b, byte(c))
	}
	return string(b)
}

// numbers are the cumulative numbers of one probe, as far as records told.
type numbers struct {
	cells  map[uint32]*[bpf.Fields]uint64 // by CPU
	counts [hist.Buckets]uint64

	threads map[bpf.Thread]share
}

// decoder turns records into numbers. It is the only reader of records.
type decoder struct {
	store      Store               // where calls in flight are kept, which says what is known
	probes     map[uint64]*numbers // by cookie
	at         uint64              // CLOCK_MONOTONIC of the last tick, ns
	lost       uint64              // records that did not fit and were sent again
	unfollowed uint64              // processes that could not be followed
	heldBack   uint64              // calls not reported, of all probes there ever were
	callsLost  map[int]*LostCalls  // likewise, because the ring did not take them, by CPU
	calls      []bpf.Call          // reported since the last tick that was taken
	shares     int                 // entries of threads, of all probes
	inside     enumeration         // calls in flight, as last enumerated
	entering   enumeration         // and as far as the next one has come
}

func newDecoder() *decoder {
	return &decoder{probes: map[uint64]*numbers{}, callsLost: map[int]*LostCalls{}}
}

// read takes one record as it came, from either ring buffer or an enumeration, and
// tells whether it ended a tick. A record that makes no sense is an error and
// changes nothing.
func (d *decoder) read(raw []byte) (tick bool, err error) {
	if len(raw) < 4 {
		return false, fmt.Errorf("a record of %d bytes has no kind", len(raw))
	}
	switch binary.NativeEndian.Uint32(raw) {
	case bpf.RecordCall, bpf.RecordInside, bpf.RecordEnumerated:
		var c bpf.Call
		if err = parse(raw, &c); err == nil {
			d.call(&c)
		}
		return false, err
	case bpf.RecordShare:
		var s bpf.ShareRecord
		if err = parse(raw, &s); err == nil {
			d.share(&s)
		}
		return false, err
	}
	var r bpf.Record
	if err = parse(raw, &r); err != nil {
		return false, err
	}
	return d.apply(&r)
}

// call takes one record of a call.
func (d *decoder) call(c *bpf.Call) {
	switch c.Kind {
	case bpf.RecordCall:
		d.calls = append(d.calls, *c)
	case bpf.RecordInside:
		d.entering.add(c)
	case bpf.RecordEnumerated:
		d.inside, d.entering = d.entering, enumeration{}
		d.inside.at = c.At
	}
}

// takeCalls gives the calls reported by now, in the order of their returns, for a
// snapshot at this time.
func (d *decoder) takeCalls(at time.Time) []Call {
	if len(d.calls) == 0 {
		return nil
	}
	slices.SortStableFunc(d.calls, func(a, b bpf.Call) int { return cmp.Compare(a.At, b.At) })
	calls := make([]Call, len(d.calls))
	for i := range d.calls {
		calls[i] = callOf(&d.calls[i])
		if d.store == SessionStore {
			calls[i].Callees = -1
		}
		calls[i].At = at.Add(-time.Duration(int64(d.at - d.calls[i].At)))
	}
	d.calls = d.calls[:0]
	return calls
}

// apply takes one record of the flush and tells whether it ended a tick.
func (d *decoder) apply(r *bpf.Record) (tick bool, err error) {
	switch r.Kind {
	case bpf.RecordCell:
		n := d.numbers(r.Cookie)
		c := n.cells[r.Index]
		if c == nil {
			c = new([bpf.Fields]uint64)
			n.cells[r.Index] = c
		}
		d.heldBack += r.Value[bpf.HeldBack] - c[bpf.HeldBack]
		d.lose(int(r.Index), r.Value[bpf.CallsLost]-c[bpf.CallsLost], r.Value[bpf.CallsBusy]-c[bpf.CallsBusy])
		*c = r.Value
	case bpf.RecordGroup:
		if r.Index >= hist.Groups {
			return false, fmt.Errorf("a record of histogram group %d, of %d", r.Index, hist.Groups)
		}
		copy(d.numbers(r.Cookie).counts[r.Index*hist.SubBuckets:], r.Value[:hist.SubBuckets])
	case bpf.RecordTick:
		d.at, d.lost, d.unfollowed = r.At, r.Value[0], r.Value[1]
		return true, nil
	default:
		return false, fmt.Errorf("a record of unknown kind %d", r.Kind)
	}
	return false, nil
}

// lose adds calls that were not reported, of one CPU.
func (d *decoder) lose(cpu int, full, busy uint64) {
	if full+busy == 0 {
		return
	}
	if d.callsLost[cpu] == nil {
		d.callsLost[cpu] = &LostCalls{CPU: cpu}
	}
	d.callsLost[cpu].Full += full
	d.callsLost[cpu].Busy += busy
}

// losses are of all probes there ever were, in new memory.
func (d *decoder) losses() Lost {
	l := Lost{Cells: d.lost}
	for _, on := range d.callsLost {
		l.Calls += on.Full + on.Busy
		l.Busy += on.Busy
		l.ByCPU = append(l.ByCPU, *on)
	}
	slices.SortFunc(l.ByCPU, func(a, b LostCalls) int { return cmp.Compare(a.CPU, b.CPU) })
	return l
}

func (d *decoder) numbers(cookie uint64) *numbers {
	n := d.probes[cookie]
	if n == nil {
		n = &numbers{cells: map[uint32]*[bpf.Fields]uint64{}}
		d.probes[cookie] = n
	}
	return n
}

// forget drops a probe's numbers.
func (d *decoder) forget(cookie uint64) {
	d.forgetThreads(cookie)
	delete(d.probes, cookie)
	delete(d.inside.of, cookie)
}

// measure writes all that records told of a probe into s, in new memory. stood
// says that it was attached at some time: else there is no ledger.
func (d *decoder) measure(s *Stats, stood bool, cpus int, online func(cpu int) bool) {
	n := d.probes[s.cookie]
	if n == nil {
		n = &numbers{}
	}
	n.count(s, cpus, online)
	if stood {
		n.ledger(s)
	}
	if d.store == SessionStore && s.Latency != nil { // nothing is popped that does not return
		s.NoFrames, s.Unreturned, s.InFlight = true, s.InFlight, 0
	}
}

// count writes a probe's hits into s, in new memory. A CPU is listed if it is
// online or has ever counted.
func (n *numbers) count(s *Stats, cpus int, online func(cpu int) bool) {
	for cpu := range cpus {
		c := n.cells[uint32(cpu)]
		switch {
		case c != nil:
			s.PerCPU = append(s.PerCPU, CPUStats{CPU: cpu, Hits: c[bpf.Hits]})
			s.Hits += c[bpf.Hits]
			s.Filtered += c[bpf.Filtered]
			s.HeldBack += c[bpf.HeldBack]
			s.CallsLost += c[bpf.CallsLost] + c[bpf.CallsBusy]
			s.CallsBusy += c[bpf.CallsBusy]
		case online(cpu):
			s.PerCPU = append(s.PerCPU, CPUStats{CPU: cpu})
		}
	}
}

// ledger writes what is known of a timed probe's calls into s, in new memory.
func (n *numbers) ledger(s *Stats) {
	if s.Kind != Return {
		return
	}
	var sum [bpf.Fields]uint64
	var minNot, maxNs uint64
	for _, c := range n.cells {
		for i, v := range c {
			sum[i] += v
		}
		maxNs = max(maxNs, c[bpf.MaxNs])
		minNot = max(minNot, c[bpf.MinNsNot])
	}
	s.Returned, s.Orphans = sum[bpf.Returned], sum[bpf.Orphans]
	s.InFlight = int64(sum[bpf.Pushed] - sum[bpf.Popped])
	s.Unwound = Unwound{Jump: sum[bpf.UnwoundJump], Exec: sum[bpf.UnwoundExec], Exit: sum[bpf.UnwoundExit]}
	s.Missed = Missed{Depth: sum[bpf.MissedDepth], NoSlot: sum[bpf.MissedNoSlot]}
	s.Latency = &hist.Histogram{Counts: n.counts, Sum: sum[bpf.SumNs], Min: ^minNot, Max: maxNs}
	s.Latency.Settle()
	s.Callees = time.Duration(sum[bpf.CalleesNs])
}
