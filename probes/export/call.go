package export

import (
	"io"
	"time"

	"uprobetop/probes"
)

// What is not known of a call is null: what had happened before its report was
// asked for, what this kernel does not keep, and the ids of who is outside of the
// container in which uprobetop runs. on_cpu_error_ns is by how much on_cpu_ns and
// blocked_ns can be wrong, up or down.
type call struct {
	Schema  string    `json:"schema"`
	Type    string    `json:"type"`
	At      string    `json:"at"` // of the return
	Probe   uint64    `json:"probe"`
	Name    string    `json:"name"`
	PID     *int      `json:"pid"`
	TID     *int      `json:"tid"`
	Comm    string    `json:"comm"`
	CPU     int       `json:"cpu"`
	Latency int64     `json:"latency_ns"`
	Callees *int64    `json:"callees_ns"`
	OnCPU   *int64    `json:"on_cpu_ns"`
	Error   *int64    `json:"on_cpu_error_ns"`
	Waiting *int64    `json:"waiting_ns"`
	Blocked *int64    `json:"blocked_ns"`
	Switch  *switches `json:"switches"`
	Faults  *faults   `json:"faults"`
	Args    []string  `json:"args"`
	Return  string    `json:"return"`
}

type switches struct {
	Voluntary   uint64 `json:"voluntary"`
	Involuntary uint64 `json:"involuntary"`
}

type faults struct {
	Minor uint64 `json:"minor"`
	Major uint64 `json:"major"`
}

// Calls writes the single calls of a snapshot, one a line.
func Calls(w io.Writer, s *probes.Snapshot) error {
	for i := range s.Calls {
		c := &s.Calls[i]
		st := s.Find(c.Probe)
		if st == nil {
			continue // its probe is taken away
		}
		if err := writeLine(w, callObject(c, st.Function.Demangled())); err != nil {
			return err
		}
	}
	return nil
}

func callObject(c *probes.Call, name string) call {
	o := call{
		Schema: Schema, Type: "call", At: c.At.UTC().Format(time.RFC3339Nano), Probe: uint64(c.Probe), Name: name,
		Comm: c.Comm, CPU: c.CPU,
		Latency: c.Latency.Nanoseconds(), Return: hex(c.Return),
	}
	if c.Callees >= 0 {
		callees := c.Callees.Nanoseconds()
		o.Callees = &callees
	}
	if !c.Outside() {
		o.PID, o.TID = &c.PID, &c.TID
	}
	t := c.Thread
	if t == nil {
		return o
	}
	for _, a := range c.Args {
		o.Args = append(o.Args, hex(a))
	}
	o.OnCPU, o.Error = known(t.OnCPU), known(t.OnCPUError)
	o.Waiting, o.Blocked = known(t.Waiting), known(c.Blocked())
	o.Switch, o.Faults = &switches{t.Voluntary, t.Involuntary}, &faults{t.MinorFaults, t.MajorFaults}
	return o
}

// known is a time in ns, or nil if it is below 0: not known.
func known(d time.Duration) *int64 {
	if d < 0 {
		return nil
	}
	ns := d.Nanoseconds()
	return &ns
}
