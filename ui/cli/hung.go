package cli

import (
	"fmt"
	"io"
	"time"

	"uprobetop/probes"
	"uprobetop/symbols"
	"uprobetop/ui/format"
)

// hungAfter is the age from which on a call in flight is told of in any case, and
// mostHung how many are.
const (
	hungAfter = time.Second
	mostHung  = 10
)

// hungLines tells which calls still hang: those that are older than any that has
// returned, that take very long, or as long as somebody wanted to be told of (slow;
// 0: nobody).
func hungLines(w io.Writer, s *probes.Snapshot, slow time.Duration) error {
	if s.Inside == nil {
		return nil
	}
	names, hung := shownNames(s), 0
	for i := range s.Inside.Calls {
		c := &s.Inside.Calls[i]
		st := s.Find(c.Probe)
		longer := st.Returned > 0 && c.Latency > time.Duration(st.Latency.Max)
		if !longer && c.Latency < hungAfter && (slow == 0 || c.Latency < slow) {
			continue
		}
		if hung++; hung > mostHung {
			continue
		}
		_, err := fmt.Fprintf(w, "in flight: %s %s, thread %s %s\n", names[st.ID], format.Latency(float64(c.Latency)), thread(c),
			symbols.Printable(c.Comm))
		if err != nil {
			return err
		}
	}
	if hung <= mostHung {
		return nil
	}
	_, err := fmt.Fprintf(w, "in flight: %s more that are younger\n", format.Count(uint64(hung-mostHung)))
	return err
}
