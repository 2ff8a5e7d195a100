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

// runDemo shows the demo live or, where it cannot be started or probed, a
// recording of it.
func runDemo(ctx context.Context, s Streams) error {
	if err := needsTerminal(s); err != nil {
		return err
	}
	d, why := openDemo(ctx, nil)
	if why != nil {
		return playDemo(ctx, s, why)
	}
	defer d.close()
	d.target.Label = "demo " + strconv.Itoa(d.process.PID())
	_, err := showLive(ctx, d.col, d.target, d.requests, demoOptions(d.process))
	return err
}

// demoOptions lets keys change the scene.
func demoOptions(process *assets.DemoProcess) ui.Options {
	o := ui.Options{SetScene: process.SetScene}
	for _, s := range assets.DemoScenes {
		o.Scenes = append(o.Scenes, ui.Scene{Name: s.Name})
	}
	return o
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
	_, err = show(ctx, r, r.Run, target, nil, recordedOptions(banner))
	return err
}

// recordedOptions marks what is shown as no live picture.
func recordedOptions(banner string) ui.Options {
	return ui.Options{Recorded: true, Banner: banner}
}

// demo is the running program and what is to be probed of it.
type demo struct {
	process  *assets.DemoProcess
	target   *probes.Target
	requests []probes.Request
	col      *probes.Collector
}

// openDemo starts the program; nothing is probed yet.
func openDemo(ctx context.Context, tap probes.Tap) (*demo, error) {
	if err := probes.Supported(); err != nil {
		return nil, err
	}
	d := new(demo)
	if err := d.open(ctx, tap); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

func (d *demo) open(ctx context.Context, tap probes.Tap) (err error) {
	if d.process, err = assets.StartDemo(ctx); err != nil {
		return err
	}
	if d.target, err = probes.ProcessTarget(d.process.PID()); err != nil {
		return err
	}
	for _, f := range assets.DemoFunctions {
		rs, err := d.target.Resolve([]probes.Spec{{Function: f.Name}}, f.Timed)
		if err != nil {
			return fmt.Errorf("the demo program is damaged: %w", err)
		}
		d.requests = append(d.requests, rs.Requests...)
	}
	config := new(targetFlags).config(d.target, d.requests)
	if config.Tap = tap; tap != nil {
		config.Slow = 4 * time.Millisecond // so that there are some calls to look at
	}
	d.col, err = probes.New(config)
	return err
}

func (d *demo) close() {
	if d.col != nil {
		d.col.Close()
	}
	if d.target != nil {
		d.target.Close()
	}
	if d.process != nil {
		d.process.Stop()
	}
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
		return err // and leave no empty file
	}
	rec, err := probes.Record(path, "demo")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rec.Close()) }()
	ctx, stop := interrupted(ctx)
	defer stop()
	d, err := openDemo(ctx, anywhere{rec})
	if err != nil {
		return err
	}
	defer d.close()
	// All before the first tick: so the rows stay when a replay begins anew.
	if err := d.col.Place(ctx, d.requests...); err != nil {
		return err
	}
	return d.play(ctx)
}

// play runs the collector until the last scene is over.
func (d *demo) play(ctx context.Context) error {
	ctx, end := context.WithCancelCause(ctx)
	over := errors.New("the script is over")
	at := 0
	var until time.Duration // of Elapsed
	err := d.col.Run(ctx, probes.Tick, func(s *probes.Snapshot) {
		switch {
		case s.Elapsed < until:
		case at == len(script):
			end(over)
		default:
			if err := d.process.SetScene(script[at].scene); err != nil {
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
