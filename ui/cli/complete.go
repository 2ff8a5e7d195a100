package cli

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"uprobetop/probes"
	"uprobetop/symbols"
)

// offered is about how many names a shell is given: more than that nobody reads.
const offered = 300

// flagValues completes the values of flags, wherever there is such a flag.
var flagValues = map[string]cobra.CompletionFunc{
	"output":     cobra.FixedCompletions([]cobra.Completion{"table", "json"}, cobra.ShellCompDirectiveNoFileComp),
	"by":         cobra.FixedCompletions([]cobra.Completion{"thread", "process"}, cobra.ShellCompDirectiveNoFileComp),
	"pid":        completePID,
	"duration":   cobra.NoFileCompletions,
	"interval":   cobra.NoFileCompletions,
	"slow":       cobra.NoFileCompletions,
	"max-probes": cobra.NoFileCompletions,
	"attach":     cobra.FixedCompletions([]cobra.Completion{"auto", "multi", "perf"}, cobra.ShellCompDirectiveNoFileComp),
	"inflight":   cobra.FixedCompletions([]cobra.Completion{"auto", "task", "session", "hash"}, cobra.ShellCompDirectiveNoFileComp),
	"tid":        cobra.NoFileCompletions,
	"unit":       cobra.NoFileCompletions,
	"container":  cobra.NoFileCompletions,
}

// complete makes the shell complete flag values of all commands, and the arguments
// of those that take a target.
func complete(root *cobra.Command) {
	for _, cmd := range append(root.Commands(), root) {
		if cmd.Flags().Lookup("pid") != nil {
			cmd.ValidArgsFunction = completeArgs
		}
		for flag, values := range flagValues {
			if cmd.Flags().Lookup(flag) != nil {
				_ = cmd.RegisterFlagCompletionFunc(flag, values) // fails for a flag that is not there
			}
		}
	}
}

// plainUsage takes the quotes out of what flags say, which mark the names of their
// values in the help: a shell would show them.
func plainUsage(root *cobra.Command) {
	for _, cmd := range append(root.Commands(), root) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { _, f.Usage = pflag.UnquoteUsage(f) })
	}
}

// completeArgs offers targets, and then the functions of the one that is named. Of
// a target that cannot be opened it offers nothing: the command itself will say why.
func completeArgs(cmd *cobra.Command, args []string, text string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch {
	case slices.Contains(os.Args[:len(os.Args)-1], "--"): // cobra parses with a -- of its own
		return nil, cobra.ShellCompDirectiveDefault
	case len(args) == 0 && !namesSomebody(cmd) && !namesFile(text):
		return completeProgram(text), cobra.ShellCompDirectiveDefault
	}
	if len(args) == 0 && isPath(text) && !namesFile(text) {
		return nil, cobra.ShellCompDirectiveDefault // a TARGET may be a path, whoever is named
	}
	target, err := completionTarget(cmd, args, text)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer target.Close()
	var names []string
	if len(args) == 0 {
		for _, f := range target.Files {
			if name := filepath.Base(f.Path); strings.HasPrefix(name, text) && symbols.Printable(name) == name {
				names = append(names, name)
			}
		}
	}
	names = append(names, target.Complete(text, offered)...)
	names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args, name) })
	return names, cobra.ShellCompDirectiveNoFileComp
}

func namesSomebody(cmd *cobra.Command) bool {
	var w whomFlags
	w.read(cmd)
	return w.named()
}

// function is a name to make a spec of one that is not finished: libc: and mall
// begin one, and only what stands before is opened.
const function = "f"

// namesFile tells whether a spec begins so that names its file.
func namesFile(text string) bool {
	s, err := probes.ParseSpec(text + function)
	return err == nil && s.Target != ""
}

// completionTarget opens what the command line names so far.
func completionTarget(cmd *cobra.Command, args []string, text string) (*probes.Target, error) {
	var f targetFlags
	f.given = cmd.Flags().Changed
	f.sources.read(cmd)
	f.read(cmd) // the flags are there, or this would not complete
	args = slices.Clone(args[:min(1, len(args))])
	if namesFile(text) {
		args = append(args, text+function)
	}
	target, _, err := f.open(Streams{Err: io.Discard}, args, nil)
	return target, err
}

// completeProgram offers the programs in PATH.
func completeProgram(begin string) (names []string) {
	if begin == "" || strings.Contains(begin, "/") {
		return nil
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		files, _ := os.ReadDir(dir) // one that is not there has none
		for _, f := range files {
			if name := f.Name(); strings.HasPrefix(name, begin) && symbols.Printable(name) == name && executable(filepath.Join(dir, name)) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func executable(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0
}

// completePID offers the processes, without the kernel's own threads.
func completePID(_ *cobra.Command, _ []string, begin string) (pids []cobra.Completion, _ cobra.ShellCompDirective) {
	all, _ := procfs.AllProcs()
	for _, p := range all {
		pid := strconv.Itoa(p.PID)
		if !strings.HasPrefix(pid, begin) || p.PID == os.Getpid() {
			continue
		}
		words, err := p.CmdLine()
		if err != nil || len(words) == 0 {
			continue
		}
		if comm, err := p.Comm(); err == nil {
			pids = append(pids, cobra.CompletionWithDesc(pid, symbols.Printable(comm)))
		}
	}
	return pids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}
