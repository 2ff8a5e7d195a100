package probes

import (
	"cmp"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"uprobetop/symbols"
)

// Ability is what can be measured of a function.
type Ability uint8

const (
	Times  Ability = iota // hits and latency
	Counts                // hits alone
	Cannot                // nothing
)

func (a Ability) String() string { return [...]string{"ok", "count", "no"}[a] }

// Able tells what can be measured of a function, and why not more. What a person
// could say yes to counts as possible.
func Able(f *symbols.File, fn *symbols.Function) (Ability, Finding) {
	timed := Check(Request{Kind: Return, File: f, Function: fn}, Hazards{})
	if timed.Verdict != Refuses {
		return Times, Finding{}
	}
	if entry := Check(Request{Kind: Entry, File: f, Function: fn}, Hazards{}); entry.Verdict == Refuses {
		return Cannot, entry
	}
	return Counts, timed
}

// Limit is what can be measured of a function that cannot be timed, and why.
type Limit struct {
	Ability
	Finding
}

// Listing is what a pattern chooses of one file.
type Listing struct {
	File      *symbols.File
	Functions []symbols.Listed
	Limits    map[*symbols.Function]Limit // of the whole file; what is not in it can be timed
	Asks      string                      // why a person is asked before anything of it is timed; or empty
}

// Limited is how many functions of the file have this ability and no more.
func (l *Listing) Limited(to Ability) int {
	n := 0
	for _, limit := range l.Limits {
		if limit.Ability == to {
			n++
		}
	}
	return n
}

// List chooses functions of all files of the target, or of the one that the spec
// names; see symbols.File.List for the pattern. Files that have none are left
// out, and if all are, that is an error with the nearest names.
func (t *Target) List(s Spec) ([]Listing, error) {
	files, err := t.filesOf(s)
	if err != nil {
		return nil, err
	}
	var all []Listing
	for _, f := range files {
		found := f.List(s.Function)
		if len(found) == 0 {
			continue
		}
		all = append(all, t.listing(f, found))
	}
	if len(all) == 0 {
		return nil, notFound(t, files, cmp.Or(strings.Trim(s.Function, "*?:"), s.Function))
	}
	return all, nil
}

// listing adds to the functions of a file what can be measured of it.
func (t *Target) listing(f *symbols.File, found []symbols.Listed) Listing {
	l := Listing{File: f, Functions: found, Limits: map[*symbols.Function]Limit{}}
	for _, limited := range limits(f) {
		maps.Copy(l.Limits, limited)
	}
	var any *symbols.Function // that can be timed: what asks is of the whole file
	for i := range f.Functions {
		if _, limited := l.Limits[&f.Functions[i]]; !limited {
			any = &f.Functions[i]
			break
		}
	}
	if any != nil {
		if finding := Check(Request{Kind: Return, File: f, Function: any}, t.Hazards("")); finding.Verdict == Asks {
			l.Asks = finding.Reason
		}
	}
	return l
}

// limits is what can be measured of those functions of a file that cannot be timed.
func limits(f *symbols.File) []map[*symbols.Function]Limit {
	f.ReadBeginnings()
	parts := make([]map[*symbols.Function]Limit, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for part := range parts {
		wg.Go(func() {
			limited := map[*symbols.Function]Limit{}
			n := len(f.Functions)
			for i := n * part / len(parts); i < n*(part+1)/len(parts); i++ {
				fn := &f.Functions[i]
				if able, why := Able(f, fn); able != Times {
					limited[fn] = Limit{able, why}
				}
			}
			parts[part] = limited
		})
	}
	wg.Wait()
	return parts
}

// Complete is what the text of a spec can become: names of functions, each with
// what stands before it in the text. Of many it is about limit.
func (t *Target) Complete(text string, limit int) []string {
	_, rest := cutKind(text)
	files := t.Files
	if i := singleColon(rest); i >= 0 {
		if named := t.named(unescape.Replace(rest[:i])); len(named) > 0 { // else it may be half of a ::
			files, rest = named, rest[i+1:]
		}
	}
	before := strings.TrimSuffix(text, rest)
	var all []string
	for _, f := range files {
		for _, name := range f.Complete(rest, max(1, limit-len(all))) {
			all = append(all, before+name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
