package export

import (
	"io"

	"uprobetop/probes"
)

type diagnosis struct {
	Schema  string     `json:"schema"`
	Type    string     `json:"type"`
	Ready   bool       `json:"ready"`
	Verdict string     `json:"verdict"`
	Checks  []examined `json:"checks"`
}

type examined struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	Found  string `json:"found"`
	Means  string `json:"means"`
	Remedy string `json:"remedy"`
}

// Diagnosis writes what this kernel and this user can do, as one line.
func Diagnosis(w io.Writer, d probes.Diagnosis) error {
	o := diagnosis{Schema: Schema, Type: "doctor", Ready: d.Ready, Verdict: d.Verdict, Checks: []examined{}}
	for _, e := range d.Checks {
		o.Checks = append(o.Checks, examined{e.Name, string(e.Status), e.Found, e.Means, e.Remedy})
	}
	return writeLine(w, o)
}
