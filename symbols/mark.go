package symbols

import "slices"

// mark says which letters a text has, and which pairs of letters stand side by
// side in it; the case of letters does not count. A name whose mark lacks what the
// mark of a word has does not have the word: most names need not be read. The first
// number has a bit for each letter, the next four have one for the hash of each pair:
// that of a pair can be there for another one. The last has the letters of upper case.
type mark [6]uint64

const upperCase = len(mark{}) - 1

// add adds the letters of a text.
func (m *mark) add(text string) {
	if text == "" {
		return
	}
	before := letterCodes[text[0]]
	m[0] |= 1 << before
	m[upperCase] |= upperBits[text[0]]
	for i := 1; i < len(text); i++ {
		code := letterCodes[text[i]]
		m[upperCase] |= upperBits[text[i]]
		m[0] |= 1 << (code & 63)
		pair := (before*37 ^ code) * 151
		m[1+pair>>6] |= 1 << (pair & 63)
		before = code
	}
}

// letterCodes number the bytes from 0 to 63: each letter, in both cases, each digit
// and most signs have a number of their own. What no word has is 0, and so is all of
// UTF-8 beyond ASCII.
var letterCodes = func() (codes [256]uint8) {
	for c := byte(' '); c < 0x7f; c++ {
		codes[c] = c - ' '
		if c >= 0x60 {
			codes[c] = c - 0x40
		}
	}
	return codes
}()

var upperBits = func() (bits [256]uint64) {
	for c := 'A'; c <= 'Z'; c++ {
		bits[c] = 1 << (c - 'A')
	}
	return bits
}()

// certain says that a mark which has that of the word says it all.
func certain(word string, matchCase bool) bool {
	return len(word) == 1 && word[0] < 0x80 && (digit(word[0]) || letter(word[0]) && (!matchCase || word[0] < 'a'))
}

// marks are the marks of a block's names, and the letter with which each begins, in
// lower case. Each number of all marks lies apart: a search reads those that it needs.
type marks struct {
	numbers [len(mark{})][]uint64
	first   []byte
}

func newMarks(b *block) marks {
	n := len(b.entries)
	var ms marks
	for i := range ms.numbers {
		ms.numbers[i] = make([]uint64, n)
	}
	ms.first = make([]byte, n)
	for slot, e := range b.entries {
		var m mark
		name := b.name(e)
		m.add(name)
		for i := range m {
			ms.numbers[i][slot] = m[i]
		}
		if name != "" {
			ms.first[slot] = lowerByte(name[0])
		}
	}
	return ms
}

// have says that the name of an entry may have the words with this mark.
func (ms *marks) have(slot int, of *mark) bool {
	for i, need := range of {
		if need != 0 && ms.numbers[i][slot]&need != need {
			return false
		}
	}
	return true
}

// all is the entries that have, in the room of slots.
func (ms *marks) all(slots []int32, of *mark) []int32 {
	n := len(ms.first)
	slots = slices.Grow(slots[:0], n)[:n]
	for slot := range slots {
		slots[slot] = int32(slot)
	}
	for i, need := range of {
		if need == 0 {
			continue
		}
		numbers, kept := ms.numbers[i], 0
		for _, slot := range slots {
			slots[kept] = slot
			if numbers[slot]&need == need {
				kept++
			}
		}
		slots = slots[:kept]
	}
	return slots
}

// marked is blocks with the marks that a search needs.
func (f *File) marked() []block {
	bs := f.blocks()
	f.names.markOnce.Do(func() {
		inParallel(len(bs), func() func(i int) {
			return func(i int) { bs[i].marks = newMarks(&bs[i]) }
		})
	})
	return bs
}
