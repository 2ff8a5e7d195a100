package symbols

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Sight is a look at one process: what it has mapped, and what is in its memory. It is
// of the moment of See, and the process may go on meanwhile.
type Sight struct {
	PID     int
	Comm    string // fit for a terminal
	Regions []Region

	p   *Process
	mem *os.File // nil: it may not be read
}

// Region is one range of addresses in a process.
type Region struct {
	Mapping
	Offset                 Offset // of the file at Start
	Code, Writable, Shared bool
}

// Holds tells whether the region has this place of its file.
func (r *Region) Holds(at Offset) bool { return at >= r.Offset && uint64(at-r.Offset) < r.End-r.Start }

// Anonymous tells whether the region is of no file on a disk: memory that was asked for,
// with a name or without, and pages of huge ones.
func (r *Region) Anonymous() bool { return r.Ino == 0 || r.Huge() }

// InMemory tells whether the region is of a file that no directory ever held.
func (m *Mapping) InMemory() bool { return strings.HasPrefix(m.Path, "/memfd:") }

// Huge tells whether the region is of huge pages that were asked for as such.
func (r *Region) Huge() bool { return strings.HasPrefix(r.Path, "/anon_hugepage") }

// See looks at a process. It needs the rights of a debugger for all of it; without them
// the mappings alone may be seen. An error is one sentence.
func See(pid int) (*Sight, error) {
	_, st, err := lookAt(pid)
	if err != nil {
		return nil, err
	}
	p := &Process{PID: pid, Comm: Printable(st.Comm), Start: st.Starttime, seen: new(atomic.Uint64)}
	if ended(st) {
		return nil, fmt.Errorf("process %s has ended", p)
	}
	if st.State == "Z" {
		p.through = livingThread(pid)
	}
	s := &Sight{PID: pid, Comm: p.Comm, p: p}
	// The memory first: if the process becomes another program, the old one's is empty.
	s.mem, _ = os.Open(p.path("mem")) // without it Read fails
	maps, err := os.ReadFile(p.path("maps"))
	if err != nil {
		s.Close()
		return nil, p.cannot("looked into", err)
	}
	for line := range strings.Lines(string(maps)) {
		r, err := parseRegion(strings.TrimSuffix(line, "\n"))
		if err != nil {
			s.Close()
			return nil, p.cannot("looked into", err)
		}
		s.Regions = append(s.Regions, r)
	}
	return s, nil
}

// Close lets the process go.
func (s *Sight) Close() {
	if s.mem != nil {
		s.mem.Close()
	}
}

// String is the name and number: mysqld 2841.
func (s *Sight) String() string { return s.Comm + " " + strconv.Itoa(s.PID) }

func parseRegion(line string) (Region, error) {
	m, code, err := parseMap(line)
	if err != nil {
		return Region{}, err
	}
	part := strings.SplitN(line, " ", 4) // of which there are at least five
	off, err := strconv.ParseUint(part[2], 16, 64)
	if err != nil || len(part[1]) < 4 {
		return Region{}, fmt.Errorf("its list of mappings has a line that is not understood: %q", line)
	}
	return Region{Mapping: m, Offset: Offset(off), Code: code, Writable: part[1][1] == 'w', Shared: part[1][3] == 's'}, nil
}

// Of is the regions of a file.
func (s *Sight) Of(f *File) (rs []Region) {
	for _, r := range s.Regions {
		if r.Ino != 0 && s.isOf(f, r) {
			rs = append(rs, r)
		}
	}
	return rs
}

// isOf tells whether a region is of a file. Overlays show one inode as of several
// devices, see Same.
func (s *Sight) isOf(f *File, r Region) bool {
	id, ok := f.onceListed.as(f)
	switch {
	case ok && r.id() == id, r.id() == fileID{f.Dev, f.Ino}:
		return true
	case r.Ino != f.Ino && (!ok || r.Ino != id.ino):
		return false
	}
	var st unix.Stat_t
	err := unix.Stat(s.p.path("map_files", fmt.Sprintf("%x-%x", r.Start, r.End)), &st)
	return err == nil && f.layered && st.Ino == f.Ino && uint64(st.Size) == f.size && st.Ctim == f.changed
}

// listedOnce keeps what maps files call a file.
type listedOnce struct {
	sync.Once
	id fileID
	ok bool
}

func (l *listedOnce) as(f *File) (fileID, bool) {
	l.Do(func() {
		if f.file == nil {
			return
		}
		m, ok := f.mappedAs()
		l.id, l.ok = m.id(), ok
	})
	return l.id, l.ok
}

