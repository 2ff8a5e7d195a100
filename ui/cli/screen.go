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
	return watch(ctx, s, target, config, requests, ui.Options{})
}

func needsTerminal(s Streams) error {
	if out, ok := s.Out.(*os.File); !ok || !term.IsTerminal(out.Fd()) || !term.IsTerminal(s.In.Fd()) {
		return errors.New("the screen needs a terminal: uprobetop stat prints without one")
	}
	return nil
}

// watch shows the screen, with the requested probes placed one by one: each can
// then be taken away by itself.
func watch(ctx context.Context, s Streams, target *probes.Target, config probes.Config, requests []probes.Request, o ui.Options) error {
	if err := needsTerminal(s); err != nil {
		return err
	}
	col, err := probes.New(config)
	if err != nil {
		return err
	}
	defer leave(s, col)
	run := func(ctx context.Context) error { return col.Run(ctx, probes.Tick, nil) }
	return show(ctx, col, run, ui.Target{Label: target.Label, Files: target.Files, Kernel: col.Snapshot().Kernel}, requests, o)
}

// show is the screen on a source, whose snapshots come as long as run runs, until
// the user has seen enough.
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
	err := ui.Run(ctx, src, target, o)
	end()
	return errors.Join(err, <-ran)
}
