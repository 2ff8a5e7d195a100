package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"uprobetop/assets"
	"uprobetop/probes"
	"uprobetop/ui"
)

// runScreen is the interactive program on a target.
func runScreen(ctx context.Context, s Streams, f targetFlags, latency bool, args []string) error {
	target, specs, err := f.open(s, args, nil)
	if err != nil {
		return err
	}
	defer target.Close()
	requests, err := resolve(s, target, specs, latency)
	if err != nil {
		return err
	}
	if err := f.consent(s, target); err != nil {
		return err
	}
	config := f.config(target, requests)
	ask(s, f.yes, config.Hazards, requests)
	return watch(ctx, s, target, config, requests)
}

// apart is how many probes are placed one by one on the screen: a pattern's
// thousands would take a file descriptor and some milliseconds each.
const apart = 64

// watch shows the screen, with the requested probes placed one by one: each can
// then be taken away by itself.
func watch(ctx context.Context, s Streams, target *probes.Target, config probes.Config, requests []probes.Request) error {
	if out, ok := s.Out.(*os.File); !ok || !term.IsTerminal(out.Fd()) || !term.IsTerminal(s.In.Fd()) {
		return errors.New("the screen needs a terminal: uprobetop stat prints without one")
	}
	ctx, stop := interrupted(ctx)
	defer stop()
	col, err := probes.New(config)
	if err != nil {
		return err
	}
	defer col.Close()
	ctx, end := context.WithCancel(ctx)
	defer end()
	ran := make(chan error, 1)
	go func() {
		defer end() // without numbers there is nothing to show
		ran <- col.Run(ctx, probes.Tick, nil)
	}()
	go func() {
		if len(requests) > apart {
			_ = col.Place(ctx, requests...)
			return
		}
		for _, r := range requests {
			_ = col.Place(ctx, r) // its row says what came of it
		}
	}()
	err = ui.Run(ctx, col, ui.Target{Label: target.Label, Files: target.Files, Kernel: col.Snapshot().Kernel}, ui.Options{})
	end()
	return errors.Join(err, <-ran)
}

func newDemo(s Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "the screen on a built-in workload: needs no target",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("demo takes no arguments, and %q is one", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runDemo(cmd.Context(), s)
		},
	}
}

func runDemo(ctx context.Context, s Streams) error {
	if err := probes.Supported(); err != nil {
		return err
	}
	demo, err := assets.StartDemo(ctx)
	if err != nil {
		return err
	}
	defer demo.Stop()
	target, err := probes.ProcessTarget(demo.PID())
	if err != nil {
		return err
	}
	defer target.Close()
	target.Label = "demo " + strconv.Itoa(demo.PID())
	var requests []probes.Request
	for _, d := range assets.DemoFunctions {
		r, err := target.Resolve([]probes.Spec{{Function: d.Name}}, d.Timed)
		if err != nil {
			return fmt.Errorf("the demo program is damaged: %w", err)
		}
		requests = append(requests, r.Requests...)
	}
	return watch(ctx, s, target, new(targetFlags).config(target, requests), requests)
}
