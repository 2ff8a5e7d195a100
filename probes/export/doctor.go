package export

import (
	"encoding/json"
	"fmt"
	"io"

	"uprobetop/probes"
)

type diagnosis struct {
	Schema  string     `json:"schema"`
	Kind    string     `json:"kind"`
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
	o := diagnosis{Schema: Schema, Kind: "doctor", Ready: d.Ready, Verdict: d.Verdict, Checks: []examined{}}
	for _, e := range d.Checks {
		o.Checks = append(o.Checks, examined{e.Name, string(e.Status), e.Found, e.Means, e.Remedy})
	}
	if err := json.NewEncoder(w).Encode(o); err != nil {
		return fmt.Errorf("the diagnosis cannot be written: %w", err)
	}
	return nil
}
