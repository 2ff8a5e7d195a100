package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"uprobetop/probes"
	"uprobetop/symbols"
	"uprobetop/ui/format"
)

// targetFlags are the flags that say whose functions are meant.
type targetFlags struct {
	whomFlags
	sources   sourceFlags
	yes       bool
	maxProbes int
	attach    string
	inFlight  string
	audit     bool
	given     func(flag string) bool // was it on the command line?
}

func (t *targetFlags) register(cmd *cobra.Command) {
	t.whomFlags.register(cmd)
	t.sources.register(cmd)
	cmd.Flags().BoolVarP(&t.yes, "yes", "y", false, "answer every question with yes")
	cmd.Flags().IntVar(&t.maxProbes, "max-probes", 0, "room for `NUMBER` probes (default 1024), at most 256 of them timed; what is asked for at the start always fits")
	cmd.Flags().StringVar(&t.attach, "attach", "auto", "how probes are attached: `METHOD` is auto, multi or perf")
	cmd.Flags().StringVar(&t.inFlight, "inflight", "auto", "where calls in flight are kept: `STORE` is auto, task, session or hash")
	t.given = cmd.Flags().Changed
}

// open turns the arguments before -- into a target and the functions asked for. What
// it took an ambiguous word for is told on s.Err.
func (t *targetFlags) open(s Streams, args, command []string) (*probes.Target, []probes.Spec, error) {
	if t.given("max-probes") && (t.maxProbes < 1 || t.maxProbes > 1<<20) {
		return nil, nil, usage("--max-probes wants a number from 1 to 1048576, and %d is none", t.maxProbes)
	}
	if _, known := attachMethods[t.attach]; !known || t.attach == "" && t.given("attach") {
		return nil, nil, usage("there is no attach method %q: use auto, multi or perf", t.attach)
	}
	if _, known := stores[t.inFlight]; !known || t.inFlight == "" && t.given("inflight") {
		return nil, nil, usage("there is no store %q for calls in flight: use auto, task, session or hash", t.inFlight)
	}
	if attachMethods[t.attach] == probes.PerfEvent && stores[t.inFlight] == probes.SessionStore {
		return nil, nil, usage("session cookies come with uprobe_multi links alone, not with perf events: leave out --inflight or --attach")
	}
	if err := t.check(command); err != nil {
		return nil, nil, err
	}
	filter, err := t.filter()
	if err != nil {
		return nil, nil, err
	}
	names, err := t.sources.open(s, !filter.Everybody())
	if err != nil {
		return nil, nil, err
	}
	o := opener{s: s, filter: filter}
	switch {
	case !filter.Everybody():
		o.target, err = probes.ProcessesWith(filter, names)
		err = failed(err)
	case len(command) > 0:
		o.target, o.noDefault = commandTarget(command[0], names)
		env := os.Getenv("LD_LIBRARY_PATH")
		o.dirs = filepath.SplitList(env)
		for _, f := range o.target.Files {
			o.dirs = f.LibraryDirs(env)
		}
	case len(args) > 0:
		o.target = &probes.Target{Names: names}
	case t.all:
		err = usage("-a wants a target: name a file or a library, such as libc")
	default:
		err = usage(noTarget)
	}
	if err != nil {
		return nil, nil, err
	}
	specs, err := o.arguments(args, len(command) > 0)
	if err != nil {
		o.target.Close()
		return nil, nil, err
	}
	return o.target, specs, nil
}

const noTarget = "name a target: a path such as /usr/bin/perl, a library such as libc, or -p PID; uprobetop demo needs none"

// failed gives an error of a look at files or processes its exit status.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return &exit{exitFailed, err}
}

// opener finds the files that arguments name.
type opener struct {
	s      Streams
	filter probes.Filter
	target *probes.Target // the default; empty where there is none
	dirs   []string       // in which the loader looks first

	noDefault error // why there is none
}

// arguments reads TARGET, if there is one, and the specs, which can name further
// files.
func (o *opener) arguments(args []string, command bool) ([]probes.Spec, error) {
	if len(args) > 0 {
		named, err := o.first(args[0], len(args) == 1, command)
		if err != nil {
			return nil, err
		}
		if named {
			args = args[1:]
		}
	}
	specs := make([]probes.Spec, 0, len(args))
	for _, a := range args {
		s, err := probes.ParseSpec(a)
		if err != nil {
			return nil, usage("%s", err)
		}
		s = o.target.ReadProvider(s)
		if err := o.target.MeansMarker(s); err != nil {
			return nil, &exit{exitNothing, err}
		}
		if s.Target != "" && !o.target.HasFile(s.Target) && o.outside() {
			paths, err := o.find(s.Target)
			if err != nil {
				return nil, err
			}
			if err := o.target.Add(paths...); err != nil {
				return nil, failed(err)
			}
		}
		specs = append(specs, s)
	}
	switch {
	case len(o.target.Files) > 0:
	case o.noDefault != nil:
		return nil, o.noDefault
	case o.filter.Everybody():
		return nil, usage(noTarget)
	default:
		return nil, usage("%s has no process whose files could be looked at: name a file or a library before the functions", o.target.Label)
	}
	return specs, nil
}

// attachMethods are the words of --attach; empty where there is no such flag.
var attachMethods = map[string]probes.Method{"": "", "auto": "", "multi": probes.UprobeMulti, "perf": probes.PerfEvent}

// stores are the words of --inflight; likewise.
var stores = map[string]probes.Store{"": "", "auto": "", "task": probes.TaskStore, "session": probes.SessionStore, "hash": probes.HashStore}

