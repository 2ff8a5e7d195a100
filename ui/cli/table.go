package cli

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"uprobetop/probes"
	"uprobetop/symbols"
	"uprobetop/ui/format"
)

// table writes a snapshot for people: one line a probe, then one verdict. The total
// of a series says that it is one, and the others that their rates are not of all
// the time.
//
// The findings are those of the end.
func table(w io.Writer, s *probes.Snapshot, series bool, found *findings) error {
	timed := false
	for i := range s.Probes {
		timed = timed || s.Probes[i].Latency != nil
	}
	head := fmt.Sprintf("after %.2fs", s.Elapsed.Seconds())
	switch {
	case series && s.Final:
		head = "total " + head
	case series:
		head += fmt.Sprintf(", per second of the last %s", format.Latency(float64(s.Interval)))
	}
	store := ""
	if s.InFlight != "" && s.InFlight != probes.TaskStore {
		store = ", in-flight store " + string(s.InFlight)
	}
	fmt.Fprintf(w, "%s, %d CPUs, kernel %s, %s%s\n\n", head, s.CPUs, s.Kernel, s.Method, store)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "HITS\tPER SECOND\t")
	if timed {
		self := ""
		if hasSelf(s) {
			self = "SELF\t"
		}
		fmt.Fprint(t, "RETURNED\tMEAN\t"+self+"P50\tP99\tMAX\tIN FLIGHT\tUNWOUND\tMISSED\t")
	}
	fmt.Fprint(t, "  FUNCTION\n")
	names := shownNames(s)
	for _, p := range rows(s) {
		row(t, s, p, timed, names[p.ID])
	}
	if err := t.Flush(); err != nil {
		return err
	}
	end := "\n"
	if s.Final {
		end = "\n" + verdict(s, names, found) + "\n" + ownShare(s)
	}
	_, err := io.WriteString(w, end)
	return err
}

// manyRows is from how many probes on a table is one of a pattern: sorted by hits,
// and without what was not called.
const manyRows = 25

func rows(s *probes.Snapshot) []*probes.Stats {
	var all []*probes.Stats
	for i := range s.Probes {
		if p := &s.Probes[i]; len(s.Probes) < manyRows || p.Hits > 0 {
			all = append(all, p)
		}
	}
	if len(s.Probes) >= manyRows {
		slices.SortStableFunc(all, func(a, b *probes.Stats) int { return cmp.Compare(b.Hits, a.Hits) })
	}
	return all
}

func row(t io.Writer, s *probes.Snapshot, p *probes.Stats, timed bool, name string) {
	rate := p.Rate
	if s.Final && p.Counted > 0 {
		rate = float64(p.Hits) / p.Counted.Seconds()
	}
	if p.Stood() {
		fmt.Fprintf(t, "%s\t%s\t", format.Count(p.Hits), format.SI(rate))
	} else {
		fmt.Fprint(t, "–\t–\t")
	}
	if timed {
		latencyCells(t, p, hasSelf(s))
	}
	fmt.Fprintf(t, "  %s", name)
	switch p.State {
	case probes.Attached:
	case probes.Gone:
		fmt.Fprintf(t, "  (%s: %s)", p.State, probes.EndedNote)
	default:
		fmt.Fprintf(t, "  (%s: %s)", p.State, p.Note)
	}
	fmt.Fprintln(t)
}

// hasSelf tells whether functions that are timed call each other, so that what one
// takes itself is less than what it takes.
func hasSelf(s *probes.Snapshot) bool {
	return slices.ContainsFunc(s.Probes, func(p probes.Stats) bool { return p.Callees > 0 })
}

