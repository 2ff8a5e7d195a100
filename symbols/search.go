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
	name    string
	quality uint8
	hit
}

// hit is a name that matches: an entry of a block. It says where the name is, so
// that a search which says more reads only the text.
type hit struct {
	block, slot int32
	from, to    uint32 // in the block's text
	first       byte   // letter, in lower case
	several     bool   // the function has other names, too
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
		cmp.Compare(a.block, b.block),
		cmp.Compare(a.slot, b.slot),
	)
}

// Search is the first search of a new Searcher.
func Search(files []*File, query string, limit int) (matches []Match, total int) {
	return NewSearcher(files).Search(query, limit)
}

// Searcher finds functions as a person types. It is for one goroutine at a time.
type Searcher struct {
	files   []*File
	blocks  []searched // of all files; made at the first search
	hits    []hit      // of the last query, if known: where one that says more has to look
	known   bool       // they are not of a query of letters alone, which has too many
	slots   []int32    // room for those of a block
	touched byte
	queries [2]query    // the last and the one before
	results [2][]Match  // likewise
	spans   [2][][2]int // likewise
	turn    int         // which of two is the last
	top     top
	best    candidate // of the names of the function looked at
	total   int       // functions that match
}

type searched struct {
	*block
	file    *File
	code    int32 // functions of the file that have code; they come first
	several bool  // some functions have several names
}

func newSearched(f *File, b *block, code int) searched {
	several := slices.ContainsFunc(b.entries, func(e entry) bool { return e.alias >= 0 })
	return searched{b, f, int32(code), several}
}

// NewSearcher is a search in these files.
func NewSearcher(files []*File) *Searcher { return &Searcher{files: files} }

// Search finds functions as a person types: every word of the query, which are
// separated by spaces, must be in the name. It returns the best limit of them
// and the number of all functions that match. First comes the exact name, then
// what begins with the query, then what has it at the start of a word, then the
// rest; of equals the shorter. The case of letters counts only if the query has
// an upper-case one. A function is found by any of its names and returned once.
//
// The first search of a file demangles its names; later ones only look through
// them, and one that says more than the last, as each letter typed does, looks only
// at what that found. The matches are good until the search after the next.
func (s *Searcher) Search(text string, limit int) (matches []Match, total int) {
	last := &s.queries[s.turn]
	s.turn = 1 - s.turn
	q := &s.queries[s.turn]
	q.set(text)
	s.total, s.best.quality = 0, nowhere
	s.top.begin(max(limit, 0))
	if s.known && q.narrows(last) {
		s.searchHits(q)
	} else {
		s.searchAll(q)
	}
	s.takeBest()
	ms, spans := s.results[s.turn][:0], s.spans[s.turn][:0]
	for _, c := range s.top.sorted() {
		b := s.blocks[c.block]
		first := len(spans)
		spans = q.appendSpans(spans, c.name)
		ms = append(ms, Match{
			File: b.file, Function: &b.file.Functions[b.entries[c.slot].fn],
			Name: c.name, Spans: spans[first:len(spans):len(spans)],
		})
	}
	s.results[s.turn], s.spans[s.turn] = ms, spans
	return ms, s.total
}

// searchAll looks at all names.
func (s *Searcher) searchAll(q *query) {
	if s.blocks == nil {
		s.blocks = []searched{}
		for _, f := range s.files {
			bs, code := f.marked(), len(f.code())
			for i := range bs {
				s.blocks = append(s.blocks, newSearched(f, &bs[i], code))
			}
		}
	}
	s.hits, s.known = s.hits[:0], !q.certain
	for i := range s.blocks {
		b := &s.blocks[i]
		s.slots = b.marks.all(s.slots, &q.mark)
		if q.certain && !b.several {
			s.count(q, i)
			continue
		}
		for _, slot := range s.slots {
			s.touch(b.text, b.entries[slot].from, b.entries[slot].to)
		}
		for _, slot := range s.slots {
			s.look(q, b.hit(i, slot))
		}
	}
}

