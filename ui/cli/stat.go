package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"uprobetop/probes"
	"uprobetop/probes/export"
	"uprobetop/ui/format"
)

type statFlags struct {
	targetFlags
	latency  bool
	duration time.Duration
	interval time.Duration
	slow     time.Duration
	output   string
	by       string
	verbose  bool // that of the root
}

func newStat(s Streams) *cobra.Command {
	var f statFlags
	cmd := &cobra.Command{
		Use:   "stat [flags] [TARGET] FUNCTION… [-- COMMAND…]",
		Short: "count, then print",
		Long: `stat counts the hits of functions, and with -r times their calls, and prints the
totals: after -d, when the command or the process ends, or at Ctrl-C. A call that
has not returned by then is told of with its thread and age if it hangs: if it is
older than any that has returned, older than a second, or than --slow.

Why a function has no hits is looked for in the processes: that its breakpoint cannot
be there, or is missing, is printed; with -v also what is known where it is in order.

Latencies include the probe's own share. With -r it is measured at the end, on a program
of uprobetop's own: what a function takes that does nothing (floor_ns, in JSON).

With -o json each object is a snapshot, of schema uprobetop/1, and the last one has
final true, why at functions without hits, gaps for the processes in which a
breakpoint is missing, and kernel_counts. Counts are since the probe was placed,
names carry their units, and what was not or cannot be measured is null. Rates are
over interval_s, or the part of it in which the probe counted; in the last object over
counted_s, all the time in which it did. With --slow a call is an object of its own,
of type call: where its time went, and by how much time on CPU and blocked can be
wrong.

With --by thread or --by process each function also has a table of who hit it. There
are rows for 4,096 threads in all; who finds no room is counted with the others.`,
		Example: `  uprobetop stat -r -d 5s -p 4121 libc:malloc
  uprobetop stat -d 5s --unit nginx ssl 'SSL_*'
  uprobetop stat --slow 5ms -p 4121 handle_request
  uprobetop stat -r --by thread -d 5s -p 4121 handle_request
  uprobetop stat -o json ./server handle_request -- ./server --port 8080`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			var command []string
			if at := cmd.ArgsLenAtDash(); at >= 0 {
				args, command = args[:at], args[at:]
				if len(command) == 0 {
					return usage("there is no command after --")
				}
			}
			if err := f.check(cmd); err != nil {
				return err
			}
			f.verbose, _ = cmd.Flags().GetBool("verbose") // an error would say that there is no such flag
			return f.run(cmd.Context(), s, args, command)
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVarP(&f.latency, "latency", "r", false, "time the functions, too: entry and return probes")
	cmd.Flags().DurationVarP(&f.duration, "duration", "d", 0, "stop after this `TIME`, such as 5s or 2m")
	cmd.Flags().DurationVarP(&f.interval, "interval", "I", probes.Tick, "take a snapshot each `TIME`; with -o table, print each")
	cmd.Flags().DurationVar(&f.slow, "slow", 0, "also print each call that takes at least this `TIME`, such as 5ms; times the functions")
	cmd.Flags().Var((*once)(&f.by), "by", "also print `WHOM` each function was hit by: thread, or process")
	cmd.Flags().BoolVar(&f.audit, "audit", false, "also have the kernel count by itself, and say whether the hits agree; every process that maps TARGET pays")
	cmd.Flags().StringVarP(&f.output, "output", "o", "table", "`FORMAT` is table, or json: one object a snapshot, one a line")
	return cmd
}

func (f *statFlags) check(cmd *cobra.Command) error {
	switch {
	case f.output != "table" && f.output != "json":
		return usage("there is no output format %q: use table or json", f.output)
	case cmd.Flags().Changed("by") && f.by != string(export.ByThread) && f.by != string(export.ByProcess):
		return usage("--by knows thread and process, not %q", f.by)
	case cmd.Flags().Changed("duration") && f.duration <= 0:
		return usage("-d wants a time above 0, such as 5s, and %s is none", f.duration)
	case cmd.Flags().Changed("slow") && f.slow <= 0:
		return usage("--slow wants a time above 0, such as 5ms, and %s is none", f.slow)
	case f.interval < 10*time.Millisecond:
		return usage("-I wants at least 10ms, and %s is less", f.interval)
	}
	f.latency = f.latency || f.slow > 0
	if f.output == "table" && !cmd.Flags().Changed("interval") {
		f.interval = 0 // only the totals are printed
	}
	return nil
}

// run is one stat, from arguments to totals.
func (f *statFlags) run(ctx context.Context, s Streams, args, command []string) error {
	target, specs, err := f.open(s, args, command)
	if err != nil {
		return err
	}
	defer target.Close()
	if len(specs) == 0 {
		return usage("name at least one function of %s to count", target.Label)
	}
	requests, err := resolve(s, target, specs, f.latency)
	if err != nil {
		return err
	}
	config := f.config(target, requests)
	config.Slow, config.Watch, config.Audit = f.slow, f.by != "", f.audit
	var held *probes.Command
	if len(command) > 0 {
		if held, err = hold(command, s); err != nil {
			return err
		}
		defer held.Cancel()
		if !f.all {
			config.Filter = probes.Filter{PIDs: []int{held.PID()}, Follow: f.children || !f.given("children")}
		}
	}
	if err := f.consent(s, config.Filter, requests); err != nil {
		return err
	}
	if text := older(config.Filter, target.Files); text != "" {
		fmt.Fprintln(s.Err, "uprobetop: "+text)
	}
	if kin := target.Kin(); kin != "" {
		fmt.Fprintln(s.Err, "uprobetop: "+kin)
	}
	if text := beyond(config.Filter); text != "" {
		fmt.Fprintln(s.Err, "uprobetop: "+text)
	}
	without := ask(s, f.yes, config.Hazards, requests)
	ctx, stop := interrupted(ctx)
	defer stop()
	col, err := probes.New(config)
	if err != nil {
		return err
	}
	defer leave(s, col)
	first, err := place(ctx, s, col, requests, without)
	if err != nil {
		return err
	}
	if err := f.printCalls(s.Out, first); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return &exit{code: exitCut}
	}
	var elsewhere *copies
	if held != nil {
		elsewhere = newCopies(held.PID(), requests, args)
	}
	return f.count(ctx, s, &lookouts{col: col, target: target, command: held != nil}, held, elsewhere)
}

