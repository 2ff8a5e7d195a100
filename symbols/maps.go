package symbols

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// deletedMark is what the kernel writes behind the path of a deleted file.
const deletedMark = " (deleted)"

// mapped reads /proc/PID/maps: one Mapping for each file with code.
func (p *Process) mapped() ([]Mapping, error) {
	r, err := os.Open(p.path("maps"))
	if err != nil {
		return nil, p.cannot("looked into", err)
	}
	defer r.Close()
	ms, err := readMaps(r)
	if err != nil {
		return nil, p.cannot("looked into", err)
	}
	for i := range ms {
		p.checkDeleted(&ms[i])
	}
	exe := slices.IndexFunc(ms, func(m Mapping) bool { return m.Path == p.Exe })
	var st unix.Stat_t
	if unix.Stat(p.path("exe"), &st) == nil {
		if i := slices.IndexFunc(ms, func(m Mapping) bool { return m.Ino == st.Ino && m.Dev == st.Dev }); i >= 0 {
			exe = i
		}
	}
	if exe > 0 {
		m := ms[exe]
		ms = slices.Insert(slices.Delete(ms, exe, exe+1), 0, m)
	}
	return ms, nil
}

// checkDeleted tells a file that is deleted from one whose name ends as if.
func (p *Process) checkDeleted(m *Mapping) {
	if !strings.HasSuffix(m.Path, deletedMark) {
		return
	}
	var st unix.Stat_t
	if unix.Stat(p.path("root", m.Path), &st) == nil && st.Ino == m.Ino {
		return
	}
	m.Path, m.Deleted = strings.TrimSuffix(m.Path, deletedMark), true
}

// readMaps reads the lines of a maps file and keeps the first executable range
// of each file. The lines are read here rather than by procfs, because that
// takes a path apart at spaces.
func readMaps(r io.Reader) ([]Mapping, error) {
	var ms []Mapping
	seen := make(map[[2]uint64]bool)
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		m, code, err := parseMap(lines.Text())
		if err != nil {
			return nil, err
		}
		id := [2]uint64{m.Dev, m.Ino}
		if !code || m.Ino == 0 || !isFile(m.Path) || seen[id] {
			continue
		}
		seen[id] = true
		ms = append(ms, m)
	}
	return ms, lines.Err()
}

// isFile leaves out what has an inode and is still no file with functions:
// devices, shared memory without a name, and the kernel's own.
func isFile(path string) bool {
	return strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "/dev/") &&
		!strings.HasPrefix(path, "/SYSV") && !strings.HasPrefix(path, "/[aio]")
}

// parseMap reads one line of a maps file, such as
//
//	7f2c00000000-7f2c00021000 r-xp 00001000 fe:01 1835 /usr/lib/libc.so.6
func parseMap(line string) (m Mapping, code bool, err error) {
	bad := fmt.Errorf("its list of mappings has a line that is not understood: %q", line)
	// Single spaces between the first five, then padding, then the path, which
	// may have spaces of its own.
	part := strings.SplitN(line, " ", 6)
	if len(part) < 5 {
		return m, false, bad
	}
	from, to, ok1 := strings.Cut(part[0], "-")
	major, minor, ok2 := strings.Cut(part[3], ":")
	var errs [5]error
	var dev [2]uint64
	m.Start, errs[0] = strconv.ParseUint(from, 16, 64)
	m.End, errs[1] = strconv.ParseUint(to, 16, 64)
	dev[0], errs[2] = strconv.ParseUint(major, 16, 32)
	dev[1], errs[3] = strconv.ParseUint(minor, 16, 32)
	m.Ino, errs[4] = strconv.ParseUint(part[4], 10, 64)
	if !ok1 || !ok2 || len(part[1]) < 3 || errors.Join(errs[:]...) != nil {
		return m, false, bad
	}
	m.Dev = unix.Mkdev(uint32(dev[0]), uint32(dev[1]))
	if len(part) == 6 {
		// The kernel escapes a line feed, and nothing else.
		m.Path = strings.ReplaceAll(strings.TrimLeft(part[5], " "), `\012`, "\n")
	}
	return m, part[1][2] == 'x', nil
}

// isMapped says whether f is the inode of a mapping. Where stat(2) gives
// another device than the maps file, the kernel says what it calls this inode there.
func (f *File) isMapped(m Mapping) bool {
	if f.Ino != m.Ino {
		// An overlay may have numbers of its own in stat(2).
		return f.mapsAs(m)
	}
	return f.Dev == m.Dev || f.mapsAs(m)
}

func (f *File) mapsAs(want Mapping) bool {
	m, ok := f.mappedAs()
	return ok && m.Dev == want.Dev && m.Ino == want.Ino
}

// mappedAs maps the file here for a moment, to see how the kernel lists it. The
// mapping is shared: into private ones the kernel puts the file's breakpoints.
func (f *File) mappedAs() (m Mapping, ok bool) {
	b, err := unix.Mmap(int(f.file.Fd()), 0, 1, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return m, false
	}
	defer unix.Munmap(b)
	at := uint64(uintptr(unsafe.Pointer(&b[0])))
	r, err := os.Open("/proc/self/maps")
	if err != nil {
		return m, false
	}
	defer r.Close()
	for lines := bufio.NewScanner(r); lines.Scan(); {
		m, _, err := parseMap(lines.Text())
		if err == nil && m.Start <= at && at < m.End {
			return m, true
		}
	}
	return m, false
}
