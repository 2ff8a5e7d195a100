package probes

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"uprobetop/symbols"
)

// Target is where functions are looked for, and whose hits count: files, of
// everybody who maps them, or the files that processes have mapped.
type Target struct {
	Label string           // "mysqld 2841", "perl", "nginx.service, 24 processes"
	Files []*symbols.File  // where names are looked for, each inode once
	Names *symbols.Sources // of files that have none; nil: what every host has

	filter  Filter
	alive   []func() bool    // of the processes and threads that were named
	process *symbols.Process // the only one that was named, or nil
	mapped  []mapped         // by those whose hits count; nil: the files are those of no process
	all     []*symbols.File  // Files before Narrow: what is dangerous can come from any
}

// mapped is the files that a process has mapped and that could be read, the executable
// first.
type mapped struct {
	pid   int
	files []*symbols.File
}

// FileTarget opens files as a target. One that cannot be read is left out if
// another one can.
func FileTarget(paths ...string) (*Target, error) {
	t := &Target{}
	return t, t.Only(paths...)
}

// Only looks for names in these files alone, from now on, as Narrow does; they need
// not have been in the target.
func (t *Target) Only(paths ...string) error {
	files, err := t.open(paths)
	if err != nil {
		return err
	}
	t.keep(files)
	return nil
}

// Add looks for names in these files, too.
func (t *Target) Add(paths ...string) error {
	files, err := t.open(paths)
	if err != nil {
		return err
	}
	all := slices.Clone(t.Files)
	for _, f := range files {
		if !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	t.keep(all)
	return nil
}

// keep sets the files, which name a target that is not processes.
func (t *Target) keep(files []*symbols.File) {
	t.Files = files
	if !t.filter.Everybody() {
		return
	}
	var names []string
	for _, f := range files {
		names = append(names, filepath.Base(symbols.Printable(f.Path)))
	}
	t.Label = strings.Join(names, ", ")
}

// open opens the files that the target does not have yet. One that cannot be read
// is left out if another one can.
func (t *Target) open(paths []string) (files []*symbols.File, err error) {
	var errs []error
	for _, path := range paths {
		if abs, err := filepath.Abs(path); err == nil {
			path = abs // what is printed of it can be read again anywhere
		}
		f, err := t.Names.Open(path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if i := slices.IndexFunc(t.all, f.Same); i >= 0 {
			_ = f.Close()
			f = t.all[i]
		} else {
			t.all = append(t.all, f)
		}
		if !slices.Contains(files, f) {
			files = append(files, f)
		}
	}
	if len(files) == 0 {
		return nil, errors.Join(errs...)
	}
	return files, nil
}

// Close lets the files go.
func (t *Target) Close() error {
	var errs []error
	for _, f := range t.all {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// Filter is whose hits count for this target.
func (t *Target) Filter() Filter { return t.filter }

// Ended tells that every process and thread that was named has ended: nothing can
// be hit any more. A cgroup can always get new ones.
func (t *Target) Ended() bool {
	return len(t.alive) > 0 && len(t.filter.Cgroups) == 0 &&
		!slices.ContainsFunc(t.alive, func(alive func() bool) bool { return alive() })
}

// Successor finds the process as which a target of one process runs again after
// that has ended. It looks at every process of the host.
func (t *Target) Successor() (pid int, ok bool) {
	if t.process == nil || t.process.Alive() {
		return 0, false
	}
	return t.process.Successor()
}

// Narrow keeps the files that a name means: a path, the last part of one, or a
// library's short name. It tells whether there is any.
func (t *Target) Narrow(name string) bool {
	files := t.named(name)
	if len(files) == 0 {
		return false
	}
	t.keep(files)
	return true
}

// Has tells whether a file has a function of exactly this name.
func (t *Target) Has(function string) bool {
	return slices.ContainsFunc(t.Files, func(f *symbols.File) bool { return len(f.Lookup(function)) > 0 })
}

// HasBuild tells whether the target has the very build of a file.
func (t *Target) HasBuild(of *symbols.File) bool {
	return of.BuildID != "" && slices.ContainsFunc(t.all, func(f *symbols.File) bool { return f.BuildID == of.BuildID })
}

// HasFile tells whether a name means a file of the target.
func (t *Target) HasFile(name string) bool { return len(t.named(name)) > 0 }

// filesOf is where a spec looks for its function.
func (t *Target) filesOf(s Spec) ([]*symbols.File, error) {
	if s.Target == "" {
		return t.Files, nil
	}
	files := t.named(s.Target)
	if len(files) == 0 {
		return nil, cmp.Or(t.MeansMarker(s), t.NotMapped(s.Target))
	}
	return files, nil
}

// NotMapped is the error for a file of which nobody of the target has code mapped.
func (t *Target) NotMapped(name string) error {
	text := fmt.Sprintf("%s has no file %s mapped", t.Label, symbols.Printable(name))
	switch same := symbols.Find(t.all, filepath.Base(name)); {
	case !strings.Contains(name, "/"):
	case len(same) > 0:
		text += ": its own is " + symbols.Printable(same[0].Path)
	case exists(name):
		text += ": without -p it is probed in whoever loads it, as soon as that does"
	}
	return errors.New(text)
}

// named is the files that a name means. A path may lead to a file that processes
// know by another one.
func (t *Target) named(name string) []*symbols.File {
	files := symbols.Find(t.all, name)
	var st unix.Stat_t
	if len(files) > 0 || !strings.Contains(name, "/") || unix.Stat(name, &st) != nil {
		return files
	}
	for _, f := range t.all {
		if f.Dev == st.Dev && f.Ino == st.Ino {
			files = append(files, f)
		}
	}
	return files
}

// Hazards looks for what makes return probes dangerous in this target. Exceptions
// can come from any file; of stack switching only programs are asked: a library
// that could (libcrypto) seldom does.
func (t *Target) Hazards(attach Method) Hazards {
	var h Hazards
	hostWide := HostWide(t.filter, attach)
	for _, f := range t.all {
		if f.Unwinds && h.Unwinds == "" {
			h.Unwinds = f.Path
		}
		if f.Switches && !f.Library && h.Switches == "" {
			h.Switches = f.Path
		}
		if f.Library && hostWide && slices.Contains(t.Files, f) {
			h.Shared = f.Path
		}
	}
	return h
}
