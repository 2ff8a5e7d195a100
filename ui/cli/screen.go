package cli

import (
	"context"
	"errors"
	"os"

	"github.com/charmbracelet/x/term"

	"uprobetop/probes"
	"uprobetop/ui"
)

// runScreen is the interactive program on a target.
func runScreen(ctx context.Context, s Streams, f targetFlags, latency bool, args []string) error {
	target, specs, err := f.open(args, nil)
	if err != nil {
		return err
	}
	defer target.Close()
	requests, err := target.Resolve(specs, latency)
	if err != nil {
		return &exit{exitNothing, err}
	}
	config := f.config(target, requests)
	ask(s, f.yes, config.Hazards, requests)
	return watch(ctx, s, target, config, requests)
}

func needsTerminal(s Streams) error {
	if out, ok := s.Out.(*os.File); !ok || !term.IsTerminal(out.Fd()) || !term.IsTerminal(s.In.Fd()) {
		return errors.New("the screen needs a terminal: uprobetop stat prints without one")
	}
	return nil
}

// watch shows the screen on a target.
func watch(ctx context.Context, s Streams, target *probes.Target, config probes.Config, requests []probes.Request) error {
	if err := needsTerminal(s); err != nil {
		return err
	}
	col, err := probes.New(config)
	if err != nil {
		return err
	}
	defer leave(s, col)
	return showLive(ctx, col, target, requests, ui.Options{})
}

// showLive is show on a collector.
func showLive(ctx context.Context, col *probes.Collector, target *probes.Target, requests []probes.Request, o ui.Options) error {
	run := func(ctx context.Context) error { return col.Run(ctx, probes.Tick, nil) }
	return show(ctx, col, run, ui.Target{Label: target.Label, Files: target.Files, Kernel: col.Snapshot().Kernel}, requests, o)
}

// show is the screen on a source whose snapshots come while run runs. The requested
// probes are placed one by one: each can then be taken away by itself.
func show(ctx context.Context, src ui.Source, run func(context.Context) error, target ui.Target, requests []probes.Request, o ui.Options) error {
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
		for _, r := range requests {
			_ = src.Place(ctx, r) // its row says what came of it
		}
	}()
	_, err := ui.Run(ctx, src, target, o)
	end()
	return errors.Join(err, <-ran)
}
