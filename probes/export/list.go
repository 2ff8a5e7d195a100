package export

import (
	"fmt"
	"io"

	"uprobetop/probes"
	"uprobetop/symbols"
)

// function is one line of a list. What the symbol table does not say is null.
type function struct {
	Schema  string   `json:"schema"`
	Type    string   `json:"type"`
	Name    string   `json:"name"`
	Symbol  string   `json:"symbol"`
	Aliases []string `json:"aliases"`
	Path    string   `json:"path"`
	BuildID string   `json:"build_id"`
	From    string   `json:"names_from"`
	Address string   `json:"address"`
	Size    *uint64  `json:"size"`
	Points  []pt     `json:"points"`
	Probe   string   `json:"probe"`
	Reason  string   `json:"reason"`
	Asks    string   `json:"asks"`
}

// List writes what can be probed, one line a function: probe is ok, count where
// calls cannot be timed, or no; reason says why not ok, and asks what a person has to
// say yes to before it is timed.
func List(w io.Writer, all []probes.Listing) error {
	for i := range all {
		file := all[i].File
		for j := range all[i].Functions {
			fn := &all[i].Functions[j]
			limit := all[i].Limits[fn.Function]
			o := function{
				Schema: Schema, Type: "function", Name: fn.Shown, Symbol: fn.Symbol.String(), Aliases: aliases(fn.Function),
				Path: file.Path, BuildID: file.BuildID, From: file.Source, Address: hex(fn.Addr), Points: points(file.Points(fn.Function)),
				Probe: limit.Ability.String(), Reason: limit.Finding.String(),
			}
			if limit.Ability == probes.Times {
				o.Asks = all[i].Asks
			}
			if fn.Size > 0 {
				o.Size = &fn.Size
			}
			if err := writeLine(w, o); err != nil {
				return err
			}
		}
	}
	return nil
}

func aliases(fn *symbols.Function) []string {
	names := []string{}
	for _, a := range fn.Aliases {
		names = append(names, a.Name)
	}
	return names
}

func hex[T ~uint64](n T) string { return fmt.Sprintf("%#x", uint64(n)) }
