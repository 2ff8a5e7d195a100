package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"uprobetop/probes"
	"uprobetop/symbols"
	"uprobetop/ui/format"
)

// table writes a snapshot for people: one line a probe, then one verdict.
func table(w io.Writer, s *probes.Snapshot) error {
	timed := false
	for i := range s.Probes {
		timed = timed || s.Probes[i].Latency != nil
	}
	fmt.Fprintf(w, "after %.2fs, %d CPUs, kernel %s, %s\n\n", s.Elapsed.Seconds(), s.CPUs, s.Kernel, s.Method)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "HITS\tPER SECOND\t")
	if timed {
		fmt.Fprint(t, "RETURNED\tMEAN\tP50\tP99\tMAX\tIN FLIGHT\tUNWOUND\tMISSED\t")
	}
	fmt.Fprint(t, "  FUNCTION\n")
	for i := range s.Probes {
		row(t, s, &s.Probes[i], timed)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	end := "\n"
	if s.Final {
		end = "\n" + verdict(s) + "\n"
	}
	_, err := io.WriteString(w, end)
	return err
}

func row(t io.Writer, s *probes.Snapshot, p *probes.Stats, timed bool) {
	rate := p.Rate
	if s.Final && s.Elapsed > 0 {
		rate = float64(p.Hits) / s.Elapsed.Seconds()
	}
	if p.Stood() {
		fmt.Fprintf(t, "%s\t%s\t", format.Count(p.Hits), format.SI(rate))
	} else {
		fmt.Fprint(t, "–\t–\t")
	}
	switch h := p.Latency; {
	case !timed:
	case h == nil:
		fmt.Fprint(t, "–\t–\t–\t–\t–\t–\t–\t–\t")
	case h.Count() == 0:
		fmt.Fprintf(t, "0\t–\t–\t–\t–\t%d\t%d\t%d\t", p.InFlight, p.Unwound.Total(), p.Missed.Total())
	default:
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t", format.Count(p.Returned),
			format.Latency(h.Mean()), format.Latency(float64(h.Quantile(0.5))), format.Latency(float64(h.Quantile(0.99))),
			format.Latency(float64(h.Max)), p.InFlight, p.Unwound.Total(), p.Missed.Total())
	}
	fmt.Fprintf(t, "  %s", p.Function.Demangled())
	if p.State != probes.Attached {
		fmt.Fprintf(t, "  (%s: %s)", p.State, p.Note)
	}
	fmt.Fprintln(t)
}

// callLines writes one line a single call.
func callLines(w io.Writer, s *probes.Snapshot) error {
	for i := range s.Calls {
		c := &s.Calls[i]
		st := s.Find(c.Probe)
		if st == nil {
			continue // its probe is taken away
		}
		thread := "began before it was watched"
		if t := c.Thread; t != nil {
			thread = "on CPU " + format.Latency(float64(t.OnCPU))
			if t.Waiting >= 0 {
				thread += ", waiting for one " + format.Latency(float64(t.Waiting))
			}
			thread += fmt.Sprintf(", switches %d, faults %d", t.Voluntary+t.Involuntary, t.MinorFaults+t.MajorFaults)
		}
		_, err := fmt.Fprintf(w, "%s %9s  %s  %s %d, CPU %d: %s\n", c.At.Format("15:04:05.000"), format.Latency(float64(c.Latency)),
			st.Function.Demangled(), symbols.Printable(c.Comm), c.TID, c.CPU, thread)
		if err != nil {
			return err
		}
	}
	return nil
}

// verdict says whether the numbers add up, and what they leave out: one sentence
// a line.
func verdict(s *probes.Snapshot) string {
	var notes []string
	note := func(text string, args ...any) { notes = append(notes, fmt.Sprintf(text, args...)) }
	exact, left := true, 0
	for i := range s.Probes {
		p := &s.Probes[i]
		name := p.Function.Demangled()
		if p.Latency != nil && p.Balance() != 0 {
			exact = false
			note("the books of %s are off by %d", name, p.Balance())
		}
		if p.Missed.Depth > 0 {
			note("%s calls of %s are not in its latency: their thread had 64 returns pending", format.Count(p.Missed.Depth), name)
		}
		if p.Missed.NoSlot > 0 {
			note("%s calls of %s are not in its latency: there was no memory to follow them", format.Count(p.Missed.NoSlot), name)
		}
		if !p.Stood() {
			left++
			continue
		}
		if p.Hits == 0 {
			note("no call reached %s: not called, or inlined into its callers", name)
		}
		if p.Orphans > 0 {
			note("%s returns of %s had no hit: of calls from before, or of a forked child", format.Count(p.Orphans), name)
		}
		if p.File.Go {
			note("%s: %s", name, probes.GoNote)
		}
		if p.Filtered > 0 {
			note("%s hits of %s by other processes are left out", format.Count(p.Filtered), name)
		}
	}
	if s.HeldBack > 0 {
		note("%s slow calls are not printed: they came faster than the rate limit lets through", format.Count(s.HeldBack))
	}
	if s.Lost.Calls > 0 {
		note("%s slow calls are not printed: the ring buffer was full", format.Count(s.Lost.Calls))
	}
	if s.Unfollowed > 0 {
		exact = false
		note("%s processes could not be followed: more than 16,384 ran at once", format.Count(s.Unfollowed))
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
