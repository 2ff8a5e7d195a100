package probes

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"uprobetop/probes/recording"
	"uprobetop/symbols"
)

// Recorder keeps a run in a file, to be looked at again by NewReplay. It is the
// Tap of one collector. What cannot be written is missing from the file, never
// from the run: Close tells.
type Recorder struct {
	label     string
	w         *recording.Writer
	file      io.Closer
	files     map[*symbols.File]int // by number, as the next two
	functions map[*symbols.Function]int
	probes    map[ID]recording.Probe // as written last
}

// Record makes a new file for a recording, which only its owner can read. A file
// that is there, or a link, is left alone. label names the target.
func Record(path, label string) (*Recorder, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	shown := symbols.Printable(path)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s exists: name a new file for the recording", shown)
	}
	if err != nil {
		var p *fs.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return nil, fmt.Errorf("%s cannot be made for the recording: %w", shown, err)
	}
	r, err := newRecorder(f, label)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r.file = f
	return r, nil
}

func newRecorder(w io.Writer, label string) (*Recorder, error) {
	rw, err := recording.NewWriter(w)
	if err != nil {
		return nil, err
	}
	return &Recorder{
		label: label, w: rw, files: map[*symbols.File]int{}, functions: map[*symbols.Function]int{},
		probes: map[ID]recording.Probe{},
	}, nil
}

// byteOrder is that of the numbers in samples.
func byteOrder() string {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		return "little"
	}
	return "big"
}

// Begin is for the collector, as are Sample and Tick.
func (r *Recorder) Begin(s *Snapshot, online []int, possible int) {
	r.w.Header(&recording.Header{
		Order: byteOrder(), Label: r.label, Kernel: s.Kernel, Method: s.Method, InFlight: string(s.InFlight),
		CPUs: s.CPUs, Online: online, Possible: possible, At: s.At, Filter: recording.Filter(s.Filter),
	})
}

func (r *Recorder) Sample(raw []byte) { r.w.Sample(recording.Records, raw) }

func (r *Recorder) Tick(s *Snapshot) {
	for i := range s.Probes {
		r.probe(&s.Probes[i])
	}
	var gone []ID
	for id := range r.probes {
		if s.Find(id) == nil {
			gone = append(gone, id)
		}
	}
	slices.SortFunc(gone, cmp.Compare)
	for _, id := range gone {
		delete(r.probes, id)
		r.w.Probe(&recording.Probe{ID: uint64(id), Removed: true})
	}
	_ = r.w.Tick(&recording.Tick{ // Close tells
		At: s.At, Elapsed: s.Elapsed, Interval: s.Interval, Gone: s.Gone, Container: s.Container, Final: s.Final,
		Placing: [2]int{s.Placing.Done, s.Placing.Of}, Leaving: [2]int{s.Leaving.Done, s.Leaving.Of},
	})
}

// probe writes a probe if something of it is new.
func (r *Recorder) probe(s *Stats) {
	p := recording.Probe{
		ID: uint64(s.ID), Cookie: s.cookie, Kind: uint8(s.Kind), Function: r.function(s.Probe),
		State: uint8(s.State), Note: s.Note, Placed: s.Placed, Halted: s.Halted, Stood: s.Latency != nil || s.Placed != 0 || s.Counted != 0,
		Floor: recording.Floor{Class: uint8(s.Floor.Class), Min: s.Floor.Min, P50: s.Floor.P50},
	}
	if s.Threads != nil {
		p.Watched, p.Since = true, s.Threads.Since
	}
	if was, known := r.probes[s.ID]; known && was == p {
		return
	}
	r.probes[s.ID] = p
	r.w.Probe(&p)
}

func (r *Recorder) function(p *Probe) int {
	fn, f := p.Function, p.File
	if n, known := r.functions[fn]; known {
		return n
	}
	file, known := r.files[f]
	if !known {
		file = len(r.files)
		r.files[f] = file
		r.w.File(&recording.File{
			Path: f.Path, Dev: f.Dev, Ino: f.Ino, BuildID: f.BuildID, Machine: uint16(f.Machine), Class: uint8(f.Class),
			Go: f.Go, Unwinds: f.Unwinds, Library: f.Library, Switches: f.Switches, Replaced: f.Replaced,
		})
	}
	names := []recording.Name{recording.Name(fn.Symbol)}
	for _, a := range fn.Aliases {
		names = append(names, recording.Name(a))
	}
	points := make([]uint64, len(p.Points))
	var semaphores []uint64
	var arguments []string
	for i, at := range p.Points {
		points[i] = uint64(at.Offset)
		if at.Semaphore != 0 {
			semaphores = append(append(semaphores, make([]uint64, i-len(semaphores))...), uint64(at.Semaphore))
		}
		if at.Arguments != "" {
			arguments = append(append(arguments, make([]string, i-len(arguments))...), at.Arguments)
		}
	}
	r.w.Function(&recording.Function{
		File: file, Names: names, Addr: uint64(fn.Addr), Offset: uint64(fn.Offset), Size: fn.Size, Place: uint8(fn.Place),
		Into: fn.Into, Unnamed: fn.Unnamed, Chosen: fn.Chosen,
		Points: points, Semaphores: semaphores, Arguments: arguments, Again: p.HitsAgain(),
	})
	n := len(r.functions)
	r.functions[fn] = n
	return n
}

// Close ends the file. The error is the first of all that could not be written.
func (r *Recorder) Close() error {
	err := r.w.Close()
	if r.file != nil {
		err = errors.Join(err, r.file.Close())
	}
	return err
}