// config is a collector's for this target, with room for all that is asked for.
func (t *targetFlags) config(target *probes.Target, requests []probes.Request) probes.Config {
	timed := 0
	for _, r := range requests {
		if r.Kind == probes.Return {
			timed++
		}
	}
	return probes.Config{
		Filter: target.Filter(), Hazards: target.Hazards(attachMethods[t.attach]), Ended: target.Ended,
		Attach: attachMethods[t.attach], InFlight: stores[t.inFlight], MaxProbes: t.maxProbes, Probes: len(requests), Timed: timed,
	}
}

func hold(command []string, s Streams) (*probes.Command, error) {
	held, err := probes.Hold(command, s.In, s.Out, s.Err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &exit{exitNotFound, err}
	case errors.Is(err, fs.ErrPermission):
		return nil, &exit{exitNotRun, err}
	}
	return held, err
}

// declined is findings that ask and got no yes, by the note that their probes get.
type declined map[string]probes.Finding

// ask settles the findings that a person has to decide, once for each.
func ask(s Streams, yes bool, hazards probes.Hazards, requests []probes.Request) declined {
	answered, without := map[string]bool{}, declined{}
	for i := range requests {
		finding := probes.Check(requests[i], hazards)
		if finding.Verdict != probes.Asks {
			continue
		}
		accepted, known := answered[finding.Reason]
		if !known {
			accepted = yes || confirm(s, finding.Reason, "Place return probes all the same?")
			answered[finding.Reason] = accepted
		}
		if requests[i].Accepted = accepted; !accepted {
			without[finding.String()] = finding
		}
	}
	return without
}