// Namesake is a region of another file of the same name, but for its version. ok is
// false if there is none.
func (s *Sight) Namesake(f *File) (r Region, ok bool) {
	names := []string{unversioned(f.Path)}
	if real, err := os.Readlink(f.Open); err == nil { // the path that the kernel knows
		names = append(names, unversioned(real))
	}
	for _, r := range s.Regions {
		name := strings.TrimPrefix(unversioned(r.Path), "memfd:")
		if r.Ino != 0 && r.Code && (name == names[0] || len(names) > 1 && name == names[1]) && !s.isOf(f, r) {
			s.p.checkDeleted(&r.Mapping)
			r.Deleted = r.Deleted && !r.InMemory()
			return r, true
		}
	}
	return Region{}, false
}

// At is the region that has an address, or nil.
func (s *Sight) At(addr uint64) *Region {
	for i := range s.Regions {
		if r := &s.Regions[i]; r.Start <= addr && addr < r.End {
			return r
		}
	}
	return nil
}

// Expected is the addresses at which a process would have a place of a file, as far as
// the other parts of the file tell: once for each time that it is loaded.
func (s *Sight) Expected(f *File, at Offset) (addrs []uint64) {
	im, _, err := readImage(f.r, f.size)
	if err != nil {
		return nil
	}
	place, ok := im.addressOf(uint64(at))
	if !ok {
		return nil
	}
	seen := map[uint64]bool{}
	for _, r := range s.Of(f) {
		start, ok := im.addressOf(uint64(r.Offset))
		if addr := r.Start - start + place; ok && !seen[addr] {
			seen[addr] = true
			addrs = append(addrs, addr)
		}
	}
	return addrs
}

// addressOf is where the file's loaded segments have an offset; a segment begins
// somewhere in a page, which is mapped whole.
func (im *image) addressOf(off uint64) (uint64, bool) {
	page := uint64(os.Getpagesize())
	for _, s := range im.segments {
		if from := s.off &^ (page - 1); s.isCode() && off >= from && off < s.off+s.filesz {
			return s.addr + off - s.off, true
		}
	}
	for _, s := range im.segments {
		if from := s.off &^ (page - 1); s.isLoaded() && off >= from && off < s.off+s.filesz {
			return s.addr + off - s.off, true
		}
	}
	return 0, false
}

// Read reads the memory at an address. It may be less than asked for, or an error, where
// the process or the kernel does not let it be read.
func (s *Sight) Read(addr uint64, n int) ([]byte, error) {
	if s.mem == nil {
		return nil, os.ErrPermission
	}
	b := make([]byte, n)
	got, err := s.mem.ReadAt(b, int64(addr))
	if got > 0 {
		return b[:got], nil
	}
	return nil, err
}

// WasWritable tells whether a private region has been writable at any time: the kernel
// then goes on accounting its memory (VM_ACCOUNT, mprotect_fixup, Linux 5.15 to 7.3).
// known is false if that cannot be read.
func (s *Sight) WasWritable(r Region) (was, known bool) {
	smaps, err := os.Open(s.p.path("smaps"))
	if err != nil {
		return false, false
	}
	defer smaps.Close()
	head := fmt.Appendf(nil, "%08x-%08x ", r.Start, r.End)
	here := false
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		line := lines.Bytes()
		flags, found := bytes.CutPrefix(line, []byte("VmFlags:"))
		switch {
		case bytes.HasSuffix(line, []byte("kB")):
		case !found:
			here = here || bytes.HasPrefix(line, head)
		case here:
			return bytes.Contains(flags, []byte(" ac")), true
		}
	}
	return false, false
}

// AllPIDs is every process that can be seen here, but for the kernel's own threads,
// which have no memory.
func AllPIDs() (pids []int) {
	proc, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, p := range proc {
		if pid, err := strconv.Atoi(p.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// MayMap tells quickly whether a process may have a file mapped: of an overlay that has
// several numbers any file of the same inode could be it.
func (f *File) MayMap(pid int) (bool, error) {
	maps, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/maps")
	if err != nil {
		return false, err // it has ended, or is not ours to see
	}
	id, ok := f.onceListed.as(f)
	if !ok {
		id = fileID{f.Dev, f.Ino}
	}
	if f.layered {
		return bytes.Contains(maps, fmt.Appendf(nil, " %d ", id.ino)), nil
	}
	return bytes.Contains(maps, needleOf(id)), nil
}
