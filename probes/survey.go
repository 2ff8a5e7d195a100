package probes

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"uprobetop/symbols"
)

// standing is what is to be said of a probe's breakpoints in one process.
type standing uint8

const (
	unread       standing = iota // its memory may not be read
	present                      // the breakpoint is there
	absent                       // it does not map the file
	unmapped                     // it maps the file, but not the place of the breakpoint as code
	copied                       // where the file should be is a copy of it in anonymous memory
	shared                       // the mapping is shared: the kernel places none
	writable                     // the mapping is writable: likewise
	onceWritable                 // the mapping was writable, and there is no breakpoint
	missing                      // the mapping is fit, and there is no breakpoint
	changed                      // the bytes are neither a breakpoint nor those of the file
	disarmed                     // the breakpoint is there, and the semaphore says that nobody probes
	standings
)

// gap tells whether what the process calls there is not counted.
func (s standing) gap() bool { return s >= copied }

// surveyed is what a look at the processes found of one probe.
type surveyed struct {
	n      [standings]int
	first  [standings]seen
	gaps   []breach
	ended  int    // of those that the filter names
	denied int    // that could not be looked into
	more   bool   // there are more than were looked at
	late   bool   // there was no time for all
	twin   string // a sentence on another file of theirs that has a function of the name; or empty
}

// seen is one process as it was found.
type seen struct {
	*symbols.Sight
	addr uint64
	code []byte         // there; of an optimised breakpoint all that is its own
	of   symbols.Region // that matters: which has the place, or another file of the same name
}

// mapping is how many processes map the file.
func (f *surveyed) mapping() (n int) {
	for s, of := range f.n {
		if standing(s) != absent && standing(s) != unread {
			n += of
		}
	}
	return n
}

// breach is a process that runs the code and has no breakpoint in it.
type breach struct {
	how standing
	at  seen
}

func (f *surveyed) add(s standing, at seen) {
	if f.n[s] == 0 {
		f.first[s] = at
	}
	f.n[s]++
	if s.gap() {
		f.gaps = append(f.gaps, breach{s, at})
	}
}

// looked is how many processes were looked into.
func (f *surveyed) looked() (n int) {
	for _, of := range f.n {
		n += of
	}
	return n
}

const (
	surveyTime  = time.Second
	mostLooked  = 64 // processes
	mostSites   = 64 // points of a probe
	trampolines = "[uprobes-trampoline]"
)

// survey looks into the processes whose hits a filter lets through, each once for all
// probes. It changes nothing in them.
type survey struct {
	pids     []int // nil: whoever maps the file
	deadline time.Time
	sights   map[int]*symbols.Sight // nil: it could not be looked into
	errs     map[int]error
	mappers  map[*symbols.File][]int
	hidden   map[*symbols.File]int // processes that may or may not map it
	follow   bool                  // the command may not run yet, but what waits in its place
}

func (c *Collector) newSurvey() *survey {
	s := &survey{
		deadline: time.Now().Add(c.looking), follow: c.config.Filter.Follow,
		sights: map[int]*symbols.Sight{}, errs: map[int]error{}, mappers: map[*symbols.File][]int{}, hidden: map[*symbols.File]int{},
	}
	if !c.config.Filter.Everybody() {
		s.pids = c.whom()
	}
	return s
}

