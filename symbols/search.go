package symbols

import (
	"cmp"
	"slices"
	"strings"
)

// Match is one function that a search found.
type Match struct {
	File     *File
	Function *Function
	Name     string   // the name that matched, as people read it: the function's own or an alias
	Spans    [][2]int // the parts of Name that matched: [from, to) in bytes, in order, apart from each other
}

// How well a name matches, the best first.
const (
	exact uint8 = iota
	prefix
	wordStart
	inside
	elsewhere // and more: names without code here, behind all others
	nowhere   = 2 * elsewhere
)

// candidate is a match on its way, small because there can be a million.
type candidate struct {
	name       string
	quality    uint8
	file, slot int32 // index into files, and into the file's entries
}

func (a candidate) compare(b candidate) int {
	if a.quality != b.quality {
		return cmp.Compare(a.quality, b.quality)
	}
	if len(a.name) != len(b.name) {
		return cmp.Compare(len(a.name), len(b.name))
	}
	return cmp.Or(
		strings.Compare(a.name, b.name),
		cmp.Compare(a.file, b.file),
		cmp.Compare(a.slot, b.slot),
	)
}

// Search finds functions as a person types: every word of the query, which are
// separated by spaces, must be in the name. It returns the best limit of them
// and the number of all functions that match. First comes the exact name, then
// what begins with the query, then what has it at the start of a word, then the
// rest; of equals the shorter. The case of letters counts only if the query has
// an upper-case one. A function is found by any of its names and returned once.
//
// The first search of a file demangles its names, in the order of microseconds
// a name; later ones only look through them.
func Search(files []*File, query string, limit int) (matches []Match, total int) {
	q := newQuery(query)
	limit = max(limit, 0)
	best := top{limit: limit}
	for i, f := range files {
		es := f.entries()
		for slot := 0; slot < len(es); {
			c := candidate{quality: nowhere, file: int32(i)}
			// The names of one function stand side by side: its best match counts.
			for fn := es[slot].fn; slot < len(es) && es[slot].fn == fn; slot++ {
				if quality := q.match(&es[slot]); quality < c.quality {
					c.quality, c.name, c.slot = quality, es[slot].name, int32(slot)
				}
			}
			if c.quality < nowhere {
				if f.Functions[es[slot-1].fn].Place >= NoCode {
					c.quality += elsewhere
				}
				total++
				best.add(c)
			}
		}
	}
	for _, c := range best.sorted() {
		f := files[c.file]
		e := &f.entries()[c.slot]
		matches = append(matches, Match{File: f, Function: &f.Functions[e.fn], Name: e.name, Spans: q.spans(e)})
	}
	return matches, total
}

// top keeps the best limit candidates in at most about twice the room.
type top struct {
	limit int
	found []candidate
	full  bool      // limit are found, and what is not before worst is left out
	worst candidate // of the best limit at the last cut
}

func (t *top) add(c candidate) {
	if t.limit == 0 || t.full && c.compare(t.worst) >= 0 {
		return
	}
	t.found = append(t.found, c)
	if len(t.found) >= 2*t.limit+256 {
		t.sorted()
	}
}

func (t *top) sorted() []candidate {
	slices.SortFunc(t.found, candidate.compare)
	if len(t.found) > t.limit {
		t.found = t.found[:t.limit]
	}
	if len(t.found) == t.limit && t.limit > 0 {
		t.full, t.worst = true, t.found[t.limit-1]
	}
	return t.found
}

// query is what a person typed, made ready.
type query struct {
	whole     string
	words     []string
	matchCase bool
}

func newQuery(s string) query {
	const longest = 256 // bytes; nobody types more, and a paste is still bounded
	s = s[:min(len(s), longest)]
	q := query{words: strings.Fields(s), matchCase: lowerASCII(s) != s}
	q.whole = strings.Join(q.words, " ")
	return q
}

// text is the form of a name in which q looks.
func (q *query) text(e *entry) string {
	if q.matchCase {
		return e.name
	}
	return e.lower
}

func (q *query) match(e *entry) uint8 {
	text := q.text(e)
	quality := prefix
	for _, w := range q.words {
		_, found := find(e, text, w)
		if found == nowhere {
			return nowhere
		}
		quality = max(quality, found)
	}
	// The name may go on with the parameters: whoever types foo means foo(int).
	if rest, ok := strings.CutPrefix(text, q.whole); ok && q.whole != "" {
		quality = prefix
		if rest == "" || rest[0] == '(' {
			quality = exact
		}
	}
	return quality
}

// find is the best place of a word in a name.
func find(e *entry, text, word string) (at int, quality uint8) {
	first := strings.Index(text, word)
	switch first {
	case -1:
		return -1, nowhere
	case 0:
		return 0, prefix
	}
	// A bound for names such as aaaa…: the eleventh place is not read.
	for at, tries := first, 0; tries < 10; tries++ {
		if startsWord(e.name, at) {
			return at, wordStart
		}
		next := strings.Index(text[at+1:], word)
		if next < 0 {
			break
		}
		at += 1 + next
	}
	return first, inside
}

// startsWord says whether a word of the name starts at i > 0, as in ::word,
// _word and camelWord. A sign is a word of its own.
func startsWord(name string, i int) bool {
	before, here := name[i-1], name[i]
	switch {
	case !letter(before) && !digit(before), !letter(here) && !digit(here):
		return true
	case 'A' <= here && here <= 'Z':
		return 'a' <= before && before <= 'z' || digit(before)
	}
	return false
}

// letter counts all of UTF-8 beyond ASCII as letters.
func letter(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' || b >= 0x80 }
func digit(b byte) bool  { return '0' <= b && b <= '9' }

// spans are the places of the words, those that touch joined.
func (q *query) spans(e *entry) [][2]int {
	text := q.text(e)
	if q.whole != "" && strings.HasPrefix(text, q.whole) {
		return [][2]int{{0, len(q.whole)}}
	}
	var spans [][2]int
	for _, w := range q.words {
		at, _ := find(e, text, w)
		spans = append(spans, [2]int{at, at + len(w)})
	}
	slices.SortFunc(spans, func(a, b [2]int) int { return cmp.Compare(a[0], b[0]) })
	joined := spans[:0]
	for _, s := range spans {
		if n := len(joined); n > 0 && s[0] <= joined[n-1][1] {
			joined[n-1][1] = max(joined[n-1][1], s[1])
			continue
		}
		joined = append(joined, s)
	}
	return joined
}
