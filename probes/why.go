package probes

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"uprobetop/symbols"
)

// Explanation says why a probe has no hits, or no returns.
type Explanation struct {
	Causes []string  // a sentence each, without a full stop, the likeliest first
	Proven bool      // the first cause was seen in the processes, and not read from nothing being there
	Common bool      // the first cause is the common one, that no call came: it says nothing of this probe
	Checks []Checked // what was looked at
}

// Checked is one thing that was looked at.
type Checked struct {
	OK         bool
	What, Text string
}

// String is all causes in one line.
func (e Explanation) String() string { return strings.Join(e.Causes, "; ") }

// Gap is a process that has the code of a probe and in which the breakpoint is not: what
// it calls there is not counted.
type Gap struct {
	Probe ID
	PID   int
	Why   string // a sentence
}

// Look is what a look at the processes found.
type Look struct {
	Gaps []Gap

	filter Filter
	found  map[ID]*surveyed
}

// Why says why a probe has no hits, or no returns, from what the processes have mapped
// and in memory. It takes a second at most, and changes nothing.
func (c *Collector) Why(st *Stats, t *Target) Explanation {
	var l *Look
	if unplaced(st) == "" && st.Hits == 0 {
		l = c.look([]Stats{*st}, t)
	}
	return l.Why(st)
}

// Look looks at the processes for every probe of a snapshot. It wants the breakpoints in
// place, and takes a second at most.
func (c *Collector) Look(s *Snapshot, t *Target) *Look { return c.look(s.Probes, t) }

func (c *Collector) look(all []Stats, t *Target) *Look {
	return c.timely(func() *Look {
		s := c.newSurvey()
		defer s.close()
		l := &Look{filter: c.config.Filter, found: map[ID]*surveyed{}}
		for i := range all {
			st := &all[i]
			if unplaced(st) != "" {
				continue
			}
			f := s.look(st.Probe, t)
			l.found[st.ID] = f
			for _, g := range f.gaps {
				l.Gaps = append(l.Gaps, Gap{st.ID, g.at.PID, reasons[g.how](st.File, g.at.String(), &g.at)})
			}
		}
		return l
	})
}

// Looked is how many processes map the file of a probe and were looked into.
func (l *Look) Looked(id ID) int {
	if l == nil || l.found[id] == nil {
		return 0
	}
	return l.found[id].mapping()
}

// Unmapped tells whether processes were looked into and none of them maps the file of a
// probe, or another one of its name.
func (l *Look) Unmapped(id ID) bool {
	if l == nil || l.found[id] == nil {
		return false
	}
	f := l.found[id]
	return f.n[absent] > 0 && f.n[absent] == f.looked() && f.first[absent].of.Path == "" && !f.late && !f.more && f.denied == 0
}

// Ended tells whether nobody was there any more to be looked into for a probe.
func (l *Look) Ended(id ID) bool {
	return l != nil && l.found[id] != nil && l.found[id].looked()+l.found[id].denied == 0 && !l.filter.Everybody()
}

// Why explains the numbers of a probe, which can be of after the look.
func (l *Look) Why(st *Stats) Explanation {
	var found *surveyed
	if l != nil {
		found = l.found[st.ID]
	}
	switch text := unplaced(st); {
	case st.Hits > 0:
		return noReturns(st)
	case found != nil:
		return explain(st, l.filter, found)
	case text != "":
		return Explanation{Causes: []string{text}}
	}
	return Explanation{Causes: []string{heldUp}}
}

const heldUp = "it is not known: the processes could not be looked into within a second, one of them is busy with its mappings"

// timely is what do finds, or nil if it is held up. It may be so beyond the time, and
// then ends by itself; until then nobody else begins.
func (c *Collector) timely(do func() *Look) *Look {
	late := time.After(c.looking + c.looking/4) // the survey itself keeps to the time
	select {
	case c.surveying <- struct{}{}:
	case <-late:
		return nil
	}
	found := make(chan *Look, 1)
	go func() {
		defer func() { <-c.surveying }()
		found <- do()
	}()
	select {
	case l := <-found:
		return l
	case <-late:
		return nil
	}
}