// touch reads the ends of a name, for nothing but that they are there when they are needed: of
// names that are touched one after the other, the CPU waits for many at a time.
func (s *Searcher) touch(text string, from, to uint32) {
	if from < to {
		s.touched += text[from] + text[to-1]
	}
}

// hit is the entry at a slot of the block with this number.
func (b *searched) hit(number int, slot int32) hit {
	e, next := &b.entries[slot], int(slot)+1
	several := b.several && (e.alias >= 0 || next < len(b.entries) && b.entries[next].alias >= 0)
	return hit{int32(number), slot, e.from, e.to, b.marks.first[slot], several}
}

// count counts the names at s.slots of a block, all of which match, and looks at those that
// may be among the best.
func (s *Searcher) count(q *query, number int) {
	b := &s.blocks[number]
	for _, slot := range s.slots {
		e := &b.entries[slot]
		if b.marks.first[slot] == q.first || s.top.wants(q.least, int(e.to-e.from)) {
			s.look(q, b.hit(number, slot))
		} else {
			s.total++
		}
	}
}

// searchHits looks at the names that the last query found. What it finds goes to
// the beginning of the same memory. Where that are few, reading a name is cheaper
// than looking for its mark first.
func (s *Searcher) searchHits(q *query) {
	hits, names := s.hits, 0
	for i := range s.blocks {
		names += len(s.blocks[i].entries)
	}
	many := len(hits) > names/4
	s.hits = s.hits[:0]
	for i := range hits {
		const ahead = 64
		if i%ahead == 0 {
			for _, h := range hits[i:min(i+ahead, len(hits))] {
				s.touch(s.blocks[h.block].text, h.from, h.to)
			}
		}
		h := &hits[i]
		if !many || s.blocks[h.block].marks.have(int(h.slot), &q.mark) {
			s.look(q, *h)
		}
	}
}

// look reads one name. Those of one function stand side by side. The first of the
// best of them counts, for which all have to be known well.
func (s *Searcher) look(q *query, h hit) {
	name := s.blocks[h.block].text[h.from:h.to]
	quality := nowhere
	if h.first == q.first {
		quality = q.begins(name)
	}
	if quality == nowhere {
		quality = q.match(name, h.several || s.top.wants(q.least, len(name)))
	}
	if quality == nowhere {
		return
	}
	if !h.several || len(s.hits) == 0 || !s.sameFunction(s.hits[len(s.hits)-1], h) {
		s.total++
		s.takeBest()
	}
	if s.known || h.several {
		s.hits = append(s.hits, h)
	}
	if quality < s.best.quality && (h.several || s.top.wants(quality, len(name))) {
		s.best = candidate{name, quality, h}
	}
}

func (s *Searcher) sameFunction(a, b hit) bool {
	es := s.blocks[b.block].entries
	return a.block == b.block && es[a.slot].fn == es[b.slot].fn
}

// takeBest is called when all names of a function were seen.
func (s *Searcher) takeBest() {
	if s.best.quality < nowhere {
		if b := &s.blocks[s.best.block]; b.entries[s.best.slot].fn >= b.code {
			s.best.quality += elsewhere
		}
		s.top.add(s.best)
	}
	s.best.quality = nowhere
}

// top keeps the best limit candidates in at most about twice the room.
type top struct {
	limit int
	found []candidate
	full  bool      // limit are found, and what is not before worst is left out
	worst candidate // of the best limit at the last cut
}

func (t *top) begin(limit int) { *t = top{limit: limit, found: t.found[:0]} }

// wants says whether a match of this quality and length in bytes may be among the
// best.
func (t *top) wants(quality uint8, length int) bool {
	return t.limit > 0 && (!t.full || quality < t.worst.quality || quality == t.worst.quality && length <= len(t.worst.name))
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
