package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"uprobetop/assets"
	"uprobetop/probes"
	"uprobetop/symbols"
	"uprobetop/ui"
)

func newDemo(s Streams) *cobra.Command {
	var record string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "the screen on a built-in workload: needs no target",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("demo takes no arguments, and %q is one", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if record != "" {
				return recordDemo(cmd.Context(), record)
			}
			return runDemo(cmd.Context(), s)
		},
	}
	cmd.Flags().StringVar(&record, "record", "", "play all scenes without a screen, and keep them in this new file")
	_ = cmd.Flags().MarkHidden("record") // it makes the recording in assets
	return cmd
}

// runDemo shows the demo live or, where it cannot be probed or started, a
// recording of it.
func runDemo(ctx context.Context, s Streams) error {
	if err := needsTerminal(s); err != nil {
		return err
	}
	if why := probes.Supported(); why != nil {
		return playDemo(ctx, s, why)
	}
	demo, why := assets.StartDemo(ctx)
	if why != nil {
		return playDemo(ctx, s, why)
	}
	defer demo.Stop()
	target, requests, err := demoTarget(demo)
	if err != nil {
		return err
	}
	defer target.Close()
	return watch(ctx, s, target, new(targetFlags).config(target, requests), requests, demoOptions(demo))
}

// demoOptions lets keys change the scene.
func demoOptions(demo *assets.DemoProcess) ui.Options {
	return ui.Options{}
}

// playDemo shows the recording, and says why.
func playDemo(ctx context.Context, s Streams, why error) error {
	r, err := probes.NewReplay(assets.DemoRecording())
	if err != nil {
		return fmt.Errorf("%w; and so the demo cannot be shown: %w", err, why)
	}
	defer r.Close()
	r.Loop = true
	banner := "a recording of the demo: " + why.Error()
	if strings.HasSuffix(banner, "run sudo uprobetop") {
		banner += " demo"
	}
	fmt.Fprintf(s.Err, "uprobetop: %s\n", symbols.Printable(banner)) // to be read after the screen
	target := ui.Target{Label: r.Label, Files: r.Files, Kernel: r.Host.Kernel}
	return show(ctx, r, r.Run, target, nil, recordedOptions(banner))
}

// recordedOptions marks what is shown as no live picture.
func recordedOptions(banner string) ui.Options {
	return ui.Options{}
}

// demoTarget finds what is to be probed of a running demo.
func demoTarget(demo *assets.DemoProcess) (*probes.Target, []probes.Request, error) {
	target, err := probes.ProcessTarget(demo.PID())
	if err != nil {
		return nil, nil, err
	}
	target.Label = "demo " + strconv.Itoa(demo.PID())
	var requests []probes.Request
	for _, d := range assets.DemoFunctions {
		rs, err := target.Resolve([]probes.Spec{{Function: d.Name}}, d.Timed)
		if err != nil {
			target.Close()
			return nil, nil, fmt.Errorf("the demo program is damaged: %w", err)
		}
		requests = append(requests, rs...)
	}
	return target, requests, nil
}

// script is what a recording of the demo shows: one scene after the other.
var script = []struct {
	scene int // of assets.DemoScenes
	lasts time.Duration
}{
	{0, 6 * time.Second}, {1, 5 * time.Second}, {2, 5 * time.Second}, {3, 5 * time.Second}, {4, 5 * time.Second}, {0, 4 * time.Second},
}

// recordDemo plays the script into a file.
func recordDemo(ctx context.Context, path string) (err error) {
	if err := probes.Supported(); err != nil {
		return err
	}
	ctx, stop := interrupted(ctx)
	defer stop()
	demo, err := assets.StartDemo(ctx)
	if err != nil {
		return err
	}
	defer demo.Stop()
	target, requests, err := demoTarget(demo)
	if err != nil {
		return err
	}
	defer target.Close()
	rec, err := probes.Record(path, "demo")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rec.Close()) }()
	config := new(targetFlags).config(target, requests)
	config.Tap = anywhere{rec}
	col, err := probes.New(config)
	if err != nil {
		return err
	}
	defer col.Close()
	// All before the first tick: so the rows stay when a replay begins anew.
	if err := col.Place(ctx, requests...); err != nil {
		return err
	}
	return play(ctx, col, demo)
}

// play runs the collector until the last scene is over.
func play(ctx context.Context, col *probes.Collector, demo *assets.DemoProcess) error {
	ctx, end := context.WithCancelCause(ctx)
	over := errors.New("the script is over")
	at := 0
	var until time.Duration // of Elapsed
	err := col.Run(ctx, probes.Tick, func(s *probes.Snapshot) {
		switch {
		case s.Elapsed < until:
		case at == len(script):
			end(over)
		default:
			if err := demo.SetScene(script[at].scene); err != nil {
				end(err)
			}
			until += script[at].lasts
			at++
		}
	})
	if cause := context.Cause(ctx); err == nil && cause != over {
		err = &exit{exitCut, fmt.Errorf("the recording was cut short: %w", cause)}
	}
	return err
}

// anywhere leaves out of a recording for everybody which build of the kernel it
// was made on.
type anywhere struct{ *probes.Recorder }

func (a anywhere) Begin(s *probes.Snapshot, online []int, possible int) {
	c := *s
	c.Kernel, _, _ = strings.Cut(s.Kernel, "-")
	a.Recorder.Begin(&c, online, possible)
}
