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
	timed := refusal(Request{Kind: Return, File: f, Function: fn})
	if timed.Verdict == Fine {
		return Times, Finding{}
	}
	if entry := refusal(Request{Kind: CountingKind(fn), File: f, Function: fn}); entry.Verdict != Fine {
		return Cannot, entry
	}
	return Counts, timed
}

// ChosenNote marks the function that an IFUNC's names lead to.
const ChosenNote = "IFUNC, this variant is in use"

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
	Led       string                      // why it is this file and not the one that was named; or empty
	Runtime   string                      // what is in no file because it is made at run time; or empty
}

// Limited is how many functions of the file have this ability and no more. The names
// that it imports are no functions of the file, and that a usdt probe is only counted
// limits nothing.
func (l *Listing) Limited(to Ability) int {
	n := 0
	for fn, limit := range l.Limits {
		if limit.Ability == to && fn.Place != symbols.Imported && (to == Cannot || fn.Place != symbols.Marker) {
			n++
		}
	}
	return n
}

// Imported is how many functions the file has from others.
func (l *Listing) Imported() int {
	n := 0
	for fn := range l.Limits {
		if fn.Place == symbols.Imported {
			n++
		}
	}
	return n
}

// Own is how many functions the file has itself.
func (l *Listing) Own() int { return len(l.File.Functions) - l.Imported() - len(l.File.Markers()) }

// NoFunctions is what to do about a file that is stripped of all of them.
const NoFunctions = "it has no function symbols: " + whatHelps + ", or try --debuginfod"

// List chooses functions of all files of the target, or of the one that the spec
// names; see symbols.File.List for the pattern. A spec of usdt chooses usdt probes
// alone. Files that have none are left out, and if all are, that is an error with the
// nearest names.
func (t *Target) List(s Spec) ([]Listing, error) {
	s = t.ReadProvider(s)
	files, err := t.filesOf(s)
	if err != nil {
		return nil, err
	}
	all := t.list(files, s)
	if len(all) == 0 {
		behind, note := t.behindStubs(files)
		if all = t.list(behind, s); len(all) > 0 {
			all[0].Led = note
		}
	}
	if len(all) == 0 {
		s.Function = cmp.Or(strings.Trim(s.Function, "*?:"), s.Function)
		return nil, notFound(t, files, s)
	}
	return all, nil
}

func (t *Target) list(files []*symbols.File, s Spec) (all []Listing) {
	lists := make([][]symbols.Listed, len(files))
	for i, f := range files {
		lists[i] = listed(f, s)
	}
	withoutProvided(lists)
	for i, f := range files {
		if len(lists[i]) > 0 {
			all = append(all, t.listing(f, lists[i]))
		}
	}
	return all
}

// listing adds to the functions of a file what can be measured of it.
func (t *Target) listing(f *symbols.File, found []symbols.Listed) Listing {
	l := Listing{File: f, Functions: found, Limits: map[*symbols.Function]Limit{}, Runtime: Runtime([]*symbols.File{f})}
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
	timed := slices.ContainsFunc(found, func(l symbols.Listed) bool { return l.Place != symbols.Marker })
	if any != nil && timed {
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
	kind, rest := cutKind(text)
	files := t.Files
	if i := targetEnd(kind, rest); i >= 0 {
		if named := t.named(unescape.Replace(rest[:i])); len(named) > 0 { // else it may be half of a ::
			files, rest = named, rest[i+1:]
		}
	}
	before := strings.TrimSuffix(text, rest)
	var all []string
	for _, f := range files {
		names := completeMarkers(f, rest)
		if kind != USDT {
			markers := names
			names = slices.DeleteFunc(f.Complete(rest, max(1, limit-len(all))), func(s string) bool { return slices.Contains(markers, s) })
		}
		for _, name := range names {
			all = append(all, before+name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
