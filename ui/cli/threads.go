package cli

import (
	"fmt"
	"io"
	"text/tabwriter"

	"uprobetop/probes"
	"uprobetop/probes/export"
	"uprobetop/symbols"
	"uprobetop/ui/format"
)

// mostShares is how many rows a table of threads or processes has.
const mostShares = 20

// tablesBy writes one table a probe: which threads or processes hit it.
func tablesBy(w io.Writer, s *probes.Snapshot, by export.By) error {
	names, timed := shownNames(s), false
	for _, p := range rows(s) {
		if p.Threads == nil || p.Hits == 0 {
			continue
		}
		timed = timed || p.Latency != nil
		all := p.Threads.Rows
		if by == export.ByProcess {
			all = probes.ByProcess(all)
		}
		if _, err := fmt.Fprintf(w, "\n%s by %s\n\n", names[p.ID], by); err != nil {
			return err
		}
		if err := sharesTable(w, s, p, all[:min(len(all), mostShares)], by); err != nil {
			return err
		}
		more(w, all, p.Threads.Others.Hits, by)
	}
	if timed {
		_, err := io.WriteString(w, "\n≈ is within 11%: a thread's histogram is a coarse one\n")
		return err
	}
	return nil
}

func sharesTable(w io.Writer, s *probes.Snapshot, p *probes.Stats, shares []probes.ThreadShare, by export.By) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "HITS\tSHARE\tPER SECOND\t")
	if p.Latency != nil {
		fmt.Fprint(t, "RETURNED\tMEAN\t≈P50\t≈P99\tMAX\t")
	}
	if by == export.ByThread {
		fmt.Fprint(t, "PID\tTID\t  THREAD\n")
	} else {
		fmt.Fprint(t, "PID\tTHREADS\t  PROCESS\n")
	}
	sum := probes.Total(p.Threads.Rows).Hits + p.Threads.Others.Hits
	over := p.Threads.Counted.Seconds()
	for i := range shares {
		r := &shares[i]
		rate := r.Rate
		if s.Final && over > 0 {
			rate = float64(r.Hits) / over
		}
		share := 0.0
		if sum > 0 {
			share = float64(r.Hits) / float64(sum)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t", format.Count(r.Hits), format.Percent(share), format.SI(rate))
		switch n := r.Latency.Count(); {
		case p.Latency == nil:
		case n == 0:
			fmt.Fprint(t, "0\t–\t–\t–\t–\t")
		default:
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t", format.Count(r.Returned), format.Latency(float64(r.Sum)/float64(n)),
				middle(r, 0.5), middle(r, 0.99), format.Latency(float64(r.Max)))
		}
		id := r.TID
		if by == export.ByProcess {
			id = r.Threads
		}
		if r.Outside() {
			fmt.Fprint(t, "–\t–\t  outside of this PID namespace\n")
			continue
		}
		fmt.Fprintf(t, "%d\t%d\t  %s\n", r.PID, id, symbols.Printable(r.Comm))
	}
	return t.Flush()
}

// middle is a quantile of a thread, of which only bounds are known.
func middle(r *probes.ThreadShare, q float64) string {
	return format.Latency(r.Middle(q))
}

// more tells of the rows that are not printed, and of the hits that have none.
func more(w io.Writer, all []probes.ThreadShare, others uint64, by export.By) {
	thing, things := "thread", "threads"
	if by == export.ByProcess {
		thing, things = "process", "processes"
	}
	if n := len(all) - mostShares; n > 0 {
		if n > 1 {
			thing = things
		}
		fmt.Fprintf(w, "… %s more %s, %s hits together\n", format.Count(uint64(n)), thing, format.Count(probes.Total(all[mostShares:]).Hits))
	}
	if others > 0 {
		fmt.Fprintf(w, "%s hits are of threads that found no room: name fewer functions, or narrow the target\n", format.Count(others))
	}
}
