package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"

	"uprobetop/probes"
	"uprobetop/ui"
)

type screenFlags struct {
	targetFlags
	latency bool
	slow    time.Duration
}

// runScreen is the interactive program on a target.
func runScreen(ctx context.Context, s Streams, f *screenFlags, args []string) error {
	if f.given("slow") && f.slow <= 0 {
		return usage("--slow wants a time above 0, such as 5ms, and %s is none", f.slow)
	}
	target, specs, err := f.open(s, args, nil)
	if err != nil {
		return err
	}
	requests, err := resolve(s, target, specs, f.latency || f.slow > 0)
	if err == nil {
		err = f.consent(s, target.Filter(), requests)
	}
	if err != nil {
		target.Close()
		return err
	}
	for {
		config := f.config(target, requests)
		config.Slow = f.slow
		ask(s, f.yes, config.Hazards, requests)
		left, err := watch(ctx, s, target, config, requests, f.yes)
		if err != nil || !left.Follow {
			target.Close()
			return err
		}
		if target, requests, err = follow(s, target, left.Wanted); err != nil {
			return err
		}
	}
}

// follow opens the process as which a target of one process runs again, and finds
// in it what is wanted. It closes the old target.
func follow(s Streams, old *probes.Target, wanted []probes.Request) (*probes.Target, []probes.Request, error) {
	defer old.Close()
	pid, ok := old.Successor()
	if !ok {
		return nil, nil, fmt.Errorf("%s has ended, and what ran in its place has, too", old.Label)
	}
	target, err := probes.ProcessesWith(probes.Filter{PIDs: []int{pid}, Follow: old.Filter().Follow}, old.Names)
	if err != nil {
		return nil, nil, failed(err)
	}
	var requests []probes.Request
	for _, w := range wanted {
		spec := probes.SpecOf(w)
		byAddress := strings.HasPrefix(spec.Function, "0x") || w.Function.Into > 0
		if byAddress && !target.HasBuild(w.File) {
			fmt.Fprintf(s.Err, "uprobetop: %s is not followed: by its address it is not found in another build\n", w.Function.Demangled())
			continue
		}
		r, err := target.Resolve([]probes.Spec{spec}, false)
		if err != nil { // another build may not have it
			fmt.Fprintf(s.Err, "uprobetop: %s\n", err)
			continue
		}
		requests = append(requests, r.Requests...)
	}
	return target, requests, nil
}

// apart is how many probes are placed one by one on the screen: a pattern's
// thousands would take a file descriptor and some milliseconds each.
const apart = 64

func needsTerminal(s Streams) error {
	if out, ok := s.Out.(*os.File); !ok || !term.IsTerminal(out.Fd()) || !term.IsTerminal(s.In.Fd()) {
		return errors.New("the screen needs a terminal: uprobetop stat prints without one")
	}
	return nil
}

// watch shows the screen on a target.
func watch(ctx context.Context, s Streams, target *probes.Target, config probes.Config, requests []probes.Request, yes bool) (ui.Outcome, error) {
	if err := needsTerminal(s); err != nil {
		return ui.Outcome{}, err
	}
	col, err := probes.New(config)
	if err != nil {
		return ui.Outcome{}, err
	}
	defer leave(s, col)
	o := ui.Options{Slow: config.Slow, Successor: func() (string, bool) {
		pid, ok := target.Successor()
		return strconv.Itoa(pid), ok
	}}
	o.Banner = cmp.Or(older(config.Filter, target.Files), target.Kin(), beyond(config.Filter))
	if yes {
		o.Accepted = slices.Clone(target.Files)
	}
	for _, r := range requests {
		if r.Accepted {
			o.Accepted = append(o.Accepted, r.File)
		}
	}
	return showLive(ctx, col, target, requests, o)
}

// showLive is show on a collector.
func showLive(ctx context.Context, col *probes.Collector, target *probes.Target, requests []probes.Request, o ui.Options) (ui.Outcome, error) {
	o.Doing = probes.Doing
	run := func(ctx context.Context) error {
		each, wait := calibrating(ctx, col)
		defer wait()
		return col.Run(ctx, probes.Tick, each)
	}
	o.Why = func(st *probes.Stats) probes.Explanation { return col.Why(st, target) }
	return show(ctx, col, run, ui.Target{Label: target.Label, Files: target.Files, Kernel: col.Snapshot().Kernel}, requests, o)
}

// show is the screen on a source whose snapshots come while run runs. The requested
// probes are placed one by one: each can then be taken away by itself.
func show(ctx context.Context, src ui.Source, run func(context.Context) error, target ui.Target, requests []probes.Request, o ui.Options) (ui.Outcome, error) {
	ctx, stop := interrupted(ctx)
	defer stop()
	ctx, end := context.WithCancel(ctx)
	defer end()
	ran := make(chan error, 1)
	go func() {
		defer end() // without numbers there is nothing to show
		ran <- run(ctx)
	}()
	go func() {
		if len(requests) > apart {
			_ = src.Place(ctx, requests...)
			return
		}
		for _, r := range requests {
			_ = src.Place(ctx, r) // its row says what came of it
		}
	}()
	left, err := ui.Run(ctx, src, target, o)
	end()
	return left, errors.Join(err, <-ran)
}
