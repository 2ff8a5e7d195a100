package probes

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"uprobetop/symbols"
)

// Processes opens the files that those whom a filter names have mapped: each file
// once, however many processes share it. One that cannot be read is left out. A
// process or thread that is not there is an error; a cgroup may have no process,
// and the target then no file.
func Processes(f Filter) (*Target, error) { return ProcessesWith(f, nil) }

// ProcessesWith is Processes with these sources for the names of files that have none.
func ProcessesWith(f Filter, names *symbols.Sources) (*Target, error) {
	o := opener{t: &Target{filter: f, Names: names, mapped: []mapped{}}, seen: map[[2]uint64]*symbols.File{}}
	err := o.open(f)
	if err == nil && len(o.t.all) == 0 && o.denied != nil {
		err = o.denied
	}
	if err != nil {
		return nil, errors.Join(err, o.t.Close())
	}
	o.t.Files, o.t.Label = o.t.all, o.label()
	if len(o.processes) == 1 && len(f.TIDs)+len(f.Cgroups) == 0 {
		o.t.process = o.processes[0]
	}
	return o.t, nil
}

// ProcessTarget opens the files that a process has mapped.
func ProcessTarget(pid int) (*Target, error) { return Processes(Filter{PIDs: []int{pid}}) }

// opener collects the files of processes.
type opener struct {
	t         *Target
	seen      map[[2]uint64]*symbols.File // by device and inode, as in the processes' maps
	processes []*symbols.Process
	threads   []*symbols.Thread
	started   int   // processes that those named have started, if they count
	present   int   // processes of the cgroups
	denied    error // the first file that could not be read
}

func (o *opener) open(f Filter) error {
	for _, pid := range f.PIDs {
		p, err := symbols.OpenProcess(pid)
		if err != nil {
			return err
		}
		o.processes = append(o.processes, p)
		o.t.alive = append(o.t.alive, p.Alive)
		o.files(p)
		if !f.Follow {
			continue
		}
		_ = descendants(pid, func(child int) error {
			if p, err := symbols.OpenProcess(child); err == nil { // else it has ended since
				o.files(p)
				o.started++
			}
			return nil
		})
	}
	for _, tid := range f.TIDs {
		th, err := symbols.OpenThread(tid)
		if err != nil {
			return err
		}
		o.threads = append(o.threads, th)
		o.t.alive = append(o.t.alive, th.Alive)
		o.files(th.Process)
	}
	for _, dir := range f.Cgroups {
		pids := cgroupPIDs(dir)
		o.present += len(pids)
		for _, pid := range pids {
			p, err := symbols.OpenProcess(pid)
			switch {
			case err == nil:
				o.files(p)
			case o.denied == nil && errors.Is(err, fs.ErrPermission): // else it has ended since
				o.denied = err
			}
		}
	}
	return nil
}

// files opens what a process has mapped, each file once.
func (o *opener) files(p *symbols.Process) {
	p.Names = o.t.Names
	here := mapped{pid: p.PID}
	for _, m := range p.Mappings {
		if f := o.file(p, m); f != nil && !slices.Contains(here.files, f) {
			here.files = append(here.files, f)
		}
	}
	o.t.mapped = append(o.t.mapped, here)
}

// file is what a process has mapped, or nil if it cannot be read.
func (o *opener) file(p *symbols.Process, m symbols.Mapping) *symbols.File {
	id := [2]uint64{m.Dev, m.Ino}
	if f := o.seen[id]; f != nil {
		f.Also(p)
		return f
	}
	f, err := p.File(m)
	if err != nil {
		if o.denied == nil {
			o.denied = err
		}
		return nil
	}
	if i := slices.IndexFunc(o.t.all, f.Same); i >= 0 {
		_ = f.Close()
		f = o.t.all[i]
		f.Also(p)
	} else {
		o.t.all = append(o.t.all, f)
	}
	o.seen[id] = f
	return f
}

// label says in a few words whose hits count.
func (o *opener) label() string {
	var parts []string
	switch n := len(o.processes); {
	case n == 1:
		parts = append(parts, fmt.Sprintf("%s %d", o.processes[0].Comm, o.processes[0].PID))
	case n > 1:
		text := fmt.Sprintf("%d processes", n)
		if comm := o.processes[0].Comm; !slices.ContainsFunc(o.processes, func(p *symbols.Process) bool { return p.Comm != comm }) {
			text += " of " + comm
		}
		parts = append(parts, text)
	}
	if o.started > 0 {
		parts[0] += fmt.Sprintf(" and %d that it started", o.started)
	}
	switch n := len(o.threads); {
	case n == 1:
		th := o.threads[0]
		parts = append(parts, fmt.Sprintf("thread %d of %s %d", th.TID, th.Process.Comm, th.Process.PID))
	case n > 1:
		parts = append(parts, fmt.Sprintf("%d threads", n))
	}
	for _, dir := range o.t.filter.Cgroups {
		parts = append(parts, symbols.Printable(filepath.Base(dir)))
	}
	if n := o.present; n > 0 {
		parts = append(parts, fmt.Sprintf("%d process%s", n, map[bool]string{false: "es"}[n == 1]))
	}
	return strings.Join(parts, ", ")
}
