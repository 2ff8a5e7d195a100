package probes

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"uprobetop/symbols"
)

// Resolved is what specs mean in a target.
type Resolved struct {
	Requests []Request
	Matched  int       // functions that patterns match
	Skipped  []Skipped // of those, what is not asked for; the most frequent reason first
	Led      []string  // clauses: where names led that a file only imports
	Old      []string  // names without a version that stand for old versions alone, fit for a terminal
}

// Skipped is functions that a pattern matches and that are not probed.
type Skipped struct {
	N      int
	Reason string   // a clause, as in Finding
	Names  []string // of a few of them, fit for a terminal
}

// fewNames is how many Skipped.Names hold.
const fewNames = 3

// LeftOut is how many functions were skipped in all.
func (r *Resolved) LeftOut() (n int) {
	for _, s := range r.Skipped {
		n += s.N
	}
	return n
}

func (r *Resolved) skip(n int, reason string, names ...string) {
	i := slices.IndexFunc(r.Skipped, func(s Skipped) bool { return s.Reason == reason })
	if i < 0 {
		i = len(r.Skipped)
		r.Skipped = append(r.Skipped, Skipped{Reason: reason})
	}
	s := &r.Skipped[i]
	s.N += n
	s.Names = append(s.Names, names[:min(len(names), fewNames-len(s.Names))]...)
}

// Resolve turns specs into requests, all of latency if so asked. A spec's function
// is tried as an exact name, then as name+0x10, then as an address, then as a
// pattern. Of a pattern, functions that cannot be probed are skipped and counted.
// A name that no file has, or a pattern of which nothing is left, is an error, with
// the names nearest to it: nothing is half done.
func (t *Target) Resolve(specs []Spec, latency bool) (*Resolved, error) {
	r := resolver{target: t, seen: map[site]int{}}
	for _, s := range specs {
		s = t.ReadProvider(s)
		switch {
		case latency && s.Kind == USDT:
			return nil, fmt.Errorf("%s cannot be timed: %s; without -r and --slow it is counted", symbols.Printable(s.String()), noReturn)
		case latency:
			s.Kind = Return
		}
		files, err := t.filesOf(s)
		if err != nil {
			return nil, err
		}
		if err := r.spec(files, s); err != nil {
			return nil, err
		}
	}
	for _, f := range r.led {
		t.also(f) // only now: where one name leads is no place to look for the next
	}
	slices.SortStableFunc(r.Skipped, func(a, b Skipped) int { return cmp.Compare(b.N, a.N) })
	return &r.Resolved, nil
}

type resolver struct {
	Resolved
	target *Target
	seen   map[site]int    // index into Requests
	led    []*symbols.File // to which names led
}

func (r *resolver) spec(files []*symbols.File, s Spec) error {
	found, err := lookup(files, s)
	switch {
	case err != nil:
		return err
	case len(found) > 0:
	case symbols.IsGlob(s.Function):
		return r.glob(files, s, true)
	default:
		behind, note := r.target.behindStubs(files)
		if found, err = lookup(behind, s); err != nil || len(found) == 0 {
			return notFound(r.target, files, s)
		}
		r.tell(note)
	}
	for _, q := range withoutImports(found) {
		led := []Request{q}
		if imported(q) {
			var notes []string
			if led, notes, err = r.target.lead(q); err != nil {
				return err
			}
			for _, note := range notes {
				r.tell(note)
			}
		}
		for _, q := range led {
			if !slices.Contains(files, q.File) {
				r.led = append(r.led, q.File)
			}
			r.add(q)
		}
	}
	if found[0].Function.OnlyOld(s.Function) { // or else it would not come first
		r.Old = append(r.Old, symbols.Printable(s.Function))
	}
	return nil
}

// tell keeps a note once.
func (r *resolver) tell(note string) {
	if !slices.Contains(r.Led, note) {
		r.Led = append(r.Led, note)
	}
}

// add asks for a function once, with the kind that says more.
func (r *resolver) add(q Request) {
	at := siteOf(q.File, q.Function)
	if i, again := r.seen[at]; again {
		r.Requests[i].Kind = max(r.Requests[i].Kind, q.Kind)
		return
	}
	r.seen[at] = len(r.Requests)
	r.Requests = append(r.Requests, q)
}

// olderVersion is why a pattern without @ leaves a function out.
const olderVersion = "an older version of a name, which only programs linked long ago call"

// glob asks for what a pattern matches; where that is nothing, once more behind stubs.
func (r *resolver) glob(files []*symbols.File, s Spec, first bool) error {
	var found, loader []Request
	old := 0
	for _, f := range files {
		fns, olds := matching(f, s)
		old += olds
		for _, fn := range fns {
			if q := (Request{Kind: s.Kind, File: f, Function: fn}); isLoader(f) && s.Kind != USDT {
				loader = append(loader, q)
			} else {
				found = append(found, q)
			}
		}
	}
	if !slices.ContainsFunc(found, hasCode) {
		found = append(found, loader...)
	}
	if len(found)+old == 0 {
		if !first { // stubs can need each other
			return notFound(r.target, files, s)
		}
		behind, note := r.target.behindStubs(files)
		if len(behind) == 0 {
			return notFound(r.target, files, s)
		}
		r.tell(note)
		r.led = append(r.led, behind...)
		return r.glob(behind, s, false)
	}
	found, imports := split(found)
	this := Resolved{Matched: len(found) + len(imports) + old}
	if old > 0 {
		this.skip(old, olderVersion)
	}
	for _, q := range append(found, imports...) {
		if finding := Check(q, Hazards{}); finding.Verdict == Refuses {
			this.skip(1, finding.Reason, q.Function.Demangled())
			continue
		}
		r.add(q)
	}
	if this.LeftOut() == this.Matched {
		return fmt.Errorf("none of the %d functions that match %s can be probed: %s",
			this.Matched, symbols.Printable(s.Function), this.Skipped[0].Reason)
	}
	r.Matched += this.Matched
	for _, s := range this.Skipped {
		r.skip(s.N, s.Reason, s.Names...)
	}
	return nil
}

