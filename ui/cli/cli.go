// Package cli is the command line: commands, their flags, text output, and the
// exit status.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"uprobetop/probes"
	"uprobetop/symbols"
)

// Exit codes, beside that of a command given after --.
const (
	exitDone     = 0
	exitFailed   = 1
	exitUsage    = 2   // the command line is wrong
	exitNothing  = 3   // nothing could be probed
	exitNotRun   = 126 // the command after -- may not be run, as shells say it
	exitNotFound = 127 // or is not there
	exitCut      = 130 // interrupted before its end
)

// Statuses is what the exit status means, for people.
var Statuses = []struct{ Code, Means string }{
	{"0", "done; of doctor: probes can be placed here"},
	{"1", "failed; of doctor: probes cannot be placed here"},
	{"2", "the command line is wrong"},
	{"3", "nothing could be probed; a command after -- is not started then"},
	{"130", "interrupted before its end; without -d, Ctrl-C is the end of stat, and the status 0"},
	{"other", "with a command after --: its own status, 128+N if signal N ended it; 126 if it may not be run, 127 if it is not there"},
}

// Streams are where a run reads and writes: data goes to Out, all else to Err.
type Streams struct {
	In       *os.File
	Out, Err io.Writer
}

// exit is an error with the status that it ends the program with. Its error may
// be nil where all has been said.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.err.Error()
}
func (e *exit) Unwrap() error { return e.err }

// Run runs the program with these arguments and returns its exit status.
func Run(args []string, s Streams) int {
	if len(args) > 2 && args[0] == probes.HeldArg {
		return probes.RunHeld(args[1:])
	}
	// A reader that goes away ends a write with an error, and so the command.
	signal.Ignore(syscall.SIGPIPE)
	var verbose bool
	root := newRoot(s, &verbose)
	if len(args) > 0 && args[0] == cobra.ShellCompRequestCmd {
		plainUsage(root)
	}
	root.SetArgs(args)
	root.SetIn(s.In)
	out := &faithful{w: s.Out}
	root.SetOut(out)
	root.SetErr(s.Err)
	return report(cmp.Or(root.ExecuteContext(context.Background()), out.err), verbose, s.Err)
}

// faithful keeps the first error of a writer: the help does not look at any.
type faithful struct {
	w   io.Writer
	err error
}

func (f *faithful) Write(b []byte) (int, error) {
	n, err := f.w.Write(b)
	f.err = cmp.Or(f.err, err)
	return n, err
}

// report prints an error as one sentence and returns the exit status.
func report(err error, verbose bool, w io.Writer) int {
	if err == nil {
		return exitDone
	}
	code := exitFailed
	var e *exit
	if errors.As(err, &e) {
		code = e.code
		if e.err == nil {
			return code
		}
	}
	if errors.Is(err, syscall.EPIPE) {
		return exitFailed // nobody reads any more: nothing to say to them
	}
	text := strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ")
	fmt.Fprintf(w, "uprobetop: %s\n", symbols.Printable(text))
	if verbose {
		said := err.Error()
		for cause := errors.Unwrap(err); cause != nil; cause = errors.Unwrap(cause) {
			if text := fmt.Sprintf("%+v", cause); text != said {
				fmt.Fprintf(w, "  because: %s\n", text)
				said = text
			}
		}
	}
	return code
}

//go:generate go run ./man ../../assets/man

// Command is the command line as a tree, for its manual pages.
func Command() *cobra.Command { return newRoot(Streams{}, new(bool)) }

func newRoot(s Streams, verbose *bool) *cobra.Command {
	var f screenFlags
	root := &cobra.Command{
		Use:   "uprobetop [flags] [TARGET] [FUNCTION…]",
		Short: "top for user-space functions",
		Long: `uprobetop counts and times the functions of running programs, live.

TARGET is a path (with a slash), a library's short name (libc, ssl), a program in
PATH, or the files that those named by -p and the like have mapped: then a first
argument that is no file or library is a FUNCTION. It can be left out where each
FUNCTION names its own.

FUNCTION is a name as the symbol table or the demangler gives it, a pattern
(pthread_cond_*), name+0x10, or an address; libc:malloc names its file as well,
uretprobe:libc:malloc also asks for its latency. usdt:throw is a usdt
probe; usdt:libstdc++:libstdcxx:throw names its file and provider as well.

Whose hits count: those of -p, -t, --cgroup, --unit and --container, added up; else
of everybody who maps TARGET, with a question (-a is yes) if those are many.`,
		Example: `  uprobetop demo
  uprobetop -p 4121 malloc free
  uprobetop stat -r -d 5s -p 4121 libc:malloc
  uprobetop stat -d 5s --unit nginx ssl 'SSL_*'
  uprobetop stat -o json ./server handle_request -- ./server --port 8080`,
		Args:          cobra.ArbitraryArgs,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cmp.Or(mistyped(cmd, args), runsNothing(cmd, args)); err != nil {
				return err
			}
			return runScreen(cmd.Context(), s, &f, args)
		},
	}
	root.SetVersionTemplate("uprobetop {{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.SuggestionsMinimumDistance = 2
	root.PersistentFlags().BoolVarP(verbose, "verbose", "v", false, "print the whole chain of causes of an error; of stat, also why functions have no hits, and what the kernel counted and logged")
	f.register(root)
	root.Flags().DurationVar(&f.slow, "slow", 0, "show single calls that take at least this `TIME`, such as 5ms; times the functions")
	root.Flags().BoolVarP(&f.latency, "latency", "r", false, "time the functions, too: entry and return probes")
	root.AddCommand(newStat(s), newList(s), newDoctor(s), newDemo(s), newNumbers())
	complete(root)
	return root
}

// interrupted is a context that ends at the first SIGINT, SIGTERM, SIGQUIT or SIGHUP; the
// second one ends the program as the kernel does. A hangup that is ignored from
// the start (nohup) stays so. An ignored SIGINT does not: a shell script starts
// its background jobs that way, and kill -INT ends them all the same.
func interrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	come := make(chan os.Signal, 1)
	signal.Notify(come, signals...)
	context.AfterFunc(ctx, func() { signal.Stop(come) })
	go func() {
		select {
		case sent := <-come:
			cancel(&signalled{sent})
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// signalled is the cause of the end of a context that a signal ended.
type signalled struct{ os.Signal }

func (s *signalled) Error() string { return s.String() }

// typed tells whether what ended ctx is a key of the terminal, such as Ctrl-C, of which
// the terminal has told all processes of its foreground: a command, too. Else
// it was sent to us alone, as far as can be seen.
func typed(ctx context.Context) bool {
	var by *signalled
	if !errors.As(context.Cause(ctx), &by) || by.Signal != os.Interrupt && by.Signal != syscall.SIGQUIT {
		return false
	}
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer terminal.Close()
	foreground, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && foreground == unix.Getpgrp()
}

// version is what the Go toolchain recorded of the build: a tag, or a commit and
// its time.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version
}