// unplaced says why there is no breakpoint to look for, or nothing.
func unplaced(st *Stats) string {
	switch st.State {
	case Placing:
		return "the kernel is still being asked to place it"
	case Stopped:
		return "it was stopped"
	case Gone:
		return "the target has ended, and its memory with it"
	case Refused, Failed:
		return st.Note
	}
	return ""
}

// noReturns says where the hits of a timed probe are if none is a call that returned.
func noReturns(st *Stats) (e Explanation) {
	if st.Latency == nil || st.Returned > 0 {
		return e
	}
	var terms []string
	add := func(n int64, what string) {
		if n > 0 {
			terms = append(terms, fmt.Sprint(n)+what)
		}
	}
	if st.NoFrames {
		add(st.Unreturned, " in flight or unwound")
	} else {
		add(st.InFlight, " in flight")
		add(int64(st.Unwound.Total()), " unwound")
	}
	add(int64(st.Missed.Total()), " missed")
	if terms != nil {
		e.Proven = true
		e.add("no return was seen: " + strings.Join(terms, ", "))
	}
	return e
}

// explain puts what was found into sentences.
func explain(st *Stats, filter Filter, f *surveyed) Explanation {
	var e Explanation
	if st.Filtered > 0 {
		hits := "1 hit was"
		if st.Filtered > 1 {
			hits = fmt.Sprintf("%d hits were", st.Filtered)
		}
		e.add(hits + " of others, whom the filter leaves out")
		e.Proven = true
	}
	e.Proven = e.Proven || f.n[present] == 0 && f.n[unread] == 0 && (f.unfit() || f.nobody(filter))
	if (f.n[present] > 0 || f.looked() == 0 && !filter.Everybody()) && st.Filtered == 0 {
		e.add(notCalled(st))
		e.Common = true
		if f.n[present] > 0 {
			e.add("its breakpoint is in place in " + who(f, present))
		}
		e.add(clones(st))
		e.add(f.twin)
	}
	for how := absent; how < standings; how++ {
		if f.n[how] > 0 {
			e.add(reasons[how](st.File, who(f, how), &f.first[how]))
		}
	}
	if f.n[present] == 0 && f.n[absent] > 0 {
		e.add(f.twin)
	}
	e.add(f.unseen(filter, st.File))
	e.Checks = checked(st, filter, f)
	return e
}

func (e *Explanation) add(cause string) {
	if cause != "" {
		e.Causes = append(e.Causes, cause)
	}
}

// unfit tells whether there is a reason why a breakpoint is not there.
func (f *surveyed) unfit() bool {
	for how := absent; how < standings; how++ {
		if f.n[how] > 0 {
			return true
		}
	}
	return false
}

// notCalled says all that is known where a breakpoint is in order.
func notCalled(st *Stats) string {
	if st.Kind == USDT {
		return "no thread passed it"
	}
	return "no call reached this address: not called, or inlined into its callers"
}

// reasons are sentences on what was found in processes, of which the first is given.
var reasons = [standings]func(f *symbols.File, who string, at *seen) string{
	absent: func(f *symbols.File, who string, at *seen) string {
		other := at.of.Mapping
		switch {
		case other.Path == "":
			return base(f) + " is not mapped by " + who
		case other.Deleted:
			return "an older " + symbols.Printable(other.Path) + ", deleted since, is what " + who + " runs, and another file is probed: name the process with -p"
		}
		return symbols.Printable(other.Path) + " is mapped by " + who + ", and another file is probed: name that one, or the process with -p"
	},
	unmapped: func(f *symbols.File, who string, _ *seen) string {
		return "this part of " + base(f) + " is not mapped as code by " + who
	},
	copied: func(f *symbols.File, who string, at *seen) string {
		memory := "anonymous memory"
		if at.of.Huge() {
			memory = "huge pages"
		}
		return "the code of " + base(f) + " was copied into " + memory + " by " + who + ": a probe on the file does not reach it there"
	},
	shared: func(f *symbols.File, who string, _ *seen) string {
		return base(f) + " is mapped shared by " + who + ": into such mappings the kernel puts no breakpoint"
	},
	writable: func(f *symbols.File, who string, _ *seen) string {
		return base(f) + " is mapped writable by " + who + ": into such mappings the kernel puts no breakpoint"
	},
	onceWritable: func(f *symbols.File, who string, _ *seen) string {
		return "the breakpoint is not in " + who + ": its mapping was writable, and into such ones the kernel puts none; placed again, it can be there"
	},
	missing: func(f *symbols.File, who string, _ *seen) string {
		return "the breakpoint is not in " + who + ", although the mapping takes one: the kernel did not place it, and does not say why; place the probe again"
	},
	changed: func(f *symbols.File, who string, at *seen) string {
		return fmt.Sprintf("the code in %s is neither that of the file nor a breakpoint (% x): it was changed in memory", who, at.code)
	},
	disarmed: func(f *symbols.File, who string, _ *seen) string {
		return "the semaphore of the probe is 0 in " + who + ", which passes it by"
	},
}

