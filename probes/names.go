package probes

import (
	"errors"
	"fmt"

	"uprobetop/symbols"
)

// CheckTwins is an error for a twin that somebody named and that is of no file of the
// target: one sentence with the build ids.
func (t *Target) CheckTwins() error {
	if t.Names == nil {
		return nil
	}
	for _, twin := range t.Names.Twins {
		var errs []error
		for _, f := range t.all {
			err := twin.Of(f, t.Names.IDsOnly)
			if err == nil {
				errs = nil
				break
			}
			errs = append(errs, err)
		}
		path := symbols.Printable(twin.Path)
		switch len(errs) {
		case 0:
		case 1:
			return fmt.Errorf("%s does not have the names of %s: %w", path, symbols.Printable(t.all[0].Path), errs[0])
		default:
			id := "has no build id"
			if twin.BuildID != "" {
				id = "has build id " + twin.BuildID
			}
			return fmt.Errorf("%s %s and is of none of the %d files of %s: uprobetop list shows their ids", path, id, len(errs), t.Label)
		}
	}
	return nil
}

// NotFound is the error of a name that no file has.
type NotFound struct {
	text  string
	files []*symbols.File
}

func (e *NotFound) Error() string { return e.text }

// NamesPassedOver is why names were not taken that would be there, as sentences, of
// the files in which one was not found.
func NamesPassedOver(err error) (notes []string) {
	var e *NotFound
	if errors.As(err, &e) {
		for _, f := range e.files {
			notes = append(notes, f.Notes...)
		}
	}
	return notes
}
