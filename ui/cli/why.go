package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"uprobetop/probes"
	"uprobetop/symbols"
	"uprobetop/ui/format"
)

// lookouts looks into the processes while a run lasts: at its end they may have ended,
// and with them what could tell why a probe has no hits.
type lookouts struct {
	col     *probes.Collector
	target  *probes.Target
	command bool // whose processes count

	mu      sync.Mutex
	last    *probes.Look // nil: none yet
	early   *probes.Look // the newest that saw a process map the file of a probe
	strange *probes.Look // the newest that saw processes, none of which maps it
}

// watch looks until ctx ends, at pauses that become longer. Where everybody counts
// somebody will be there at the end.
func (l *lookouts) watch(ctx context.Context, filter probes.Filter) {
	const longest = 2 * time.Second
	for wait := 20 * time.Millisecond; !filter.Everybody(); wait = min(2*wait, longest) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		snap := l.col.Snapshot()
		look := l.col.Look(snap, l.target)
		l.mu.Lock()
		for i := range snap.Probes {
			switch id := snap.Probes[i].ID; {
			case look.Looked(id) > 0:
				l.early = look
			case look.Unmapped(id):
				l.strange = look
			}
		}
		l.mu.Unlock()
	}
}

// end looks for the last time, with the breakpoints still in place.
func (l *lookouts) end() {
	look := l.col.Look(l.col.Snapshot(), l.target)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = look
}

// why explains a probe of the final snapshot: by the last look, or by an earlier one if
// that saw more.
func (l *lookouts) why(st *probes.Stats) probes.Explanation {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.last.Looked(st.ID) == 0 && l.early.Looked(st.ID) > 0:
		return l.early.Why(st)
	case st.Filtered == 0 && l.last.Ended(st.ID) && l.strange.Unmapped(st.ID):
		return probes.Explanation{Causes: []string{l.nobody() + " was seen to map " + symbols.Printable(filepath.Base(st.File.Path))}, Proven: true}
	}
	return l.last.Why(st)
}

func (l *lookouts) nobody() string {
	if l.command {
		return "no process of the command"
	}
	return "no process whose hits count"
}

// findings is what a run tells at its end beside the numbers; nil: nothing.
type findings struct {
	doubts  []string // sentences on what the numbers leave out
	gaps    []probes.Gap
	why     func(*probes.Stats) probes.Explanation // of probes without hits or returns
	kernel  *probes.KernelCounts                   // nil: it could not be asked
	verbose bool
}

func (l *lookouts) findings(doubts []string, verbose bool) *findings {
	f := &findings{doubts: doubts, why: l.why, verbose: verbose}
	l.mu.Lock()
	if l.last != nil {
		f.gaps = l.last.Gaps
	}
	l.mu.Unlock()
	if k, err := l.col.KernelCounts(); err == nil {
		f.kernel = &k
	}
	return f
}

// inexact is what makes the numbers wrong, a sentence each.
func (f *findings) inexact(names map[probes.ID]string) []string {
	if f == nil {
		return nil
	}
	all := remarks{of: map[string]*remark{}}
	for _, g := range f.gaps {
		all.add("%[2]s: "+escaped(g.Why), 1, names[g.Probe])
	}
	return slices.Concat(f.doubts, f.unseen(), all.sentences())
}

// unseen is what the kernel did not show us.
func (f *findings) unseen() (all []string) {
	if f.kernel == nil {
		return nil
	}
	if n := f.kernel.Recursions; n > 0 {
		all = append(all, "the kernel did not run the programs at "+format.Count(n)+
			" hits or returns, which are not counted: another program ran on the CPU, as it can before Linux 6.0")
	}
	if n := f.kernel.UnseenEnds; n > 0 {
		all = append(all, "up to "+format.Count(n)+" ends of threads were not seen: calls that they ended may be counted as in flight")
	}
	if n := f.kernel.UnseenForks; n > 0 {
		all = append(all, "up to "+format.Count(n)+" new processes were not seen: their hits may be missing")
	}
	return all
}

// explained is how many different reasons are printed.
const explained = 20

// silence says why a probe has no hits, with -v all that is known of it. It is empty
// unless something was seen that nobody would think: told says that the gaps say it all.
func (f *findings) silence(st *probes.Stats, said map[string]bool) (text string, told bool) {
	if f == nil || f.why == nil || st.Hits > 0 && (st.Kind != probes.Return || st.Returned > 0) {
		return "", false
	}
	e := f.why(st)
	gap := slices.ContainsFunc(f.gaps, func(g probes.Gap) bool { return g.Probe == st.ID })
	switch {
	case gap && (!f.verbose || len(e.Causes) == 1):
		return "", true
	case e.Proven && f.verbose:
		text = e.String()
	case e.Proven:
		text = e.Causes[0]
	}
	if !said[text] && len(said) >= explained {
		return "", false
	}
	said[text] = true
	return text, false
}

// more is what else is known of a probe that nobody called, with -v.
func (f *findings) more(st *probes.Stats) string {
	if f == nil || f.why == nil || !f.verbose {
		return ""
	}
	e := f.why(st)
	if e.Common { // and said already
		return strings.Join(e.Causes[1:], "; ")
	}
	return e.String()
}

// ofKernel is what the kernel counted and logged, with -v.
func (f *findings) ofKernel(s *probes.Snapshot) (all []string) {
	if f == nil || !f.verbose || f.kernel == nil {
		return nil
	}
	k := f.kernel
	if k.Runs != nil {
		all = append(all, runs(s, *k.Runs))
	}
	switch l := k.Log; {
	case l == nil:
		all = append(all, "the kernel's log may not be read, or has the process ids of another PID namespace: what it says of return probes is not known")
	default:
		for _, line := range []struct {
			n    uint64
			text string
		}{
			{l.Depth, "the kernel's log has at least %s returns that it did not follow, of threads with 64 pending"},
			{l.Killed, "the kernel's log has at least %s threads that it ended by SIGILL at a return: return probes do not suit that program"},
			{l.Left, "the kernel's log has %s breakpoints that it could not take away: their threads stop there for ever"},
		} {
			if line.n > 0 {
				all = append(all, fmt.Sprintf(line.text, format.Count(line.n)))
			}
		}
	}
	return all
}

// runs says how often the kernel ran the programs of entries, and what they counted.
func runs(s *probes.Snapshot, n uint64) string {
	var hits, returns, filtered uint64
	for i := range s.Probes {
		p := &s.Probes[i]
		hits, filtered = hits+p.Hits, filtered+p.Filtered
		if p.NoFrames {
			returns += p.Returned + p.Orphans
		}
	}
	program, returned := "the program of entries", ""
	if s.InFlight == probes.SessionStore {
		program, returned = "the programs of entries and returns", " and "+format.Count(returns)+" returns"
	}
	return fmt.Sprintf("the kernel ran %s %s times: %s hits%s, %s left out by the filter, and those of probes that were switched off",
		program, format.Count(n), format.Count(hits), returned, format.Count(filtered))
}
