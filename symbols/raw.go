package symbols

import (
	"cmp"
	"slices"
	"strings"
)

// SearchRaw finds functions by their names as they stand in the symbol table, with
// name@VERSION where the query has an @. Every word of the query must be in the name,
// and the case of letters counts only if the query has an upper-case one. It returns
// the best limit of them, the exact name first, then what begins with the query, then
// the shorter, and the number of all functions that match.
func SearchRaw(files []*File, query string, limit int) (matches []Match, total int) {
	return searchRaw(files, query, limit, func(f *File) []Function { return f.Functions })
}

// SearchMarkers is SearchRaw among usdt probes: all of them if the query is empty.
func SearchMarkers(files []*File, query string, limit int) (matches []Match, total int) {
	return searchRaw(files, query, limit, (*File).Markers)
}

// rawHit is a function that a search of raw names found.
type rawHit struct {
	file    *File
	fn      *Function
	symbol  Symbol // the one of its names that matches best
	quality uint8
}

func (a rawHit) compare(b rawHit) int {
	return cmp.Or(
		cmp.Compare(a.quality, b.quality),
		cmp.Compare(len(a.symbol.Name), len(b.symbol.Name)),
		strings.Compare(a.symbol.Name, b.symbol.Name),
	)
}

func searchRaw(files []*File, query string, limit int, among func(*File) []Function) (matches []Match, total int) {
	q := newRawQuery(query)
	var found []rawHit
	worst := rawHit{quality: nowhere} // of the best limit at the last cut
	best := func() {
		slices.SortStableFunc(found, rawHit.compare)
		if limit = max(limit, 0); len(found) > limit {
			found = found[:limit]
			if limit > 0 {
				worst = found[limit-1]
			}
		}
	}
	for _, f := range files {
		all := among(f)
		for i := range all {
			h := q.look(f, &all[i])
			if h.quality == nowhere {
				continue
			}
			total++
			if h.compare(worst) >= 0 {
				continue
			}
			if found = append(found, h); len(found) >= 2*limit+1024 {
				best()
			}
		}
	}
	best()
	for _, h := range found {
		matches = append(matches, q.matched(h))
	}
	return matches, total
}

// rawQuery is what a person typed of a raw name, made ready.
type rawQuery struct {
	whole    string
	words    []string
	index    func(name, word string) int
	versions bool
}

func newRawQuery(text string) rawQuery {
	q := rawQuery{words: strings.Fields(text), index: strings.Index, versions: strings.Contains(text, "@")}
	q.whole = strings.Join(q.words, " ")
	if lowerASCII(text) == text {
		q.index = indexFold
	}
	return q
}

// look finds the best of the names of a function.
func (q *rawQuery) look(f *File, fn *Function) rawHit {
	h := rawHit{file: f, fn: fn, quality: nowhere}
	for _, s := range fn.symbols() {
		if quality := q.match(s); quality < h.quality {
			h.symbol, h.quality = s, quality
		}
	}
	if h.quality < nowhere && fn.Place >= NoCode && fn.Place != Marker {
		h.quality += elsewhere
	}
	return h
}

// matched is what was found, with the place of the first word where that stands in the
// name as people read it, too.
func (q *rawQuery) matched(h rawHit) Match {
	m := Match{File: h.file, Function: h.fn, Name: h.symbol.Demangled()}
	if len(q.words) > 0 {
		if at := q.index(m.Name, q.words[0]); at >= 0 {
			m.Spans = [][2]int{{at, at + len(q.words[0])}}
		}
	}
	return m
}

func (q *rawQuery) match(s Symbol) uint8 {
	name := s.Name
	if q.versions {
		name = s.Raw()
	}
	for _, w := range q.words {
		if q.index(name, w) < 0 {
			return nowhere
		}
	}
	switch {
	case name == q.whole:
		return exact
	case q.whole != "" && q.index(name[:min(len(name), len(q.whole))], q.whole) == 0:
		return prefix
	}
	return inside
}
