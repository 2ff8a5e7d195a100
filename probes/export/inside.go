package export

import (
	"time"

	"uprobetop/probes"
)

// insider is a call that has not returned. What is not known of it is null, as of
// a call.
type insider struct {
	Probe   uint64    `json:"probe"`
	Name    string    `json:"name"`
	PID     *int      `json:"pid"`
	TID     *int      `json:"tid"`
	Comm    string    `json:"comm"`
	At      string    `json:"at"` // when it was looked at
	Age     int64     `json:"age_ns"`
	Callees *int64    `json:"callees_ns"` // in those that have returned
	OnCPU   *int64    `json:"on_cpu_ns"`
	Waiting *int64    `json:"waiting_ns"`
	Switch  *switches `json:"switches"`
	Faults  *faults   `json:"faults"`
	Args    []string  `json:"args"`
}

// mostInsiders are the oldest calls that a snapshot lists; in_flight has all.
const mostInsiders = 100

// insiders are the oldest calls in flight, the oldest first: null if there are some
// and they were not enumerated, or not all of them.
func insiders(s *probes.Snapshot) []insider {
	for i := range s.Probes {
		p := &s.Probes[i]
		if s.Inside == nil && (p.InFlight != 0 || p.Kind == probes.Return && p.NoFrames) || s.Unlisted(p) > 0 {
			return nil
		}
	}
	all := []insider{}
	if s.Inside == nil {
		return all
	}
	for i := range s.Inside.Calls[:min(len(s.Inside.Calls), mostInsiders)] {
		c := &s.Inside.Calls[i]
		st := s.Find(c.Probe)
		if st == nil {
			continue
		}
		o := callObject(c, st.Function.Demangled()) // has the same, and more
		all = append(all, insider{
			Probe: o.Probe, Name: o.Name, PID: o.PID, TID: o.TID, Comm: o.Comm, At: c.At.UTC().Format(time.RFC3339Nano),
			Age: o.Latency, Callees: o.Callees, OnCPU: o.OnCPU, Waiting: o.Waiting, Switch: o.Switch, Faults: o.Faults, Args: o.Args,
		})
	}
	return all
}
