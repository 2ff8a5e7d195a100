package probes

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"uprobetop/bpf"
	"uprobetop/probes/recording"
	"uprobetop/symbols"
)

// ErrRecording is why nothing can be changed in what is replayed.
var ErrRecording = errors.New("this is a recording: nothing can be placed or taken away")

// Replay is a source of snapshots whose records come from a recording. They go
// through the decoder that those of a Collector go through. Run, or Next, is for
// one goroutine; all else for any.
type Replay struct {
	// Loop has Run begin anew at the end. Numbers and probes are then new ones:
	// their IDs continue, as do Seq, At and Elapsed, so that nothing goes back.
	// The rows of a recording whose first tick has all probes stay.
	Loop bool

	Label string          // of the target
	Files []*symbols.File // with those of their functions that were recorded, of all that were
	Host  Host            // that was recorded

	source io.ReadSeeker
	header *recording.Header
	table  *table
	latest atomic.Pointer[Snapshot]

	// The pass that is under way.
	reader  *recording.Reader
	decoder *decoder
	cells   int // in decoder
	probes  []*played
	last    *Snapshot
	nextID  ID            // of all passes
	base    ID            // of this pass
	before  time.Duration // all passes before this one
}

// played is a probe as the recording has it at the moment.
type played struct {
	Probe
	state  State
	note   string
	stood  bool
	placed time.Duration
	halted time.Duration // 0: it was not
	floor  Floor

	watched bool
	since   time.Duration
}

// NewReplay reads a recording through once, so that its functions are known, and
// what makes no sense in it. The error is one sentence.
func NewReplay(source io.ReadSeeker) (*Replay, error) {
	r := &Replay{source: source}
	if err := r.rewind(); err != nil {
		return nil, err
	}
	var err error
	if r.header, r.table, err = scan(r.reader); err != nil {
		r.Close()
		return nil, err
	}
	h := r.header
	r.Label, r.Files = h.Label, r.table.files
	r.Host = Host{Kernel: h.Kernel, CPUs: h.Online}
	r.last = &Snapshot{At: h.At, Kernel: h.Kernel, CPUs: h.CPUs, Method: h.Method, InFlight: cmp.Or(Store(h.InFlight), TaskStore), Filter: Filter(h.Filter)}
	r.latest.Store(r.last)
	if err := r.rewind(); err != nil {
		return nil, err
	}
	return r, nil
}

// rewind goes back to the beginning, for the next pass.
func (r *Replay) rewind() error {
	r.Close()
	if _, err := r.source.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("the recording cannot be read: %w", err)
	}
	reader, err := recording.NewReader(r.source)
	if err != nil {
		return err
	}
	r.reader, r.decoder, r.cells, r.probes = reader, newDecoder(), 0, nil
	r.base = r.nextID
	if r.last != nil {
		r.before, r.decoder.store = r.last.Elapsed, r.last.InFlight
	}
	return nil
}

// Close frees what the replay holds. It does not close what it reads from.
func (r *Replay) Close() {
	if r.reader != nil {
		r.reader.Close()
		r.reader = nil
	}
}

// Snapshot is the newest one; never nil.
func (r *Replay) Snapshot() *Snapshot { return r.latest.Load() }

// Check refuses.
func (r *Replay) Check(Request) Finding {
	return Finding{Verdict: Refuses, Reason: ErrRecording.Error()}
}

// Place does nothing but say why.
func (r *Replay) Place(context.Context, ...Request) error { return ErrRecording }

// Remove does nothing but say why.
func (r *Replay) Remove(ID) error { return ErrRecording }

// Report does nothing: what calls were reported is in the recording.
func (r *Replay) Report(ID, time.Duration) error { return nil }

// Watch does nothing: what was watched is in the recording.
func (r *Replay) Watch(ID, bool) error { return nil }

// Run takes the snapshots at the pace at which they were recorded, until ctx
// ends: at the end of the recording the last one stays, or see Loop.
func (r *Replay) Run(ctx context.Context) error {
	due := time.Now()
	for {
		s, err := r.Next()
		if err == io.EOF && r.Loop {
			if err = r.rewind(); err == nil {
				continue
			}
		}
		if err == io.EOF {
			<-ctx.Done()
			return nil
		}
		if err != nil {
			return err
		}
		if s.Seq > 1 { // the first one at once
			due = due.Add(s.Interval)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(due)):
		}
		r.latest.Store(s)
	}
}

// Next is the next snapshot as fast as it can be had, or io.EOF.
func (r *Replay) Next() (*Snapshot, error) {
	for {
		f, err := r.reader.Next()
		if err != nil {
			return nil, err
		}
		switch f := f.(type) {
		case *recording.Sample:
			if err := r.feed(f); err != nil {
				return nil, fmt.Errorf("the recording is damaged: %w", err)
			}
		case *recording.Probe:
			// Again, as in scan: somebody may still be writing the file.
			if err := r.table.check(f); err != nil {
				return nil, err
			}
			r.change(f)
		case *recording.Tick:
			if err := checkTick(f); err != nil {
				return nil, err
			}
			return r.snapshot(f), nil
		}
	}
}

