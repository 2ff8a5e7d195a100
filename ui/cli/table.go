package cli

import (
	"fmt"
	"io"
	"text/tabwriter"

	"uprobetop/probes"
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
	_, err := fmt.Fprintf(w, "\n%s\n", verdict(s))
	return err
}

func row(t io.Writer, s *probes.Snapshot, p *probes.Stats, timed bool) {
	rate := p.Rate
	if s.Final && s.Elapsed > 0 {
		rate = float64(p.Hits) / s.Elapsed.Seconds()
	}
	fmt.Fprintf(t, "%s\t%s\t", format.Count(p.Hits), format.SI(rate))
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

// verdict says whether the numbers add up, and what they rest on.
func verdict(s *probes.Snapshot) string {
	var missed uint64
	for i := range s.Probes {
		p := &s.Probes[i]
		if p.Latency == nil {
			continue
		}
		if b := p.Balance(); s.Final && b != 0 {
			return fmt.Sprintf("not exact: the books of %s are off by %d", p.Function.Demangled(), b)
		}
		missed += p.Missed.Total()
	}
	if missed > 0 {
		return fmt.Sprintf("%s hits were counted but not timed: their threads had 64 returns pending", format.Count(missed))
	}
	return "exact: every hit is counted, and nothing was missed"
}
