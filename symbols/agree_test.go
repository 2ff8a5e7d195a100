package symbols

import "testing"

// A twin whose names are elsewhere than those of the file is not of it; versions and
// local functions may have one name at several addresses.
func TestAgree(t *testing.T) {
	at := func(name string, addr uint64) symbol { return symbol{Symbol: Symbol{Name: name}, addr: addr} }
	own := []symbol{at("f", 1), at("g", 2), at("g", 3)}
	for _, c := range []struct {
		theirs []symbol
		agrees bool
	}{
		{[]symbol{at("f", 1), at("g", 3), at("h", 9)}, true},
		{[]symbol{at("f", 7), at("f", 1)}, true},
		{[]symbol{at("h", 9)}, true},
		{[]symbol{at("f", 4), at("g", 2)}, false},
	} {
		if err := agree(own, c.theirs); (err == nil) != c.agrees {
			t.Errorf("%v: %v", c.theirs, err)
		}
	}
}
