package probes

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"uprobetop/probes/recording"
	"uprobetop/symbols"
)

// Limits of what a recording may hold, far above what any has. They keep one that
// was made to do harm from taking all memory.
const (
	maxCPUs     = 8192
	maxRecorded = 1 << 15 // probes, as many functions, and files
	maxPerCPU   = 1 << 23 // probes × CPUs of a snapshot
	maxCells    = 1 << 20 // counters that count, one a probe and CPU
	maxCalls    = 1 << 16 // single calls of a snapshot
	maxShares   = 1 << 16 // threads of watched probes
	maxInside   = 1 << 18 // listed calls in flight
	maxTime     = 100 * 365 * 24 * time.Hour
)

// table is what the probes of a recording are about: all that is in it anywhere.
type table struct {
	files     []*symbols.File
	functions []recorded // by number in the recording
	cookies   map[uint64]bool
	ids       map[uint64]bool
	possible  int // CPUs
}

// recorded is a function of a recording.
type recorded struct {
	file     *symbols.File
	function *symbols.Function
	points   []symbols.Point
}

// scan reads all of a recording and looks at everything but the samples.
func scan(r *recording.Reader) (*recording.Header, *table, error) {
	first, err := r.Next()
	h, ok := first.(*recording.Header)
	if err == io.EOF || err == nil && !ok {
		return nil, nil, errors.New("the recording is damaged: it has no beginning")
	}
	if err == nil {
		err = checkHeader(h)
	}
	if err != nil {
		return nil, nil, err
	}
	t := &table{cookies: map[uint64]bool{}, ids: map[uint64]bool{}, possible: h.Possible}
	var files []*recording.File
	var functions []*recording.Function
	ticks := 0
	for {
		f, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		switch f := f.(type) {
		case *recording.File:
			files = append(files, f)
		case *recording.Function:
			if f.File < 0 || f.File >= len(files) || len(f.Names) == 0 {
				return nil, nil, errors.New("the recording is damaged: it has a function without a file or name")
			}
			functions = append(functions, f)
			t.functions = append(t.functions, recorded{})
		case *recording.Probe:
			err = t.check(f)
			t.ids[f.ID] = true
			if f.Cookie != 0 {
				t.cookies[f.Cookie] = true
			}
		case *recording.Tick:
			ticks++
			err = checkTick(f)
		}
		if err != nil {
			return nil, nil, err
		}
		if max(len(files), len(functions), len(t.ids), len(t.cookies)) > maxRecorded || len(t.ids)*t.possible > maxPerCPU {
			return nil, nil, errors.New("the recording is damaged: it has more probes than any run")
		}
	}
	if ticks == 0 {
		return nil, nil, errors.New("the recording is empty: its run ended before the first tick")
	}
	t.fill(files, functions)
	return h, t, nil
}

func checkHeader(h *recording.Header) error {
	if h.Order != byteOrder() {
		return errors.New("the recording is from a machine with another byte order: replay it on one like that")
	}
	if !slices.Contains([]Store{"", TaskStore, HashStore, SessionStore}, Store(h.InFlight)) {
		return errors.New("the recording kept calls in flight in a way that is not known here: replay it with the uprobetop that made it")
	}
	fine := h.Possible > 0 && h.Possible <= maxCPUs && h.CPUs > 0 && h.CPUs <= h.Possible && slices.IsSorted(h.Online)
	for _, cpu := range h.Online {
		fine = fine && cpu >= 0 && cpu < h.Possible
	}
	if !fine {
		return fmt.Errorf("the recording is damaged: no host has %d CPUs, %d of them possible", h.CPUs, h.Possible)
	}
	return nil
}

// check looks at a probe before anything of it is used as an index.
func (t *table) check(p *recording.Probe) error {
	if p.ID >= 1<<32 || !p.Removed && (p.Function < 0 || p.Function >= len(t.functions) ||
		Kind(p.Kind) > USDT || State(p.State) > Gone || !credible(p.Placed) || !credible(p.Since) || !credible(p.Halted)) {
		return fmt.Errorf("the recording is damaged: its probe %d makes no sense", p.ID)
	}
	return nil
}

func checkTick(t *recording.Tick) error {
	if !credible(t.Elapsed) || !credible(t.Interval) {
		return errors.New("the recording is damaged: its time makes no sense")
	}
	return nil
}

func credible(d time.Duration) bool { return d >= 0 && d < maxTime }

// fill makes the files, each with its functions in order.
func (t *table) fill(files []*recording.File, functions []*recording.Function) {
	byFile := make([][]int, len(files))
	for n, fn := range functions {
		byFile[fn.File] = append(byFile[fn.File], n)
	}
	for i, rf := range files {
		f := &symbols.File{
			Path: rf.Path, Dev: rf.Dev, Ino: rf.Ino, BuildID: rf.BuildID, Machine: elf.Machine(rf.Machine), Class: elf.Class(rf.Class),
			Go: rf.Go, Unwinds: rf.Unwinds, Library: rf.Library, Switches: rf.Switches, Replaced: rf.Replaced,
		}
		t.files = append(t.files, f)
		numbers := byFile[i]
		slices.SortStableFunc(numbers, func(a, b int) int { return inOrder(functions[a], functions[b]) })
		f.Functions = make([]symbols.Function, len(numbers))
		for at, n := range numbers {
			f.Functions[at] = function(functions[n])
			t.functions[n] = recorded{f, &f.Functions[at], points(functions[n])}
		}
	}
}

// inOrder compares as symbols.File.Functions are: those with code first, markers last.
func inOrder(a, b *recording.Function) int {
	part := func(f *recording.Function) uint8 {
		if symbols.Place(f.Place) < symbols.NoCode {
			return 0
		}
		return f.Place
	}
	return cmp.Or(cmp.Compare(part(a), part(b)), cmp.Compare(a.Addr, b.Addr))
}

func points(rf *recording.Function) []symbols.Point {
	ps := make([]symbols.Point, len(rf.Points))
	for i, at := range rf.Points {
		ps[i] = symbols.Point{Offset: symbols.Offset(at), Again: rf.Again}
		if i < len(rf.Semaphores) {
			ps[i].Semaphore = symbols.Offset(rf.Semaphores[i])
		}
		if i < len(rf.Arguments) {
			const most = 4096 // bytes, as symbols reads them
			ps[i].Arguments = symbols.Printable(rf.Arguments[i][:min(len(rf.Arguments[i]), most)])
		}
	}
	return ps
}

func function(rf *recording.Function) symbols.Function {
	f := symbols.Function{
		Symbol: symbols.Symbol(rf.Names[0]),
		Addr:   symbols.Addr(rf.Addr), Offset: symbols.Offset(rf.Offset), Size: rf.Size, Place: min(symbols.Place(rf.Place), symbols.Marker),
		Into: rf.Into, Unnamed: rf.Unnamed, Chosen: rf.Chosen,
	}
	for _, n := range rf.Names[1:] {
		f.Aliases = append(f.Aliases, symbols.Symbol(n))
	}
	return f
}
