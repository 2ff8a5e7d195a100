package probes

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"uprobetop/symbols"
)

// ReadProvider reads usdt:python:line as provider and name, where python is no file of
// the target and some usdt probe in it is of that provider: bpftrace reads a target.
func (t *Target) ReadProvider(s Spec) Spec {
	if s.Kind == USDT && s.Target != "" && !t.HasFile(s.Target) && t.hasProvider(s.Target) {
		s.Target, s.Function = "", s.Target+":"+s.Function
	}
	return s
}

func (t *Target) hasProvider(name string) bool {
	return slices.ContainsFunc(t.Files, func(f *symbols.File) bool { return len(f.MarkersLike(name+":*")) > 0 })
}

// noReturn is why a usdt probe has no latency.
const noReturn = "a usdt probe is a point in the code and has no return"

// checkMarker finds what speaks against a request for a usdt probe.
func checkMarker(r Request) Finding {
	if r.Function.Place != symbols.Marker {
		return Finding{Verdict: Refuses, Reason: "it is a function and no usdt probe"}
	}
	if r.Kind != USDT {
		return Finding{Verdict: Refuses, Reason: noReturn, Way: "count its hits"}
	}
	if _, why := r.File.Unmarked(r.Function); len(r.File.Points(r.Function)) == 0 {
		return Finding{Verdict: Refuses, Reason: why}
	}
	for _, at := range r.File.Points(r.Function) {
		if err := r.File.InsideInstructionAt(at.Offset); err != nil {
			return Finding{Verdict: Refuses, Reason: "a note about it is wrong: " + err.Error()}
		}
	}
	return Finding{}
}

// UnmarkedNote says which hits of a usdt probe do not count, because some of its sites
// cannot be probed; it is empty if all can.
func UnmarkedNote(f *symbols.File, fn *symbols.Function) string {
	n, why := f.Unmarked(fn)
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("not counted at %d of its %d sites: %s", n, n+len(f.Points(fn)), why)
}

// MarkerNotes is what there is to know of a usdt probe beside its name.
func MarkerNotes(f *symbols.File, fn *symbols.Function) (notes []string) {
	points := f.Points(fn)
	if len(points) == 0 {
		return nil
	}
	if len(points) > 1 {
		notes = append(notes, fmt.Sprintf("%d sites", len(points)))
	}
	if points[0].Semaphore != 0 {
		notes = append(notes, "semaphore")
	}
	if points[0].Arguments != "" {
		notes = append(notes, "arguments "+points[0].Arguments)
	}
	if note := UnmarkedNote(f, fn); note != "" {
		notes = append(notes, note)
	}
	return notes
}

// noMarker says that no usdt probe is meant by a text, and which could be.
func noMarker(t *Target, files []*symbols.File, text string) error {
	shown, verb := symbols.Printable(text), "is called"
	if symbols.IsGlob(text) {
		verb = "matches"
	}
	var names []string
	for _, f := range files {
		markers := f.Markers()
		for i := range markers {
			provider, name, _ := strings.Cut(markers[i].Demangled(), ":")
			names = append(names, name)
			if strings.Contains(text, ":") {
				names[len(names)-1] = provider + ":" + name
			}
		}
	}
	if len(names) == 0 {
		return fmt.Errorf("%s has no usdt probes", t.Label)
	}
	said := fmt.Sprintf("no usdt probe in %s %s %s", t.Label, verb, shown)
	if near := nearestNames(symbols.Nearest(strings.Trim(text, "*?"), names, 3)); near != "" {
		said += ": " + near
	}
	return errors.New(said)
}

// markerCalled says that usdt probes have a name that was looked for among functions.
func markerCalled(files []*symbols.File, name string) string {
	for _, f := range files {
		if found := f.MarkersNamed(name); len(found) > 0 {
			return fmt.Sprintf("usdt:%s is a usdt probe", symbols.Printable(name))
		}
	}
	return ""
}

// MeansMarker is an error for a spec of a function that reads as provider and name of a
// usdt probe, and nil for others.
func (t *Target) MeansMarker(s Spec) error {
	if s.Kind == USDT || s.Target == "" || t.HasFile(s.Target) {
		return nil
	}
	if marker := markerCalled(t.Files, s.Target+":"+s.Function); marker != "" {
		return fmt.Errorf("there is no file %s: %s", symbols.Printable(s.Target), marker)
	}
	return nil
}

// nearestNames tells the nearest of names, or nothing where there are none.
func nearestNames(names []string) string {
	switch names = names[:min(3, len(names))]; len(names) {
	case 0:
		return ""
	case 1:
		return "the nearest name is " + names[0]
	}
	return "the nearest names are " + strings.Join(names, ", ")
}

// functionsNear is the names nearest to one that are not of usdt probes.
func functionsNear(f *symbols.File, name string) []string {
	markers := f.Markers()
	near := f.Nearest(name, 3+len(markers))
	near = slices.DeleteFunc(near, func(s string) bool {
		return slices.ContainsFunc(f.MarkersNamed(s), func(fn *symbols.Function) bool { return fn.Name == s })
	})
	return near[:min(3, len(near))]
}

// listed is what a pattern chooses of one file, functions before usdt probes; of these alone if the
// spec is of that kind.
func listed(f *symbols.File, s Spec) (found []symbols.Listed) {
	if s.Kind == USDT && symbols.IsGlob(s.Function) && len(f.MarkersNamed(s.Function)) == 0 {
		for _, fn := range f.MarkersLike(s.Function) {
			found = append(found, symbols.Listed{Function: fn, Shown: fn.Demangled()})
		}
		return found
	}
	found = f.List(s.Function)
	marker := func(l symbols.Listed) bool { return l.Place == symbols.Marker }
	if s.Kind != USDT && !slices.ContainsFunc(found, marker) {
		return found
	}
	var markers []symbols.Listed
	for _, l := range found {
		if marker(l) {
			markers = append(markers, l)
		}
	}
	if s.Kind == USDT {
		return markers
	}
	return append(slices.DeleteFunc(found, marker), markers...)
}

// completeMarkers is the names of usdt probes that begin with a text, with their provider once that is in it.
func completeMarkers(f *symbols.File, begin string) (names []string) {
	markers := f.Markers()
	for i := range markers {
		full := markers[i].Name
		_, name, _ := strings.Cut(full, ":")
		for _, s := range []string{name, full} {
			if strings.HasPrefix(s, begin) && symbols.Printable(s) == s && (begin != "" || s == name) {
				names = append(names, s)
			}
		}
	}
	return names
}
