package cli

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"uprobetop/probes"
)

// targetFlags are the flags that say whose functions are meant.
type targetFlags struct {
	pid       int
	yes       bool
	maxProbes int
	attach    string
	given     func(flag string) bool // was it on the command line?
}

func (t *targetFlags) register(cmd *cobra.Command) {
	cmd.Flags().IntVarP(&t.pid, "pid", "p", 0, "a process, with all its threads")
	cmd.Flags().BoolVarP(&t.yes, "yes", "y", false, "answer every question with yes")
	cmd.Flags().IntVar(&t.maxProbes, "max-probes", 0, "room for this many probes at once (default 1024, 256 of them timed)")
	cmd.Flags().StringVar(&t.attach, "attach", "auto", "how probes are attached: auto, multi or perf")
	t.given = cmd.Flags().Changed
}

// open turns the arguments before -- into a target and the functions asked for.
func (t *targetFlags) open(args, command []string) (*probes.Target, []probes.Spec, error) {
	var target *probes.Target
	var err error
	switch {
	case t.given("max-probes") && (t.maxProbes < 1 || t.maxProbes > 1<<20):
		return nil, nil, usage("--max-probes wants a number from 1 to 1048576, and %d is none", t.maxProbes)
	case !known(t.attach):
		return nil, nil, usage("there is no attach method %q: use auto, multi or perf", t.attach)
	case t.given("pid") && t.pid <= 0:
		return nil, nil, usage("-p wants a process id above 0, and %d is none", t.pid)
	case t.pid > 0 && len(command) > 0:
		return nil, nil, usage("give a process with -p, or a command after --, not both")
	case t.pid > 0:
		if target, err = probes.ProcessTarget(t.pid); err != nil {
			return nil, nil, &exit{exitFailed, err}
		}
		args, err = t.narrow(target, args)
	case len(args) > 0 && (isPath(args[0]) || len(command) == 0):
		target, err = fileTarget(args[0])
		args = args[1:]
	case len(command) > 0:
		target, err = commandTarget(command[0])
	default:
		return nil, nil, usage(noTarget)
	}
	if err != nil {
		return nil, nil, err
	}
	specs := make([]probes.Spec, 0, len(args))
	for _, a := range args {
		s, err := probes.ParseSpec(a)
		if err != nil {
			return nil, nil, usage("%s", err)
		}
		specs = append(specs, s)
	}
	return target, specs, nil
}

// attachMethods are the words of --attach; empty where there is no such flag.
var attachMethods = map[string]probes.Method{"": "", "auto": "", "multi": probes.UprobeMulti, "perf": probes.PerfEvent}

func known(attach string) bool {
	_, ok := attachMethods[attach]
	return ok
}

const noTarget = "name a target: a path such as /usr/bin/perl, or -p PID; uprobetop demo needs none"

// narrow reads a first argument that names a file of the process.
func (t *targetFlags) narrow(target *probes.Target, args []string) ([]string, error) {
	if len(args) == 0 {
		return args, nil
	}
	if target.Narrow(args[0]) {
		return args[1:], nil
	}
	if isPath(args[0]) && !strings.Contains(args[0], ":") {
		return nil, &exit{exitNothing, fmt.Errorf("%s has no file %s mapped", target.Label, args[0])}
	}
	return args, nil
}

// isPath tells a path from a function or a short name: it has a slash, and does
// not hold one only as part of a spec or of an operator's name.
func isPath(arg string) bool {
	return strings.Contains(arg, "/") && !strings.HasPrefix(arg, "operator/") && !strings.Contains(arg, "::operator/")
}

func fileTarget(arg string) (*probes.Target, error) {
	path := arg
	if !isPath(arg) {
		found, err := exec.LookPath(arg)
		if err != nil {
			hint := "a path needs a slash"
			if _, err := os.Stat(arg); err == nil {
				hint = "for the file here write ./" + arg
			}
			return nil, &exit{exitFailed, fmt.Errorf("there is no program %q in PATH: %s, and -p names a process", arg, hint)}
		}
		path = found
	}
	t, err := probes.FileTarget(path)
	if err != nil {
		return nil, &exit{exitFailed, err}
	}
	return t, nil
}

// commandTarget is the program of the command after --.
func commandTarget(name string) (*probes.Target, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, &exit{exitNotFound, fmt.Errorf("there is no program %q", name)}
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, &exit{exitFailed, err}
	}
	t, err := probes.FileTarget(path)
	if err != nil {
		return nil, &exit{exitFailed, fmt.Errorf("the command cannot be the target: %w", err)}
	}
	return t, nil
}

// commandHazards adds what the program of a command brings to a target, such as a
// library, that is another file.
func commandHazards(h probes.Hazards, name string) probes.Hazards {
	path, err := exec.LookPath(name)
	if err != nil {
		return h // it is told when it is to be started
	}
	t, err := probes.FileTarget(path)
	if err != nil {
		return h // a script
	}
	defer t.Close()
	c := t.Hazards()
	return probes.Hazards{
		Unwinds: cmp.Or(h.Unwinds, c.Unwinds), Switches: cmp.Or(h.Switches, c.Switches), Shared: h.Shared,
	}
}
