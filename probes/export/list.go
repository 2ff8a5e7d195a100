package export

import (
	"fmt"
	"io"

	"uprobetop/probes"
	"uprobetop/symbols"
)

// function is one line of a list. What the symbol table does not say is null, and so
// are the address of a name that is only imported and the class of what cannot be
// probed.
type function struct {
	Schema  string   `json:"schema"`
	Type    string   `json:"type"`
	Name    string   `json:"name"`
	Symbol  string   `json:"symbol"`
	Aliases []string `json:"aliases"`
	Path    string   `json:"path"`
	BuildID string   `json:"build_id"`
	From    string   `json:"names_from"`
	Address *string  `json:"address"`
	Size    *uint64  `json:"size"`
	Points  []pt     `json:"points"`
	Class   *string  `json:"class"`
	Probe   string   `json:"probe"`
	Reason  string   `json:"reason"`
	Note    string   `json:"note"`
	Asks    string   `json:"asks"`
}

// List writes what can be probed, one line a function: probe is ok, count where
// calls cannot be timed, or no; reason says why not ok, note that it is the
// variant of an IFUNC that is in use, and asks what a person has to say yes to before
// it is timed. A usdt probe is of the type usdt.
func List(w io.Writer, all []probes.Listing) error {
	for i := range all {
		file := all[i].File
		for j := range all[i].Functions {
			fn := &all[i].Functions[j]
			limit := all[i].Limits[fn.Function]
			o := function{
				Schema: Schema, Type: "function", Name: fn.Shown, Symbol: fn.Symbol.Raw(), Aliases: aliases(fn.Function),
				Path: file.Path, BuildID: file.BuildID, From: file.Source, Points: []pt{},
				Probe: limit.Ability.String(), Reason: limit.Finding.String(),
			}
			if fn.Place != symbols.Imported && fn.Place != symbols.InVDSO {
				address := hex(fn.Addr)
				o.Address = &address
			}
			if fn.Place < symbols.NoCode || fn.Place == symbols.Marker {
				o.Points = points(file.Points(fn.Function))
			}
			if class := probes.ClassOf(file, fn.Function).String(); class != "" && limit.Ability != probes.Cannot {
				o.Class = &class
			}
			if fn.Chosen {
				o.Note = probes.ChosenNote
			}
			if fn.Place == symbols.Marker {
				o.Type = "usdt"
				if note := probes.UnmarkedNote(file, fn.Function); note != "" && limit.Ability == probes.Counts {
					o.Reason += "; " + note
				}
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