func base(f *symbols.File) string { return symbols.Printable(filepath.Base(f.Path)) }

// who names the processes that were found so.
func who(f *surveyed, how standing) string {
	text := f.first[how].String()
	switch n := f.n[how] - 1; n {
	case 0:
		return text
	case 1:
		return text + " and 1 other"
	default:
		return fmt.Sprintf("%s and %d others", text, n)
	}
}

// clones names what the compiler made of the function, which could have had its calls.
func clones(st *Stats) string {
	all := st.File.Clones(st.Function)
	if len(all) == 0 {
		return ""
	}
	var names []string
	for _, fn := range all[:min(len(all), 3)] {
		names = append(names, symbols.Printable(fn.Name))
	}
	return "the compiler made " + strings.Join(names, ", ") + " of it, which may have its calls: probe that, too"
}

// nobody tells that no process maps the file, as far as can be seen from the host: how
// many could not be looked into is part of the sentence.
func (f *surveyed) nobody(filter Filter) bool {
	return filter.Everybody() && f.looked() == 0 && !f.late && !f.more && !InContainer()
}

// unseen says what could not be looked at.
func (f *surveyed) unseen(filter Filter, file *symbols.File) string {
	hidden := ""
	if f.denied > 0 {
		hidden = fmt.Sprintf(", as far as can be seen: %d may not be looked into", f.denied)
	}
	switch {
	case f.late:
		return "not all processes could be looked into within a second"
	case f.looked() > 0 && f.denied+f.n[unread] > 0, f.denied > 0 && !filter.Everybody():
		return "not all processes may be looked into"
	case f.more:
		return fmt.Sprintf("more than %d processes map %s, and only those were looked into", mostLooked, base(file))
	case f.looked() > 0:
		return ""
	case !filter.Everybody():
		return "whoever was to be probed has ended, and could not be looked into"
	case InContainer():
		return "no process of this container maps " + base(file) + ", and others are not seen from here"
	}
	return "no process maps " + base(file) + " now" + hidden + ": it is probed in whoever loads it, as soon as that does"
}

// checked is what was looked at, for the screen.
func checked(st *Stats, filter Filter, f *surveyed) (all []Checked) {
	if n := f.mapping(); n > 0 {
		text := "mapped by " + fmt.Sprint(n) + " processes"
		if n == 1 {
			text = "mapped by 1 process"
		}
		all = append(all, Checked{true, "file", base(st.File) + ", " + text})
	} else {
		all = append(all, Checked{false, "file", base(st.File) + " is mapped by nobody who was looked into"})
	}
	if f.n[present] > 0 {
		at := f.first[present]
		all = append(all, Checked{true, "mapping", "private and executable: the kernel could place it"},
			Checked{true, "breakpoint", fmt.Sprintf("% x at %#x in the memory of %s", at.code, at.addr, who(f, present))})
	}
	switch {
	case st.Filtered > 0:
		all = append(all, Checked{false, "filter", fmt.Sprintf("leaves %d hits out", st.Filtered)})
	case filter.Everybody():
		all = append(all, Checked{true, "filter", "none: every process counts"})
	default:
		all = append(all, Checked{true, "filter", "no hit was left out"})
	}
	return all
}
