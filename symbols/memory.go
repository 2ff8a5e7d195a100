package symbols

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
)

// memory is what a process has mapped as code, and a way to read all that it has
// in memory. Both are its own word: it can put there what it likes.
type memory struct {
	io.ReaderAt // by address
	io.Closer

	p    *Process
	code []region
	vdso region
}

// region is one range of addresses of a file.
type region struct {
	Mapping
	off uint64 // in the file
}

// fileID is how maps files name an inode.
type fileID struct{ dev, ino uint64 }

func (m *Mapping) id() fileID { return fileID{m.Dev, m.Ino} }

// memory opens the memory of a process, which wants the rights of a debugger.
func (p *Process) memory() (*memory, error) {
	mem, err := os.Open(p.path("mem"))
	if err != nil {
		return nil, err
	}
	m := &memory{ReaderAt: mem, Closer: mem, p: p}
	maps, err := os.Open(p.path("maps"))
	if err == nil {
		err = m.readRegions(maps)
		maps.Close()
	}
	if err != nil {
		mem.Close()
		return nil, err
	}
	return m, nil
}

func (m *memory) readRegions(r io.Reader) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		at, code, err := parseMap(lines.Text())
		if err != nil {
			return err
		}
		switch {
		case at.Path == "[vdso]":
			m.vdso = region{Mapping: at}
		case code && at.Ino != 0 && isFile(at.Path):
			// parseMap has found at least five parts.
			off, err := strconv.ParseUint(strings.SplitN(lines.Text(), " ", 4)[2], 16, 64)
			if err != nil {
				return err
			}
			m.code = append(m.code, region{at, off})
		}
	}
	return lines.Err()
}

// of is the regions of one file.
func (m *memory) of(id fileID) (rs []region) {
	for _, r := range m.code {
		if r.id() == id {
			rs = append(rs, r)
		}
	}
	return rs
}

// files is every file that has code in a process, each by one of its regions.
func (m *memory) files() (rs []region) {
	seen := map[fileID]bool{}
	for _, r := range m.code {
		if !seen[r.id()] {
			seen[r.id()] = true
			rs = append(rs, r)
		}
	}
	return rs
}

// open opens the file of a region as an image, which is good until close.
func (m *memory) open(r region) (im *image, closer io.Closer, err error) {
	file, st, err := openRegular(m.p.path("map_files", fmt.Sprintf("%x-%x", r.Start, r.End)))
	if err != nil {
		if file, st, err = openRegular(m.p.path("root", r.Path)); err != nil {
			return nil, nil, err
		}
		if st.Ino != r.Ino { // it was replaced: its slots are elsewhere
			file.Close()
			return nil, nil, fs.ErrNotExist
		}
	}
	if im, _, err = readImage(file, uint64(st.Size)); err != nil {
		file.Close()
		return nil, nil, err
	}
	return im, file, nil
}

// biases is what has to be added to the addresses of a file to have those in the
// memory of a process: once for each time that it is loaded.
func (im *image) biases(rs []region) (all []uint64) {
	page := uint64(os.Getpagesize())
	for _, r := range rs {
		for i := range im.segments {
			s := &im.segments[i]
			if !s.isCode() || r.off < s.off&^(page-1) || r.off >= s.off+s.filesz {
				continue
			}
			// A segment begins somewhere in a page, which is mapped whole.
			bias := r.Start - (s.addr - s.off + r.off)
			if bias%page == 0 && !slices.Contains(all, bias) {
				all = append(all, bias)
			}
			break
		}
	}
	return all
}

// tunables is what the environment of a process says to the C library's loader,
// such as which instructions not to use. ok is false if it cannot be read.
func (p *Process) tunables() (text string, ok bool) { return p.variable(tunablesVariable) }

// Variable is a variable of the environment with which a process was started, empty if
// it has none. ok is false if it cannot be read. A process can make its environment as
// large as its memory: only the beginning is read.
func Variable(pid int, name string) (value string, ok bool) {
	return (&Process{PID: pid}).variable(name)
}

func (p *Process) variable(name string) (value string, ok bool) {
	const most = 4 << 20 // bytes; the kernel's own limit is a quarter of the stack's
	f, err := os.Open(p.path("environ"))
	if err != nil {
		return "", false
	}
	defer f.Close()
	env, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return "", false
	}
	for v := range bytes.SplitSeq(env, []byte{0}) {
		if after, found := bytes.CutPrefix(v, []byte(name+"=")); found {
			return string(after), true
		}
	}
	return "", true
}

// tunablesVariable can make a program choose other variants than it would by its
// CPU alone (ld.so(8)).
const tunablesVariable = "GLIBC_TUNABLES"
