package symbols

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Sources is where the names of a file come from that has no symbol table. nil is
// what every host has, see [File.Source]; what is here is tried besides.
type Sources struct {
	Twins      []*Twin     // files that somebody named, tried first
	IDsOnly    bool        // which file a twin belongs to is told by build ids alone, since there are several
	Debuginfod *Debuginfod // asked last; nil: no server is asked
	Root       string      // of the host's directories of debug files; empty: /

	within string // the root of a process in a container, looked into before Root
}

// Open is the function Open with these sources.
func (s *Sources) Open(path string) (*File, error) { return s.OpenAs(path, path) }

// in is the same sources for a file that is known by its path below root; for the
// host's own root that is empty.
func (s *Sources) in(root string) *Sources {
	if root == "" {
		return s
	}
	var inside Sources
	if s != nil {
		inside = *s
	}
	inside.within = root
	return &inside
}

// roots is where directories of debug files are.
func (s *Sources) roots() []string {
	if s.within != "" {
		return []string{s.within, s.host()}
	}
	return []string{s.host()}
}

func (s *Sources) host() string {
	if s.Root == "" {
		return "/"
	}
	return s.Root
}

const debugDir = "usr/lib/debug" // below a root; where gdb and the distributions have it

// search looks for the names of one file.
type search struct {
	*Sources
	f       *File
	im      *image
	defined map[uint16]string // versions that the file defines
	found   *scan
}

// findNames adds the functions of a stripped file to what was found by its dynamic
// symbols: those of the first source that has any.
func (f *File) findNames(im *image, dynamic []*table, found *scan) {
	s := search{Sources: f.from, f: f, im: im, found: found}
	if s.Sources == nil {
		s.Sources = &Sources{}
	}
	for _, t := range dynamic {
		s.defined = t.defined
	}
	for _, look := range []func() bool{s.byHand, s.byBuildID, s.byLink, s.compressed, s.fromGo, s.fromServer} {
		if look() {
			f.Stripped = false
			return
		}
	}
}

// note keeps why a source was passed over.
func (s *search) note(what string, err error) bool {
	s.f.Notes = append(s.f.Notes, fmt.Sprintf("%s is not used for the names of %s: %s", what, Printable(s.f.Path), Printable(err.Error())))
	return false
}

// take adds the names of a twin that fits. What is the twin in a note.
func (s *search) take(t *Twin, what, source string) bool {
	shift, err := t.shift(s.im)
	if err != nil {
		return s.note(what, err)
	}
	names, err := t.scan(s.im, shift, s.defined)
	if err != nil {
		return s.note(what, err)
	}
	if len(names.symbols) == 0 {
		return s.note(what, errNoNames)
	}
	if err := agree(s.found.symbols, names.symbols); err != nil {
		return s.note(what, err)
	}
	s.add(names, source)
	return true
}

// agree holds the names of a twin against those that the file itself has: one at another
// address means that the twin is not of this build, whatever its id.
func agree(own, theirs []symbol) error {
	const ( // what is known of a name
		apart = iota + 1
		same
	)
	at, known := map[string][]uint64{}, map[string]int{}
	for i := range own {
		at[own[i].Name] = append(at[own[i].Name], own[i].addr)
	}
	for i := range theirs {
		t := &theirs[i]
		if all, shared := at[t.Name]; shared {
			known[t.Name] = max(known[t.Name], apart)
			if slices.Contains(all, t.addr) {
				known[t.Name] = same
			}
		}
	}
	for i := range own {
		if known[own[i].Name] == apart {
			return fmt.Errorf("it has %s at another address than the file", Printable(own[i].Name))
		}
	}
	return nil
}

func (s *search) add(names *scan, source string) {
	s.found.symbols = append(s.found.symbols, names.symbols...)
	s.found.others = append(s.found.others, names.others...)
	s.found.unwinds = s.found.unwinds || names.unwinds
	s.found.switches = s.found.switches || names.switches
	s.f.Source = source
}

// byHand takes the twin that somebody named. One that is of another file is no
// reason for a note.
func (s *search) byHand() bool {
	for _, t := range s.Twins {
		if t.belongs(s.f, s.im, s.IDsOnly) == nil && s.take(t, Printable(t.Path), "--symbols "+Printable(t.Path)) {
			return true
		}
	}
	return false
}

// byBuildID looks into the directories of debug files that are named by build id.
func (s *search) byBuildID() bool {
	id := s.f.BuildID
	if len(id) <= 2 {
		return false
	}
	for _, root := range s.roots() {
		path := filepath.Join(root, debugDir, ".build-id", id[:2], id[2:]+".debug")
		if s.file(path, func(t *Twin) error { return t.of(id) }) {
			return true
		}
	}
	return false
}

// file takes the debug file at a path, if there is one and check does not refuse it.
func (s *search) file(path string, check func(*Twin) error) bool {
	if _, err := os.Stat(path); err != nil {
		return false // one that may not be looked at counts as none: nobody named it
	}
	shown := Printable(path)
	t, err := openTwin(path)
	if err != nil {
		return s.note(shown, err)
	}
	defer t.Close()
	if t.dev == s.f.Dev && t.ino == s.f.Ino {
		return false
	}
	if err := check(t); err != nil {
		return s.note(shown, err)
	}
	return s.take(t, shown, "debug file "+shown)
}

// fromGo reads the table that the runtime of Go has of its functions.
func (s *search) fromGo() bool {
	if !s.f.Go {
		return false
	}
	functions, err := s.im.goFunctions()
	if err != nil {
		return s.note("the function table of Go", err)
	}
	if len(functions) > 0 {
		s.add(&scan{symbols: functions}, "Go's function table")
	}
	return len(functions) > 0
}

// fromServer fetches the debug file, if that was asked for.
func (s *search) fromServer() bool {
	id := s.f.BuildID
	if s.Debuginfod == nil {
		return false
	}
	if id == "" {
		return s.note("debuginfod", errors.New("it has no build id to ask for"))
	}
	t, err := s.Debuginfod.find(id, s.f.Path)
	if err != nil {
		return s.note("debuginfod", err)
	}
	defer t.Close()
	return s.take(t, "the debug file of debuginfod", "debuginfod")
}
