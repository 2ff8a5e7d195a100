package symbols

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"strings"
)

// byLink looks for the debug file that the file names in .gnu_debuglink, where gdb
// looks for it ("Separate Debug Files" in its manual).
func (s *search) byLink() bool {
	name, sum, err := s.im.debugLink()
	if err != nil {
		return s.note(".gnu_debuglink", err)
	}
	if name == "" {
		return false
	}
	root, path := s.host(), s.f.Path
	if s.within != "" {
		root = s.within
		path = filepath.Join(root, path)
	} else if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return false
	}
	for _, in := range []string{dir, filepath.Join(dir, ".debug"), filepath.Join(root, debugDir, strings.TrimPrefix(dir, s.within))} {
		if s.file(filepath.Join(in, name), func(t *Twin) error { return t.linked(s.f.BuildID, sum) }) {
			return true
		}
	}
	return false
}

// debugLink reads .gnu_debuglink: a file's name, and the CRC-32 of its contents
// behind it, at the next multiple of four bytes.
func (im *image) debugLink() (name string, sum uint32, err error) {
	const longest = 4096
	sec, ok := im.sectionNamed(".gnu_debuglink")
	if !ok {
		return "", 0, nil
	}
	b, err := im.bytes(sec.off, min(sec.size, longest), "link to a debug file")
	if err != nil {
		return "", 0, err
	}
	end := bytes.IndexByte(b, 0)
	at := roundUp(uint64(end)+1, 4)
	if end <= 0 || !within(at, 4, uint64(len(b))) || bytes.IndexByte(b[:end], '/') >= 0 {
		return "", 0, errors.New("it is damaged")
	}
	return string(b[:end]), order.Uint32(b[at:]), nil
}

// linked tells why a twin is not the one that a link means: the checksum must be
// right, and the build id where both have one.
func (t *Twin) linked(id string, sum uint32) error {
	if id != "" && t.BuildID != "" {
		if err := t.of(id); err != nil {
			return err
		}
	}
	if t.im.size > min(maxFetched, t.im.most()) {
		return fmt.Errorf("it has %d MB, of which the checksum is not made", t.im.size>>20)
	}
	crc := crc32.NewIEEE()
	all := io.NewSectionReader(t.im.r, 0, int64(t.im.size))
	if _, err := io.CopyBuffer(crc, struct{ io.Reader }{all}, make([]byte, cmp.Or(min(t.im.size, chunk), 1))); err != nil {
		return cause(err)
	}
	if crc.Sum32() != sum {
		return errors.New("its checksum is not the one in .gnu_debuglink")
	}
	return nil
}

// sectionNamed is the first section of a name.
func (im *image) sectionNamed(names ...string) (section, bool) {
	text, err := im.sectionNames()
	if err != nil {
		return section{}, false
	}
	t := table{strings: text}
	for _, name := range names {
		for _, s := range im.sections {
			if t.name(s.name) == name {
				return s, true
			}
		}
	}
	return section{}, false
}