// whom is the processes that the filter lets through now; never nil.
func (c *Collector) whom() []int {
	pids := append([]int{}, c.config.Filter.PIDs...)
	if c.config.Filter.Follow {
		followed, _ := c.objs.Admitted() // without it those that were named are looked into
		pids = append(pids, followed...)
	}
	for _, tid := range c.config.Filter.TIDs {
		if pid := symbols.ProcessOf(tid); pid > 0 {
			pids = append(pids, pid)
		}
	}
	for _, dir := range c.config.Filter.Cgroups {
		pids = append(pids, cgroupPIDs(dir)...)
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

func (s *survey) close() {
	for _, sight := range s.sights {
		sight.Close()
	}
}

func (s *survey) late() bool { return time.Now().After(s.deadline) }

// processes is those of which a file is to be looked for.
func (s *survey) processes(f *symbols.File) []int {
	if s.pids != nil {
		return s.pids
	}
	pids, known := s.mappers[f]
	if known {
		return pids
	}
	self := os.Getpid()
	for _, pid := range symbols.AllPIDs() {
		if s.late() {
			break
		}
		if pid == self {
			continue
		}
		switch may, err := f.MayMap(pid); {
		case may:
			pids = append(pids, pid)
		case errors.Is(err, fs.ErrPermission):
			s.hidden[f]++
		}
	}
	s.mappers[f] = pids
	return pids
}

// see looks at a process once.
func (s *survey) see(pid int) (*symbols.Sight, error) {
	if sight := s.sights[pid]; sight != nil {
		return sight, nil
	}
	if err := s.errs[pid]; err != nil {
		return nil, err
	}
	sight, err := symbols.See(pid)
	if err != nil {
		s.errs[pid] = err
		return nil, err
	}
	s.sights[pid] = sight
	return sight, nil
}

// seeAgain looks anew: a process goes on while it is looked at, and what speaks against
// the numbers must have been so twice.
func (s *survey) seeAgain(pid int) (*symbols.Sight, error) {
	if old := s.sights[pid]; old != nil {
		old.Close()
		delete(s.sights, pid)
	}
	return s.see(pid)
}

// look finds what is to be said of one probe.
func (s *survey) look(p *Probe, t *Target) *surveyed {
	var f surveyed
	for _, pid := range s.processes(p.File) {
		if f.more = len(s.sights) >= mostLooked && s.sights[pid] == nil; f.more {
			break
		}
		if s.late() || s.follow && isHeld(pid) {
			continue
		}
		sight, err := s.see(pid)
		switch {
		case err == nil:
			how, at := stands(sight, p)
			if how.gap() {
				if sight, err = s.seeAgain(pid); err != nil {
					f.ended++
					continue
				}
				how, at = stands(sight, p)
			}
			if s.pids != nil || how != absent { // else it only reads the file
				f.add(how, at)
			}
		case errors.Is(err, fs.ErrPermission):
			f.denied++
		default:
			f.ended++
		}
	}
	f.late = s.late()
	f.denied += s.hidden[p.File]
	f.twin = s.twin(p, t)
	return &f
}

// twin names another file of the processes that has a function of the same name, as a
// program has that was linked with a copy of it.
func (s *survey) twin(p *Probe, t *Target) string {
	if t == nil || p.Kind == USDT || !p.File.Library || p.Function.Into > 0 || p.Function.Unnamed {
		return ""
	}
	for _, other := range t.all {
		if other == p.File || len(other.Lookup(p.Function.Name)) == 0 {
			continue
		}
		for _, sight := range s.sights {
			if len(sight.Of(other)) > 0 {
				name, function := base(other), p.Function.Demangled()
				return fmt.Sprintf("%s has a %s of its own, which may have the calls: probe %s:%s, too", name, function, name, function)
			}
		}
	}
	return ""
}

// isHeld tells a command that has not begun: see Hold.
func isHeld(pid int) bool {
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && bytes.Contains(args, []byte("\x00"+HeldArg+"\x00"))
}

// stands finds how a probe stands in a process: as the first of its points that is not
// in order.
func stands(sight *symbols.Sight, p *Probe) (standing, seen) {
	regions := sight.Of(p.File)
	if !slices.ContainsFunc(regions, func(r symbols.Region) bool { return r.Code }) && len(expectedCopies(sight, p)) == 0 {
		r, _ := sight.Namesake(p.File)
		return absent, seen{Sight: sight, of: r}
	}
	how, at := unmapped, seen{Sight: sight}
	for i, point := range p.Points[:min(len(p.Points), mostSites)] {
		h, a := standsAt(sight, regions, p, point)
		if i == 0 || h != present {
			how, at = h, a
		}
		if h != present {
			break
		}
	}
	return how, at
}

// standsAt finds how one point stands. A file can be mapped several times: if it is in
// order anywhere, its hits come from there; but a fit mapping without a breakpoint is
// worse than that.
func standsAt(sight *symbols.Sight, regions []symbols.Region, p *Probe, point symbols.Point) (how standing, at seen) {
	how, at = unmapped, seen{Sight: sight}
	for _, r := range regions {
		if !r.Code || !r.Holds(point.Offset) {
			continue
		}
		h, a := inRegion(sight, r, p, point)
		switch {
		case h == missing:
			return h, a
		case how != present:
			how, at = h, a
		}
	}
	if how == unmapped {
		if copies := expectedCopies(sight, p); len(copies) > 0 {
			return copied, copies[0]
		}
	}
	if how == present && point.Semaphore != 0 && disarmedAt(sight, regions, point) {
		how = disarmed
	}
	return how, at
}

// inRegion looks at the one place in memory.
func inRegion(sight *symbols.Sight, r symbols.Region, p *Probe, point symbols.Point) (standing, seen) {
	at := seen{Sight: sight, of: r, addr: r.Start + uint64(point.Offset-r.Offset)}
	switch {
	case r.Shared:
		return shared, at
	case r.Writable:
		return writable, at
	}
	memory, err := sight.Read(at.addr, maxInstruction)
	file, ferr := p.File.CodeAt(p.Function, point.Offset, maxInstruction)
	if err != nil || ferr != nil || len(file) == 0 {
		return unread, at
	}
	n := breakpoint(p.File.Machine, memory, file)
	if n > 0 && memory[0] == 0xe8 && !callsKernel(sight, at.addr, memory) {
		n = 0
	}
	at.code = memory[:min(max(n, 1), len(memory))]
	switch {
	case n > 0:
		return present, at
	case memory[0] != file[0]:
		return changed, at
	}
	if was, _ := sight.WasWritable(r); was {
		return onceWritable, at
	}
	return missing, at
}

// optimisedNop10 is what stands for a nop of 10 bytes that has become a call, up to the
// distance: lea -0x80(%rsp),%rsp; call.
var optimisedNop10 = []byte{0x48, 0x8d, 0x64, 0x24, 0x80, 0xe8}

// breakpoint is how many bytes of memory are one of the kernel's where the file has
// other code, or 0.
func breakpoint(m elf.Machine, memory, file []byte) int {
	switch m {
	case elf.EM_X86_64, elf.EM_386:
		switch {
		case memory[0] == 0xcc:
			return 1
		case bytes.HasPrefix(memory, optimisedNop10) && nopLength(file) == 10:
			return len(optimisedNop10)
		case memory[0] == 0xe8 && file[0] != 0xe8 && len(memory) >= 5:
			return 1
		}
	case elf.EM_AARCH64:
		const brk = 0xd42000a0 // BRK64_OPCODE_UPROBES
		if len(memory) >= 4 && binary.LittleEndian.Uint32(memory) == brk {
			return 4
		}
	}
	return 0
}

// callsKernel tells whether the call at an address leads to where optimised breakpoints
// do.
func callsKernel(sight *symbols.Sight, addr uint64, code []byte) bool {
	to := addr + 5 + uint64(int64(int32(binary.LittleEndian.Uint32(code[1:]))))
	r := sight.At(to)
	return r != nil && r.Path == trampolines
}

// expectedCopies is where, by the rest of the file, its code should be, and executable
// memory of no file is.
func expectedCopies(sight *symbols.Sight, p *Probe) (all []seen) {
	if len(p.Points) == 0 {
		return nil
	}
	for _, addr := range sight.Expected(p.File, p.Points[0].Offset) {
		if r := sight.At(addr); r != nil && r.Code && r.Anonymous() {
			all = append(all, seen{Sight: sight, addr: addr, of: *r})
		}
	}
	return all
}

// disarmedAt tells whether a usdt probe's semaphore is 0 in every copy.
func disarmedAt(sight *symbols.Sight, regions []symbols.Region, point symbols.Point) (zero bool) {
	for _, r := range regions {
		if r.Code || !r.Writable || !r.Holds(point.Semaphore) {
			continue
		}
		b, err := sight.Read(r.Start+uint64(point.Semaphore-r.Offset), 2)
		if err != nil || len(b) < 2 || b[0] != 0 || b[1] != 0 {
			return false
		}
		zero = true
	}
	return zero
}