// feed gives the decoder a record. Those of probes that are in no snapshot are
// left out, and those of streams that are not known.
func (r *Replay) feed(s *recording.Sample) error {
	if s.Stream != recording.Records {
		return nil
	}
	// Every record begins with its kind, its CPU or group, and its probe's cookie.
	if len(s.Raw) < 16 {
		return fmt.Errorf("a record of %d bytes is too short", len(s.Raw))
	}
	kind, index := binary.NativeEndian.Uint32(s.Raw), binary.NativeEndian.Uint32(s.Raw[4:])
	cookie := binary.NativeEndian.Uint64(s.Raw[8:])
	if kind != bpf.RecordTick && kind != bpf.RecordEnumerated && !r.table.cookies[cookie] {
		return nil
	}
	if kind == bpf.RecordCell {
		if int(index) >= r.header.Possible {
			return fmt.Errorf("a record of CPU %d, of %d", index, r.header.Possible)
		}
		if n := r.decoder.probes[cookie]; n == nil || n.cells[index] == nil {
			if r.cells++; r.cells > maxCells {
				return fmt.Errorf("it has counters of more than %d probes and CPUs", maxCells)
			}
		}
	}
	if _, err := r.decoder.read(s.Raw); err != nil {
		return err
	}
	if r.decoder.shares > maxShares {
		return fmt.Errorf("it has more than %d threads of watched probes", maxShares)
	}
	if len(r.decoder.calls) > maxCalls {
		return fmt.Errorf("it has more than %d calls in one tick", maxCalls)
	}
	if r.decoder.entering.kept > maxInside {
		return fmt.Errorf("it has more than %d calls in flight", maxInside)
	}
	return nil
}

// change takes a probe as it is from the next tick on.
func (r *Replay) change(f *recording.Probe) {
	id := r.base + ID(f.ID)
	i, known := slices.BinarySearchFunc(r.probes, id, func(p *played, id ID) int { return cmp.Compare(p.ID, id) })
	if f.Removed {
		if known {
			// Its counters stay: those that still come are of all that it counted.
			r.decoder.forgetThreads(r.probes[i].cookie)
			r.probes = slices.Delete(r.probes, i, i+1)
		}
		return
	}
	at := r.table.functions[f.Function]
	p := &played{
		Probe: Probe{ID: id, Kind: Kind(f.Kind), File: at.file, Function: at.function, Points: at.points, cookie: f.Cookie},
		state: State(f.State), note: f.Note, stood: f.Stood, placed: f.Placed, halted: f.Halted, watched: f.Watched, since: f.Since,
		floor: Floor{Class: min(Class(f.Floor.Class), Nop10), Min: f.Floor.Min, P50: f.Floor.P50},
	}
	if !f.Watched {
		r.decoder.forgetThreads(f.Cookie)
	}
	r.nextID = max(r.nextID, id+1)
	if known {
		// Snapshots compare probes by their address.
		if old := r.probes[i]; old.Kind == p.Kind && old.Function == p.Function && old.cookie == p.cookie {
			old.state, old.note, old.stood, old.placed, old.halted, old.floor = p.state, p.note, p.stood, p.placed, p.halted, p.floor
			old.watched, old.since = p.watched, p.since
			return
		}
		r.probes[i] = p
		return
	}
	r.probes = slices.Insert(r.probes, i, p)
}

// snapshot is that of Collector, of what was recorded.
func (r *Replay) snapshot(t *recording.Tick) *Snapshot {
	l := r.last
	s := &Snapshot{
		Seq: l.Seq + 1, At: t.At.Add(r.before), Elapsed: r.before + t.Elapsed, Interval: t.Interval,
		Kernel: l.Kernel, CPUs: l.CPUs, Method: l.Method, InFlight: l.InFlight, Filter: l.Filter,
		Lost: r.decoder.losses(), HeldBack: r.decoder.heldBack, Unfollowed: r.decoder.unfollowed,
		Gone: t.Gone, Container: t.Container, Final: t.Final,
		Placing: Progress{t.Placing[0], t.Placing[1]}, Leaving: Progress{t.Leaving[0], t.Leaving[1]},
	}
	for _, p := range r.probes {
		st := Stats{Probe: &p.Probe, State: p.state, Note: p.note, Floor: p.floor}
		if p.stood {
			st.Placed = r.before + p.placed
			if p.halted > 0 {
				st.Halted = r.before + p.halted
			}
		}
		r.decoder.measure(&st, p.stood, r.header.Possible, r.online)
		if p.watched {
			st.Threads = r.decoder.takeThreads(p.cookie, r.before+p.since)
		}
		st.rates(l.Find(p.ID), st.count(s, p.stood))
		s.Probes = append(s.Probes, st)
	}
	s.Calls = r.decoder.takeCalls(s.At)
	for i := range s.Calls {
		s.Calls[i].Probe += r.base
	}
	r.decoder.enumerated(s)
	r.last = s
	return s
}

func (r *Replay) online(cpu int) bool {
	_, found := slices.BinarySearch(r.header.Online, cpu)
	return found
}
