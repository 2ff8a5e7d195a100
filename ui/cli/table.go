package cli

import (
	"cmp"
	"fmt"
	"io"
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
		how := "began before it was watched"
		if t := c.Thread; t != nil {
			how = "on CPU " + format.Latency(float64(t.OnCPU))
			if c.Vague() {
				how += " ±" + format.Latency(float64(t.OnCPUError))
			}
			if t.Waiting >= 0 {
				how += ", waiting for one " + format.Latency(float64(t.Waiting))
			}
			if blocked := c.Blocked(); blocked > 0 {
				how += ", blocked " + format.Latency(float64(blocked))
			}
			how += fmt.Sprintf(", switches %d, faults %d, args %#x %#x %#x", t.Voluntary+t.Involuntary, t.MinorFaults+t.MajorFaults,
				c.Args[0], c.Args[1], c.Args[2])
		}
		_, err := fmt.Fprintf(w, "%s %9s  %s  %s %s, CPU %d: %s, result %#x\n", c.At.Format("15:04:05.000"), format.Latency(float64(c.Latency)),
			names[st.ID], symbols.Printable(c.Comm), thread(c), c.CPU, how, c.Return)
		if err != nil {
			return err
		}
	}
	return nil
}

// thread is the id of the thread of a call, if it has one here.
func thread(c *probes.Call) string {
	if c.Outside() {
		return "outside"
	}
	return strconv.Itoa(c.TID)
}