// latencyCells writes the part of a row that only a timed function has.
func latencyCells(t io.Writer, p *probes.Stats, self bool) {
	h, cells := p.Latency, make([]string, 8, 9)
	for i := range cells {
		cells[i] = "–"
	}
	own := "–"
	if h != nil {
		cells[0], cells[4] = format.Count(p.Returned), longest(p)
		cells[7] = strconv.FormatUint(p.Missed.Total(), 10)
		if !p.NoFrames {
			cells[5], cells[6] = strconv.FormatInt(p.InFlight, 10), strconv.FormatUint(p.Unwound.Total(), 10)
		}
	}
	if h != nil && h.Count() > 0 {
		cells[1] = format.Latency(h.Mean())
		own = format.Latency(float64(p.Self()) / float64(h.Count()))
		cells[2], cells[3] = format.Latency(float64(h.Quantile(0.5))), format.Latency(float64(h.Quantile(0.99)))
	}
	if self {
		cells = slices.Insert(cells, 2, own)
	}
	fmt.Fprint(t, strings.Join(cells, "\t")+"\t")
}

// longest is the largest latency, or the age of a call that is older already.
func longest(p *probes.Stats) string {
	switch {
	case p.Hangs():
		return "≥ " + format.Latency(float64(p.Oldest))
	case p.Latency.Count() == 0:
		return "–"
	}
	return format.Latency(float64(p.Latency.Max))
}

// callLines writes one line a single call.
func callLines(w io.Writer, s *probes.Snapshot) error {
	if len(s.Calls) == 0 {
		return nil
	}
	names := shownNames(s)
	for i := range s.Calls {
		c := &s.Calls[i]
		st := s.Find(c.Probe)
		if st == nil {
			continue // its probe is taken away
		}
		id := "outside"
		if !c.Outside() {
			id = strconv.Itoa(c.TID)
		}
		thread := "began before it was watched"
		if t := c.Thread; t != nil {
			thread = "on CPU " + format.Latency(float64(t.OnCPU))
			if c.Vague() {
				thread += " ±" + format.Latency(float64(t.OnCPUError))
			}
			if t.Waiting >= 0 {
				thread += ", waiting for one " + format.Latency(float64(t.Waiting))
			}
			if blocked := c.Blocked(); blocked > 0 {
				thread += ", blocked " + format.Latency(float64(blocked))
			}
			thread += fmt.Sprintf(", switches %d, faults %d, args %#x %#x %#x", t.Voluntary+t.Involuntary, t.MinorFaults+t.MajorFaults,
				c.Args[0], c.Args[1], c.Args[2])
		}
		_, err := fmt.Fprintf(w, "%s %9s  %s  %s %s, CPU %d: %s, result %#x\n", c.At.Format("15:04:05.000"), format.Latency(float64(c.Latency)),
			names[st.ID], symbols.Printable(c.Comm), id, c.CPU, thread, c.Return)
		if err != nil {
			return err
		}
	}
	return nil
}

// remarks are notes on probes, one sentence for all that have the same to say.
type remarks struct {
	order []string
	of    map[string]*remark
}

type remark struct {
	n     uint64
	names []string
}

// add notes a number of things of a probe; the text has a place for the number and
// one for the names.
func (r *remarks) add(text string, n uint64, name string) {
	if n == 0 {
		return
	}
	if r.of[text] == nil {
		r.order = append(r.order, text)
		r.of[text] = &remark{}
	}
	r.of[text].n += n
	r.of[text].names = append(r.of[text].names, name)
}

func (r *remarks) sentences() (all []string) {
	for _, text := range r.order {
		all = append(all, fmt.Sprintf(text, format.Count(r.of[text].n), format.List(r.of[text].names)))
	}
	return all
}

// uncalled says that there is no hit, and why that can be.
func uncalled(s *probes.Snapshot, p *probes.Stats) string {
	const none = "no call reached %[2]s"
	if s.Filter.Follow && p.File.Library {
		chosen := ""
		if p.Function.Chosen {
			chosen = " or chose another variant"
		}
		return none + " of " + escaped(symbols.Printable(p.File.Path)) +
			": not called, inlined into the callers, or the command loaded another copy" + chosen
	}
	if len(s.Filter.PIDs) > 0 && !s.Filter.Follow {
		return none + ": not called, inlined into the callers, or called by children of the process, which --children counts, too"
	}
	return none + ": not called, or inlined into the callers"
}