// person is the terminal of somebody who can be asked, or nil.
func person(s Streams) *os.File {
	w, ok := s.Err.(*os.File)
	if !ok || s.In == nil || !term.IsTerminal(s.In.Fd()) || !term.IsTerminal(w.Fd()) {
		return nil
	}
	return w
}

// confirm asks a person, if there is one.
func confirm(s Streams, reason, question string) bool {
	w := person(s)
	if w == nil {
		return false
	}
	fmt.Fprintf(w, "%s.\n%s [y/N] ", reason, question)
	line, _ := bufio.NewReader(io.LimitReader(s.In, 1024)).ReadString('\n')
	return strings.EqualFold(strings.TrimSpace(line), "y") || strings.EqualFold(strings.TrimSpace(line), "yes")
}

// place puts the probes, says which could not be, and fails if none could. It takes
// the first snapshot.
func place(ctx context.Context, s Streams, col *probes.Collector, requests []probes.Request, without declined) (*probes.Snapshot, error) {
	if err := col.Place(ctx, requests...); ctx.Err() != nil {
		return nil, &exit{code: exitCut}
	} else if err != nil {
		return nil, err
	}
	snap, err := col.Collect()
	if err != nil {
		return nil, err
	}
	if snap.Gone && !slices.ContainsFunc(snap.Probes, func(p probes.Stats) bool { return p.Hits > 0 }) {
		return nil, &exit{exitNothing, errors.New("the target ended before the probes stood: nothing was counted")}
	}
	notes, attached := notProbed(snap, without)
	switch {
	case len(without) == 0:
	case person(s) != nil: // who has just said no
		notes = append(notes, "leave out -r to count its entries")
	default:
		notes = append(notes, "-y says yes, and without -r entries are counted")
	}
	if attached == 0 {
		return nil, &exit{exitNothing, errors.New(strings.Join(notes, "\n"))}
	}
	for _, n := range notes {
		fmt.Fprintf(s.Err, "uprobetop: %s\n", n)
	}
	return snap, nil
}

// notProbed is one sentence a reason, and the number of probes that stand.
func notProbed(snap *probes.Snapshot, without declined) (notes []string, attached int) {
	var reasons []string
	names := map[string][]string{}
	for i := range snap.Probes {
		p := &snap.Probes[i]
		if p.State == probes.Attached || p.State == probes.Gone {
			attached++
			continue
		}
		if names[p.Note] == nil {
			reasons = append(reasons, p.Note)
		}
		names[p.Note] = append(names[p.Note], p.Function.Demangled())
	}
	for _, reason := range reasons {
		is, why := "is", reason
		if len(names[reason]) > 1 {
			is = "are"
		}
		if finding, ok := without[reason]; ok {
			why = finding.Reason // the way out is told once, at the end
		}
		notes = append(notes, fmt.Sprintf("%s %s not probed: %s", format.List(names[reason]), is, why))
	}
	return notes, attached
}

// count runs until the first of: the duration, the end of the command or of the
// process, a signal. Then it prints the totals.
func (f *statFlags) count(ctx context.Context, s Streams, looks *lookouts, held *probes.Command, elsewhere *copies) error {
	col := looks.col
	run, end := context.WithCancel(ctx)
	defer end()
	if held != nil {
		if err := held.Release(); err != nil {
			return fmt.Errorf("the command cannot be started: %w", err)
		}
		context.AfterFunc(held.Ended(), end)
		go elsewhere.watch(run)
	}
	if f.duration > 0 {
		defer time.AfterFunc(f.duration, end).Stop()
	}
	var printed error
	each := func(snap *probes.Snapshot) {
		if printed == nil {
			printed = f.printCalls(s.Out, snap)
		}
		if f.interval != 0 && printed == nil && !snap.Final { // that one comes when all has ended
			printed = f.print(s, snap, nil)
		}
		if snap.Gone || printed != nil {
			end()
		}
	}
	var looking, halted sync.WaitGroup
	told := false // the command, that it is to end
	looking.Go(func() { looks.watch(run, col.Snapshot().Filter) })
	halted.Add(1)
	context.AfterFunc(run, func() { // also while a reader keeps us waiting
		defer halted.Done()
		col.Quiet()
		looks.end()
		elsewhere.end()
		if held != nil && ctx.Err() != nil && !typed(ctx) { // else it would run on until the totals are read
			told = held.Signal(syscall.SIGTERM) == nil
		}
		col.Halt()
	})
	ran := make(chan error) // Run wants a thread of its own
	go func() { ran <- col.Run(run, cmp.Or(f.interval, probes.Tick), each) }()
	err := errors.Join(<-ran, printed)
	end()
	halted.Wait()
	looking.Wait()
	cut, doubts := ctx.Err() != nil, elsewhere.sentences()
	if printed == nil {
		calibrate(context.WithoutCancel(ctx), col) // now that it disturbs nobody
	}
	snap, ferr := col.Finish()
	if err = errors.Join(err, ferr); err == nil {
		err = errors.Join(f.printCalls(s.Out, snap), f.print(s, snap, looks.findings(doubts, f.verbose)))
	}
	if held != nil {
		return errors.Join(err, endCommand(s, col, held, cut, told))
	}
	if err == nil && cut && f.duration > 0 {
		err = &exit{code: exitCut}
	}
	return err
}