// matching finds what a pattern means, and how many functions have it only as the
// name of an old version.
func matching(f *symbols.File, s Spec) (fns []*symbols.Function, old int) {
	if s.Kind == USDT {
		return f.MarkersLike(s.Function), 0
	}
	fns, old = f.Glob(s.Function)
	return withoutMarkers(fns), old
}

// isLoader tells the dynamic loader, whose own malloc and the like are left out
// where a library replaces them.
func isLoader(f *symbols.File) bool { return strings.HasPrefix(filepath.Base(f.Path), "ld-linux") }

// lookup finds what a spec means that is no pattern, in every file that has it.
func lookup(files []*symbols.File, s Spec) ([]Request, error) {
	if _, ok := addressIn(s.Function); ok && len(files) > 1 && s.Kind != USDT {
		return nil, fmt.Errorf("%s could be an address in each of %d files: name one, as in libc:%[1]s", s.Function, len(files))
	}
	var found, loader []Request
	var inLoader error
	for _, f := range files {
		fns, err := exactly(f, s)
		switch {
		case err != nil && isLoader(f):
			inLoader = err
		case err != nil:
			return nil, err
		}
		for _, fn := range fns {
			if q := (Request{Kind: s.Kind, File: f, Function: fn}); isLoader(f) && s.Kind != USDT {
				loader = append(loader, q)
			} else {
				found = append(found, q)
			}
		}
	}
	if !slices.ContainsFunc(found, hasCode) && len(loader) > 0 || len(found) == 0 {
		return loader, inLoader
	}
	return found, nil
}

// offsetIn reads name+0x10 or name+16.
func offsetIn(text string) (name string, into uint64, ok bool) {
	at := strings.LastIndexByte(text, '+')
	if at <= 0 || !startsWithDigit(text[at+1:]) {
		return "", 0, false
	}
	into, err := strconv.ParseUint(text[at+1:], 0, 64)
	return text[:at], into, err == nil
}

// addressIn reads 0x9e260.
func addressIn(text string) (symbols.Addr, bool) {
	if !strings.HasPrefix(text, "0x") {
		return 0, false
	}
	addr, err := strconv.ParseUint(text, 0, 64)
	return symbols.Addr(addr), err == nil
}

func startsWithDigit(s string) bool { return s != "" && s[0] >= '0' && s[0] <= '9' }

func notFound(t *Target, files []*symbols.File, s Spec) error {
	if s.Kind == USDT {
		return noMarker(t, files, s.Function)
	}
	text := s.Function
	shown := symbols.Printable(text)
	what := "there is no function " + shown
	if symbols.IsGlob(text) {
		what = "no function matches " + shown
		text = strings.Trim(text, "*?")
	} else if name, _, ok := offsetIn(text); ok {
		what, text = "there is no function "+symbols.Printable(name), name
	}
	functions := 0
	var near []string
	for _, f := range files {
		functions += len(f.Functions) - len(f.Markers())
		near = append(near, functionsNear(f, text)...)
	}
	what += " in " + t.Label
	if marker := markerCalled(files, s.Function); marker != "" {
		return &NotFound{what + ": " + marker, files}
	}
	if note := Runtime(files); note != "" {
		return &NotFound{what + ": " + note, files}
	}
	if functions == 0 {
		return &NotFound{fmt.Sprintf("%s has no function symbols: it is stripped; %s", t.Label, whatHelps), files}
	}
	var notes []string
	if near := nearestNames(near); near != "" {
		notes = append(notes, near)
	}
	if who := stripped(files); who != "" {
		notes = append(notes, who+" is stripped to the functions it exports, for others "+whatHelps)
	}
	if t.ofProcesses() && len(near) == 0 && s.Target == "" && len(files) == len(t.all) {
		notes = append(notes, "a library that is loaded later is named by its path, without -p")
	}
	if len(notes) > 0 {
		what += ": " + strings.Join(notes, "; ")
	}
	return &NotFound{what, files}
}

// whatHelps is what gives a stripped file its names.
const whatHelps = "install its debug symbols, or name a build that has them with --symbols"

// stripped is the first of the files that has lost functions: of several, libraries
// do not count, which nearly all have.
func stripped(files []*symbols.File) string {
	for _, f := range files {
		switch {
		case !f.Stripped, f.Library && len(files) > 1:
		case len(files) == 1:
			return "it"
		default:
			return symbols.Printable(filepath.Base(f.Path))
		}
	}
	return ""
}
