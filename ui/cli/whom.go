package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"uprobetop/probes"
	"uprobetop/symbols"
	"uprobetop/ui/format"
)

// whomFlags are the flags that say whose hits count. They add up: a hit counts if
// any of them lets it through.
type whomFlags struct {
	pids, tids                 ids
	cgroups, units, containers []string
	all                        bool
	children                   bool // of pids; those of a command do unless it is said
}

func (w *whomFlags) register(cmd *cobra.Command) {
	w.registerNames(cmd)
	cmd.Flags().BoolVar(&w.children, "children", false, "count what the processes of -p have started and start, too; what a command starts counts unless --children=false says no")
	cmd.Flags().BoolVarP(&w.all, "all", "a", false, "every process of the host that maps TARGET, however many they are")
}

// registerNames registers those that name somebody.
func (w *whomFlags) registerNames(cmd *cobra.Command) {
	f := cmd.Flags()
	f.VarP(&w.pids, "pid", "p", "a process by its `PID`, with all its threads (can be repeated, as -t and the like can: they add up)")
	f.VarP(&w.tids, "tid", "t", "a thread alone, by its `TID`")
	f.StringArrayVar(&w.cgroups, "cgroup", nil, "a cgroup v2 by its `PATH`: its processes, present and future")
	f.StringArrayVar(&w.units, "unit", nil, "a systemd unit by its `NAME`, such as nginx")
	f.StringArrayVar(&w.containers, "container", nil, "a container or pod by its `ID`, or the first 6 letters of it")
}

// read takes the names from the flags of a command that registered them.
func (w *whomFlags) read(cmd *cobra.Command) {
	for name, into := range map[string]*ids{"pid": &w.pids, "tid": &w.tids} {
		if v, ok := cmd.Flags().Lookup(name).Value.(*ids); ok {
			*into = *v
		}
	}
	// An error would say that there is no such flag.
	w.cgroups, _ = cmd.Flags().GetStringArray("cgroup")
	w.units, _ = cmd.Flags().GetStringArray("unit")
	w.containers, _ = cmd.Flags().GetStringArray("container")
}

func (w *whomFlags) named() bool {
	return len(w.pids)+len(w.tids)+len(w.cgroups)+len(w.units)+len(w.containers) > 0
}

// check finds flags that contradict each other or hold no name.
func (w *whomFlags) check(command []string) error {
	for _, name := range w.units {
		if name == "" || strings.Contains(name, "/") {
			return usage("--unit wants a name such as nginx or nginx.service, and %q is none", name)
		}
	}
	const least = 6 // letters; fewer fit too many
	if slices.Contains(w.cgroups, "") {
		return usage("--cgroup wants a path, and got an empty one")
	}
	for _, id := range w.containers {
		if len(id) < least || strings.Trim(strings.ToLower(id), "0123456789abcdef-") != "" {
			return usage("--container wants an id, or its first %d letters of 0-9, a-f and -, and %q is none", least, id)
		}
	}
	switch {
	case w.named() && len(command) > 0:
		return usage("give processes with -p and the like, or a command after --, not both")
	case w.named() && w.all:
		return usage("-a means every process: leave it out, or -p and the like")
	case w.children && w.all:
		return usage("-a means every process: leave it out, or --children")
	case w.children && len(w.pids)+len(command) == 0:
		return usage("--children are those of a process: name it with -p")
	}
	return nil
}

// filter finds everybody who was named.
func (w *whomFlags) filter() (probes.Filter, error) {
	f := probes.Filter{PIDs: w.pids, TIDs: w.tids, Follow: w.children && len(w.pids) > 0}
	if len(w.cgroups)+len(w.units)+len(w.containers) == 0 {
		return f, nil
	}
	root, err := probes.CgroupRoot()
	if err != nil {
		return f, failed(err)
	}
	for _, kind := range []struct {
		names []string
		find  func(root, name string) (string, error)
	}{{w.cgroups, probes.Cgroup}, {w.units, probes.Unit}, {w.containers, probes.Container}} {
		for _, name := range kind.names {
			dir, err := kind.find(root, name)
			if err != nil {
				return f, failed(err)
			}
			if !slices.Contains(f.Cgroups, dir) {
				f.Cgroups = append(f.Cgroups, dir)
			}
		}
	}
	return f, nil
}

// ids are numbers of processes or threads: a flag that can be repeated, or hold
// several between commas.
type ids []int

func (n *ids) Type() string   { return "id" }
func (n *ids) String() string { return strings.Trim(fmt.Sprint([]int(*n)), "[]") }

func (n *ids) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		id, err := strconv.Atoi(part)
		if err != nil || id <= 0 {
			return fmt.Errorf("an id is a number above 0, and %q is none", part)
		}
		if !slices.Contains(*n, id) {
			*n = append(*n, id)
		}
	}
	return nil
}

// many is how many processes may map a file that is probed in all of them without
// a question.
const many = 10

// looking is how long processes are looked through for each file.
const looking = 500 * time.Millisecond

// older tells of the processes that run an older copy of a file that was named by its
// path: a count of the one on disk is 0 for them. It is empty if there are none.
func older(filter probes.Filter, files []*symbols.File) string {
	if !filter.Everybody() {
		return ""
	}
	var all []string
	for _, f := range files {
		n, whole := f.OldMappers(looking / 2)
		if n == 0 {
			continue
		}
		who := "1 process runs"
		if n > 1 {
			who = format.Count(uint64(n)) + " processes run"
		}
		if !whole {
			who = "at least " + who
		}
		all = append(all, fmt.Sprintf("%s an older copy of %s, which is deleted and does not count here: -p names one", who, symbols.Printable(f.Path)))
	}
	return strings.Join(all, "; ")
}

// beyond tells that hits count of which a container does not see whose they are. It is
// empty where there are none.
func beyond(filter probes.Filter) string {
	if !filter.Everybody() || !probes.InContainer() {
		return ""
	}
	return "whoever uses the file counts, also outside of this container: -p names a process"
}

// everyCgroup tells whether a filter names the cgroup that all others are in.
func everyCgroup(f probes.Filter) bool {
	root, err := probes.CgroupRoot()
	return err == nil && slices.Contains(f.Cgroups, root)
}

// consent asks before a file that many processes map is probed in all of them: each
// of its calls costs each of them a trap. Where somebody is named, but in a way of
// which the kernel cannot be told, it is only said.
func (t *targetFlags) consent(s Streams, filter probes.Filter, requests []probes.Request) error {
	if !t.audit && !probes.HostWide(filter, attachMethods[t.attach]) || t.all || t.yes {
		return nil
	}
	asked := map[*symbols.File]bool{}
	for _, r := range requests {
		f := r.File
		if asked[f] {
			continue
		}
		asked[f] = true
		n, all := f.Mappers(looking)
		if n <= many {
			continue
		}
		count := format.Count(uint64(n)) + " processes"
		if !all {
			count = "at least " + count
		}
		reason := fmt.Sprintf("%s map %s, and all of them would pay for each call", count, symbols.Printable(f.Path))
		switch {
		case !filter.Everybody() && !everyCgroup(filter):
			fmt.Fprintf(s.Err, "uprobetop: %s map %s, and all of them pay for each call, also those that do not count\n",
				count, symbols.Printable(f.Path))
		case !confirm(s, reason, "Probe all of them?"):
			return &exit{exitNothing, fmt.Errorf("%s: -p names one, -a means all", reason)}
		}
	}
	return nil
}
