package probes

import "uprobetop/symbols"

// Request asks for one function to be measured.
type Request struct {
	Kind     Kind
	File     *symbols.File
	Function *symbols.Function
	Accepted bool // a person said yes to the finding that asks
}

// Verdict is what is known before a probe is placed.
type Verdict uint8

const (
	Fine    Verdict = iota // nothing speaks against it
	Asks                   // it can do harm: a person has to say yes, once a file
	Refuses                // it would do harm: not placed, whoever asks
)

// Finding is the strongest thing that speaks against a request.
type Finding struct {
	Verdict Verdict
	Reason  string // a clause without a full stop: what, why
	Way     string // what to do instead; may be empty
}

// String is the reason and the way out, in one sentence without a full stop.
func (f Finding) String() string {
	if f.Way == "" {
		return f.Reason
	}
	return f.Reason + "; " + f.Way
}