// patience is how long a command has to end, by itself after Ctrl-C, and then
// after SIGTERM.
const patience = 2 * time.Second

// endCommand gives the command's own status. If it still runs, because the
// duration is over or uprobetop was interrupted, it is asked to end, unless that was
// told already.
func endCommand(s Streams, col *probes.Collector, held *probes.Command, cut, told bool) error {
	over := func() bool { return held.Ended().Err() != nil }
	wait := func() {
		select {
		case <-held.Ended().Done():
		case <-time.After(patience):
		}
	}
	if cut && !told { // at Ctrl-C the terminal tells the command, too
		wait()
	}
	asked := told || !over()
	if asked {
		if !told {
			_ = held.Signal(syscall.SIGTERM)
		}
		wait()
		if !over() {
			fmt.Fprintf(s.Err, "uprobetop: the command does not end at SIGTERM and goes on as process %d\n", held.PID())
		}
	}
	switch n, err := col.Followed(); {
	case err != nil:
		fmt.Fprintf(s.Err, "uprobetop: %s\n", err)
	case n > 0 && !asked:
		fmt.Fprintf(s.Err, "uprobetop: the command has ended, and %s that it started still run: name one with -p to count on\n",
			format.Count(uint64(n)))
	}
	if code := held.Status(); code > 128 && !asked {
		why := ""
		if code-128 == int(syscall.SIGTRAP) {
			why = ": it may have come to a breakpoint that nobody answered for"
		}
		fmt.Fprintf(s.Err, "uprobetop: the command was ended by signal %d, %s%s\n", code-128, syscall.Signal(code-128), why)
	}
	switch code := held.Status(); {
	case cut && (asked || code == 0):
		return &exit{code: exitCut}
	case !asked && code != 0:
		return &exit{code: code}
	}
	return nil
}

// printCalls prints the single calls that have ended since the snapshot before.
func (f *statFlags) printCalls(w io.Writer, snap *probes.Snapshot) error {
	if f.output == "json" {
		return export.Calls(w, snap)
	}
	return callLines(w, snap)
}

// print prints a snapshot. Doubts are told on stderr where the output has no room for them.
func (f *statFlags) print(s Streams, snap *probes.Snapshot, found *findings) error {
	by := export.By(f.by)
	if f.output == "json" {
		for _, d := range found.inexact(shownNames(snap)) {
			fmt.Fprintf(s.Err, "uprobetop: not exact: %s\n", d)
		}
		extra := export.Extra{By: by}
		if found != nil {
			extra.Why, extra.Gaps, extra.Kernel = found.why, found.gaps, found.kernel
		}
		return export.JSONWith(s.Out, snap, extra)
	}
	if err := table(s.Out, snap, f.interval != 0, found); err != nil {
		return err
	}
	if f.by != "" {
		if err := tablesBy(s.Out, snap, by); err != nil {
			return err
		}
	}
	if !snap.Final {
		return nil
	}
	return hungLines(s.Out, snap, f.slow)
}
