package probes

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"uprobetop/symbols"
)

// Target is where functions are looked for: a file, or the files that a process
// has mapped.
type Target struct {
	Label   string           // "mysqld 2841", "/usr/bin/perl"
	Process *symbols.Process // nil: every process that maps the file
	Files   []*symbols.File  // where names are looked for

	all []*symbols.File // the same before Narrow: what is dangerous can come from any
}

// FileTarget opens one file as a target.
func FileTarget(path string) (*Target, error) {
	f, err := symbols.Open(path)
	if err != nil {
		return nil, err
	}
	files := []*symbols.File{f}
	return &Target{Label: filepath.Base(symbols.Printable(path)), Files: files, all: files}, nil
}

// ProcessTarget opens the files that a process has mapped. A file that cannot be
// read is left out if another one can.
func ProcessTarget(pid int) (*Target, error) {
	p, err := symbols.OpenProcess(pid)
	if err != nil {
		return nil, err
	}
	t := &Target{Label: fmt.Sprintf("%s %d", p.Comm, pid), Process: p}
	var errs []error
	for _, m := range p.Mappings {
		f, err := p.File(m)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		t.all = append(t.all, f)
	}
	if len(t.all) == 0 {
		return nil, errors.Join(errs...)
	}
	t.Files = t.all
	return t, nil
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
func (t *Target) Filter() Filter {
	if t.Process == nil {
		return Filter{}
	}
	return Filter{PIDs: []int{t.Process.PID}}
}

// Narrow keeps the files that a name means: a path, the last part of one, or a
// library's short name. It tells whether there is any.
func (t *Target) Narrow(name string) bool {
	files := t.named(name)
	if len(files) == 0 {
		return false
	}
	t.Files = files
	return true
}

func (t *Target) named(name string) []*symbols.File {
	var files []*symbols.File
	if t.Process != nil {
		for _, m := range t.Process.Find(name) {
			for _, f := range t.Files {
				if f.Path == m.Path {
					files = append(files, f)
				}
			}
		}
		return files
	}
	for _, f := range t.Files {
		if f.Path == name || filepath.Base(f.Path) == name {
			files = append(files, f)
		}
	}
	return files
}

// Resolve turns specs into requests, all of latency if so asked. A name that no
// file has is an error, with the names nearest to it: nothing is half done.
func (t *Target) Resolve(specs []Spec, latency bool) ([]Request, error) {
	var requests []Request
	seen := map[*symbols.Function]int{} // index into requests
	for _, s := range specs {
		files := t.Files
		if s.Target != "" {
			if files = t.named(s.Target); len(files) == 0 {
				return nil, fmt.Errorf("%s has no file %s mapped", t.Label, symbols.Printable(s.Target))
			}
		}
		found := lookup(files, s.Function)
		if len(found) == 0 {
			return nil, notFound(t, files, s.Function)
		}
		for _, r := range found {
			if latency || s.Kind == Return {
				r.Kind = Return
			}
			if i, again := seen[r.Function]; again {
				requests[i].Kind = max(requests[i].Kind, r.Kind) // the one asked for more
				continue
			}
			seen[r.Function] = len(requests)
			requests = append(requests, r)
		}
	}
	return requests, nil
}

// lookup finds a name in every file that has it. The loader's own malloc and
// the like are left out where a library replaces them.
func lookup(files []*symbols.File, name string) []Request {
	var found, loader []Request
	for _, f := range files {
		for _, fn := range f.Lookup(name) {
			r := Request{File: f, Function: fn}
			if strings.HasPrefix(filepath.Base(f.Path), "ld-linux") {
				loader = append(loader, r)
			} else {
				found = append(found, r)
			}
		}
	}
	if len(found) == 0 {
		return loader
	}
	return found
}

func notFound(t *Target, files []*symbols.File, name string) error {
	shown := symbols.Printable(name)
	functions := 0
	var near []string
	for _, f := range files {
		functions += len(f.Functions)
		near = append(near, f.Nearest(name, 3)...)
	}
	if functions == 0 {
		return fmt.Errorf("%s has no function symbols: it is stripped, and only a build with symbols can be probed by name", t.Label)
	}
	if len(near) == 0 {
		return fmt.Errorf("there is no function %s in %s", shown, t.Label)
	}
	return fmt.Errorf("there is no function %s in %s: the nearest names are %s", shown, t.Label, strings.Join(near[:min(3, len(near))], ", "))
}

// Hazards looks for what makes return probes dangerous in this target. Exceptions
// can come from any file; of stack switching only the executable is asked: a
// library that could (libcrypto) seldom does.
func (t *Target) Hazards() Hazards {
	var h Hazards
	for i, f := range t.all {
		if f.Unwinds && h.Unwinds == "" {
			h.Unwinds = f.Path
		}
		if f.Switches && i == 0 {
			h.Switches = f.Path
		}
		if f.Library && t.Process == nil {
			h.Shared = f.Path
		}
	}
	return h
}
