// Package ui is the interactive screen: one root model over a source of
// snapshots. It never waits for the collector: a tick takes the newest snapshot
// there is, and whatever makes the kernel work runs beside the screen.
package ui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"uprobetop/probes"
	"uprobetop/symbols"
)

// Source is the collector as the screen sees it. All of it may be called from
// any goroutine.
type Source interface {
	// Snapshot is the newest one; never nil.
	Snapshot() *probes.Snapshot
	// Check says what speaks against a request. It is quick.
	Check(probes.Request) probes.Finding
	// Place asks for probes and blocks while the kernel works. Those that are
	// refused or fail appear in the next snapshot with State and Note; the error
	// is for what kept all of them from being tried.
	Place(ctx context.Context, reqs ...probes.Request) error
	// Remove stops a probe at once; its row leaves the next snapshot.
	Remove(id probes.ID) error
	// Report has the calls of a timed probe that take at least this long come one
	// by one, in Snapshot.Calls; 0: every call, probes.NoCalls: none.
	Report(id probes.ID, slower time.Duration) error
	// Watch has a probe counted by thread as well, in Stats.Threads, or no more.
	Watch(id probes.ID, on bool) error
}

// Target is what is being looked at.
type Target struct {
	Label  string          // a name and perhaps a PID: "mysqld 2841"
	Files  []*symbols.File // whose functions can be found
	Kernel string          // release: "6.18.44"
}

// Options are the choices that a command line makes for the screen. The zero
// value is a good one.
type Options struct {
	Theme   string            // auto (or empty), dark, light, high-contrast, 16, mono
	ASCII   bool              // no character beyond ASCII, whatever the locale says
	NoMouse bool              // leave the mouse to the terminal
	Watch   *symbols.Function // selected at first; nil: the first row
	Find    bool              // begin in the search for functions

	// Slow has every call of a timed probe reported by itself that takes at least
	// this long; 0: the screen chooses when somebody looks.
	Slow time.Duration

	// Accepted are files for which a person said yes already to what speaks against
	// return probes in them.
	Accepted []*symbols.File

	Banner   string                    // one line that stands from the start until it is closed
	Doing    func(pid, tid int) string // what a thread is doing now; nil: nobody can say
	Recorded bool                      // the source is a recording: nothing can be placed

	// Successor is asked about once a second whether a target that has ended runs
	// again, and as what: "mysqld 3011". It may take its time. nil: never.
	Successor func() (label string, ok bool)

	// Why says why a probe has no hits, or no returns. It may take its time. nil: that
	// cannot be known.
	Why func(*probes.Stats) probes.Explanation

	// Scenes are what the target can be told to play, the first at the start, and
	// SetScene tells it. It may take its time.
	Scenes   []Scene
	SetScene func(i int) error
}

// Scene is one thing that a demo can play.
type Scene struct{ Name string }

// Outcome is why the screen was left.
type Outcome struct {
	Follow bool // to the successor of the target, which the screen shall show next
	// Wanted is what the rows wanted measured, in their order, when the user
	// followed.
	Wanted []probes.Request
}

// Run shows the screen until the user quits or ctx ends; the second is no
// error. The terminal is as it was when Run returns, after a panic too.
func Run(ctx context.Context, src Source, t Target, opts Options) (Outcome, error) {
	if opts.Theme != "" && !slices.Contains(themeNames[:], opts.Theme) {
		return Outcome{}, fmt.Errorf("there is no theme %q: use one of %v", opts.Theme, themeNames)
	}
	m := newModel(ctx, src, t, opts)
	m.look.ascii = opts.ASCII || asciiOnly(os.Getenv)
	m.setTheme()
	err := m.run()
	return m.outcome, err
}

// run shows the screen until it is left.
func (m *model) run(options ...tea.ProgramOption) error {
	_, err := tea.NewProgram(m, append(options, tea.WithContext(m.ctx))...).Run()
	if err == nil || errors.Is(err, tea.ErrInterrupted) || m.ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("the screen stopped: %w", err)
}

// pullEvery is how often the newest snapshot is asked for. It is shorter than
// a tick of the collector, so that no snapshot is shown late.
const pullEvery = 100 * time.Millisecond