// escaped makes a text fit for a format.
func escaped(text string) string { return strings.ReplaceAll(text, "%", "%%") }

// verdict says whether the numbers add up, and what they leave out: one sentence
// a line.
func verdict(s *probes.Snapshot, names map[probes.ID]string, found *findings) string {
	all := remarks{of: map[string]*remark{}}
	doubts := found.inexact(names)
	exact, left, said := len(doubts) == 0, 0, map[string]bool{}
	old := map[*symbols.File]bool{}
	for i := range s.Probes {
		p := &s.Probes[i]
		name := names[p.ID]
		if p.Latency != nil && p.Balance() != 0 {
			exact = false
			all.add(fmt.Sprintf("the books of %%[2]s are off by %d", p.Balance()), 1, name)
		}
		all.add("%s calls of %s are not in the latency: their thread had 64 returns pending", p.Missed.Depth, name)
		all.add("%s calls of %s are not in the latency: there was no room to follow them", p.Missed.NoSlot, name)
		all.add("%s calls of %s have not returned: in flight or unwound, which session cookies do not tell apart", uint64(max(p.Unreturned, 0)), name)
		if !p.Stood() {
			left++
			continue
		}
		switch why, told := found.silence(p, said); {
		case told:
		case why != "":
			all.add("%[2]s: "+escaped(why), 1, name)
		case p.Hits > 0:
		case p.Kind == probes.USDT:
			all.add("no thread passed %[2]s", 1, name)
		default:
			all.add(uncalled(s, p), 1, name)
			if more := found.more(p); more != "" && len(said) < explained {
				said[more] = true
				all.add("%[2]s: "+escaped(more), 1, name)
			}
		}
		if note := probes.UnmarkedNote(p.File, p.Function); note != "" {
			exact = false
			all.add("%[2]s is "+escaped(note), 1, name)
		}
		of := "of calls from before, or of a forked child"
		if p.Missed.NoSlot > 0 {
			of = "of calls from before, of a forked child, or of those that there was no room for"
		}
		all.add("%s returns of %s had no hit: "+of, p.Orphans, name)
		if badge := p.File.Badge(); badge != "" && !old[p.File] {
			old[p.File] = true
			all.add("%[2]s was "+badge+": what is probed is what runs", 1, symbols.Printable(filepath.Base(p.File.Path)))
		}
		if p.HitsAgain() {
			all.add("%[2]s: "+probes.AgainNote, 1, name)
		}
		all.add("%s hits of %s by others are left out", p.Filtered, name)
	}
	notes := append(slices.Clone(doubts), all.sentences()...)
	notes = append(notes, found.ofKernel(s)...)
	if s.HeldBack > 0 {
		notes = append(notes, format.Count(s.HeldBack)+" slow calls are not printed: they came faster than the rate limit lets through")
	}
	if full := s.Lost.Calls - s.Lost.Busy; full > 0 {
		notes = append(notes, format.Count(full)+" slow calls are not printed: the ring buffer was full")
	}
	if s.Lost.Busy > 0 {
		notes = append(notes, format.Count(s.Lost.Busy)+" slow calls are not printed: the ring buffer was locked for too long")
	}
	word, agrees := audited(s, names)
	notes, exact = append(notes, word...), exact && agrees
	if s.Unfollowed > 0 {
		exact = false
		notes = append(notes, format.Count(s.Unfollowed)+" processes could not be followed: more than 16,384 ran at once")
	}
	first := "exact: every hit is counted"
	switch {
	case !exact:
		first = "not exact"
	case left > 0:
		first = fmt.Sprintf("exact for what is probed, and %s not", format.Things(left, "function"))
	}
	return strings.Join(append([]string{first}, notes...), "\n")
}