// outside tells whether files count that none of the target's processes has mapped:
// those of a cgroup may map them later.
func (o *opener) outside() bool { return len(o.filter.PIDs)+len(o.filter.TIDs) == 0 }

// first tells whether the first argument is a TARGET, and makes it the target. Where
// there is no default it must be one, unless it is a spec that names its file. Else
// the files of the default come first, then its functions, then other files.
func (o *opener) first(arg string, alone, command bool) (named bool, err error) {
	spec, err := probes.ParseSpec(arg)
	path := isPath(arg)
	isSpec := err == nil && spec.Target != "" && !(path && exists(arg))
	hasDefault := len(o.target.Files) > 0 || !o.filter.Everybody() || o.noDefault != nil
	switch {
	case isSpec, hasDefault && alone && command && !path:
		return false, nil
	case hasSpecPrefix(arg):
		return false, nil // its error is told where specs are read
	case alone && o.target.Has(arg):
		return false, nil // a file of that name would leave no function
	case o.target.Narrow(arg):
		return true, nil
	case hasDefault && !path && (len(symbols.Libraries(arg, o.dirs...)) == 0 || o.target.Has(arg)):
		return false, nil
	case !o.outside():
		return false, &exit{exitNothing, o.target.NotMapped(arg)}
	}
	paths, err := o.find(arg)
	if err != nil {
		return false, err
	}
	return true, failed(o.target.Only(paths...))
}

func hasSpecPrefix(arg string) bool {
	for _, kind := range []string{"uprobe:", "uretprobe:", "usdt:"} {
		if after, ok := strings.CutPrefix(arg, kind); ok && !strings.HasPrefix(after, ":") {
			return true
		}
	}
	return false
}

// isPath tells a path from a function or a short name: it has a slash, and does
// not hold one only as part of a spec or of an operator's name.
func isPath(arg string) bool {
	return strings.Contains(arg, "/") && !strings.HasPrefix(arg, "operator/") && !strings.Contains(arg, "::operator/")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// find is the paths that a bare word means: a path, which has a slash; else the
// libraries with that short name, or a program in PATH. Where there are both, such
// as perl, a word that begins with lib means the library and any other the program,
// and it is told how to say the other. A count of the wrong file would just be 0.
func (o *opener) find(word string) ([]string, error) {
	if isPath(word) {
		return []string{word}, nil
	}
	shown := symbols.Printable(word)
	program, err := exec.LookPath(word)
	found := symbols.Libraries(word, o.dirs...)
	switch {
	case len(found) == 0 && err != nil:
		hint := "a path needs a slash"
		if exists(word) {
			hint = "for the file here write ./" + word
		}
		return nil, failed(fmt.Errorf("there is no library %q and no program of that name in PATH: %s, and -p names a process", word, hint))
	case len(found) == 0:
		return []string{program}, nil
	case err != nil:
		return found, nil
	case strings.HasPrefix(word, "lib"):
		fmt.Fprintf(o.s.Err, "uprobetop: %s is read as the library: for the program write %s\n", shown, symbols.Printable(program))
		return found, nil
	}
	fmt.Fprintf(o.s.Err, "uprobetop: %s is read as the program %s: for the library write lib%s\n", shown, symbols.Printable(program), shown)
	return []string{program}, nil
}

// commandTarget is the program of the command after --. Where that has no functions,
// as a script, or is not there, the target is empty and noDefault says why.
func commandTarget(name string, names *symbols.Sources) (t *probes.Target, noDefault error) {
	t = &probes.Target{Names: names}
	path, err := exec.LookPath(name)
	if err != nil {
		return t, &exit{exitNotFound, fmt.Errorf("there is no program %q", name)}
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return t, failed(err)
	}
	if err := t.Only(path); err != nil {
		noDefault = failed(fmt.Errorf("the command cannot be the target: %w", err))
	}
	return t, noDefault
}

// resolve finds the functions that specs mean, and tells what patterns left out.
func resolve(s Streams, target *probes.Target, specs []probes.Spec, latency bool) ([]probes.Request, error) {
	r, err := target.Resolve(specs, latency)
	if wrong := target.CheckTwins(); wrong != nil { // only now: a name can lead to the file that it is of
		return nil, failed(wrong)
	}
	if err != nil {
		passedOver(s, err)
		return nil, &exit{exitNothing, err}
	}
	for _, led := range r.Led {
		fmt.Fprintf(s.Err, "uprobetop: %s\n", led)
	}
	for _, name := range r.Old {
		fmt.Fprintf(s.Err, "uprobetop: %s is the name of an old version alone, which only programs linked long ago call\n", name)
	}
	if r.LeftOut() > 0 {
		fmt.Fprintf(s.Err, "uprobetop: %s\n", leftOut(r))
	}
	return r.Requests, nil
}

// leftOut says how many functions patterns match and do not probe, and why.
func leftOut(r *probes.Resolved) string {
	var why []string
	for _, s := range r.Skipped {
		reason := s.Reason
		if len(s.Names) > 0 {
			reason += ", as in " + format.List(s.Names)
		}
		if len(r.Skipped) > 1 {
			reason = fmt.Sprintf("%s (%s)", format.Count(uint64(s.N)), reason)
		}
		why = append(why, reason)
	}
	is := "are"
	if r.LeftOut() == 1 {
		is = "is"
	}
	return fmt.Sprintf("%s match, and %s %s not probed: %s",
		format.Things(r.Matched, "function"), format.Count(uint64(r.LeftOut())), is, strings.Join(why, ", "))
}
