package symbols

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
)

// query is what a person typed, made ready.
type query struct {
	whole     string
	words     []string
	matchCase bool
	mark      mark  // of all words
	certain   bool  // a name that has the mark has the words
	first     byte  // the first letter, in lower case
	least     uint8 // the best quality without beginning with the whole
}

func (q *query) set(s string) {
	const longest = 256 // bytes; nobody types more, and a paste is still bounded
	s = s[:min(len(s), longest)]
	*q = query{words: q.words[:0], certain: true, least: prefix}
	q.matchCase = strings.ContainsFunc(s, func(r rune) bool { return 'A' <= r && r <= 'Z' })
	for w := range strings.FieldsSeq(s) {
		q.words = append(q.words, w)
		q.mark.add(w)
		q.certain = q.certain && certain(w, q.matchCase)
	}
	if q.whole = oneSpaced(s, q.words); q.whole != "" {
		q.first = lowerByte(q.whole[0])
	}
	if len(q.words) == 1 {
		q.least = wordStart
	}
}

// oneSpaced is the words of s with one space between them.
func oneSpaced(s string, words []string) string {
	size := len(words) - 1
	for _, w := range words {
		size += len(w)
	}
	if s = strings.TrimSpace(s); len(s) == size && strings.Count(s, " ") == len(words)-1 {
		return s // nearly always: no need to make another string
	}
	return strings.Join(words, " ")
}

// narrows says that what q matches is among what last matched.
func (q *query) narrows(last *query) bool {
	if last.matchCase && !q.matchCase {
		return false
	}
	for _, old := range last.words {
		if !slices.ContainsFunc(q.words, func(w string) bool { return last.index(w, old) >= 0 }) {
			return false
		}
	}
	return true
}

// index is where a word of q begins in a text, or -1.
func (q *query) index(text, word string) int {
	if q.matchCase {
		return strings.Index(text, word)
	}
	return indexFold(text, word)
}

// begins says how well a name matches that begins with the whole query; one that
// does not is nowhere.
func (q *query) begins(name string) uint8 {
	switch {
	case q.whole == "", len(name) < len(q.whole):
		return nowhere
	case q.matchCase && name[:len(q.whole)] != q.whole, !q.matchCase && !prefixFold(name, q.whole):
		return nowhere
	// The name may go on with the parameters: whoever types foo means foo(int).
	case len(name) == len(q.whole), name[len(q.whole)] == '(':
		return exact
	}
	return prefix
}

// match says how well a name matches that does not begin with the whole query. If
// it need not be known well, it is inside or nowhere.
func (q *query) match(name string, well bool) uint8 {
	if !well && q.certain {
		return inside
	}
	quality := prefix
	for _, w := range q.words {
		first := q.index(name, w)
		switch {
		case first < 0:
			return nowhere
		case first > 0 && well:
			_, found := q.place(name, w, first)
			quality = max(quality, found)
		}
	}
	if !well {
		return inside
	}
	return quality
}

// place is the best place of a word in a name in which it first begins at first.
func (q *query) place(name, word string, first int) (at int, quality uint8) {
	if first == 0 {
		return 0, prefix
	}
	// A bound for names such as aaaa…: the eleventh place is not read.
	for at, tries := first, 0; tries < 10; tries++ {
		if startsWord(name, at) {
			return at, wordStart
		}
		next := q.index(name[at+1:], word)
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

// appendSpans appends the places of the words in a name that matches, those that
// touch joined.
func (q *query) appendSpans(all [][2]int, name string) [][2]int {
	if q.begins(name) < nowhere {
		return append(all, [2]int{0, len(q.whole)})
	}
	from := len(all)
	for _, w := range q.words {
		at, _ := q.place(name, w, q.index(name, w))
		all = append(all, [2]int{at, at + len(w)})
	}
	spans := all[from:]
	slices.SortFunc(spans, func(a, b [2]int) int { return cmp.Compare(a[0], b[0]) })
	joined := spans[:0]
	for _, s := range spans {
		if n := len(joined); n > 0 && s[0] <= joined[n-1][1] {
			joined[n-1][1] = max(joined[n-1][1], s[1])
			continue
		}
		joined = append(joined, s)
	}
	return all[:from+len(joined)]
}

// lowered is every byte with ASCII letters in lower case.
var lowered = func() (all [256]byte) {
	for i := range all {
		all[i] = lowerByte(byte(i))
	}
	return all
}()

// indexFold is where a word in lower case begins in a text, whatever the case of
// ASCII letters there, or -1.
func indexFold(text, word string) int {
	last, i := len(text)-len(word), 0
	if len(word) > 1 {
		// Seven places at a time: those where the first two letters may stand.
		first, second := eight(word[0]), eight(word[1])
		for ; i <= last && i+8 <= len(text); i += 7 {
			x := load8(text[i:i+8]) | eight(0x20)
			places := zeros(x^first|(x>>8)^second) &^ (0x80 << 56)
			for ; places != 0; places &= places - 1 {
				at := i + bits.TrailingZeros64(places)/8
				if prefixFold(text[at:], word) {
					return at
				}
			}
		}
	}
	for ; i <= last; i++ {
		if prefixFold(text[i:], word) {
			return i
		}
	}
	return -1
}

// eight is a letter eight times, with the bit that makes it lower case.
func eight(c byte) uint64 { return uint64(c|0x20) * 0x0101010101010101 }

// load8 is the first eight bytes of a text.
func load8(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// zeros has the highest bit of each byte that is 0 in x, and perhaps of some behind
// one of these.
func zeros(x uint64) uint64 { return (x - 0x0101010101010101) &^ x & 0x8080808080808080 }

// prefixFold is strings.HasPrefix in the same manner.
func prefixFold(text, word string) bool {
	if len(text) < len(word) {
		return false
	}
	for i := range len(word) {
		if lowered[text[i]] != word[i] {
			return false
		}
	}
	return true
}
