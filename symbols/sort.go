package symbols

import (
	"cmp"
	"math/bits"
	"slices"
)

// keyed is a function in a list that is put in order, and eight letters of its
// name: the names of one namespace begin alike, and a comparison that reads both
// from their beginning would read the same again and again.
type keyed struct {
	key uint64
	i   int32 // index into what is put in order
}

// sorted is the order of found: exact names first, then by name. Two halves are
// sorted side by side and then merged.
func sorted(found []ranked) []keyed {
	var exact []keyed
	rest := make([]keyed, 0, len(found))
	for i := range found {
		if found[i].exact {
			exact = append(exact, keyed{i: int32(i)})
		} else {
			rest = append(rest, keyed{i: int32(i)})
		}
	}
	sortFrom(found, exact, 0)
	half := len(rest) / 2
	parts := [][]keyed{rest[:half], rest[half:]}
	inParallel(len(parts), func() func(i int) {
		return func(i int) { sortFrom(found, parts[i], 0) }
	})
	all, a, b := exact, parts[0], parts[1]
	all = slices.Grow(all, len(rest))
	for len(a) > 0 && len(b) > 0 {
		if found[a[0].i].compare(&found[b[0].i]) <= 0 {
			all, a = append(all, a[0]), a[1:]
		} else {
			all, b = append(all, b[0]), b[1:]
		}
	}
	return append(append(all, a...), b...)
}

// sortFrom puts functions in order whose names are the same up to from.
func sortFrom(found []ranked, ks []keyed, from int) {
	for i := range ks {
		ks[i].key = lettersFrom(found[ks[i].i].family, from)
	}
	slices.SortFunc(ks, func(a, b keyed) int { return cmp.Compare(a.key, b.key) })
	for len(ks) > 0 {
		n := 1
		for n < len(ks) && ks[n].key == ks[0].key {
			n++
		}
		same := ks[:n]
		ks = ks[n:]
		switch ended := same[0].key&0xff == 0; {
		case n == 1:
		case n < 8, ended:
			slices.SortFunc(same, func(a, b keyed) int { return found[a.i].compare(&found[b.i]) })
		default:
			sortFrom(found, same, from+8)
		}
	}
}

// lettersFrom is eight bytes of a name as a number that sorts as they do. Behind the
// end there are zeros, which no printable name has.
func lettersFrom(name string, from int) uint64 {
	if len(name) >= from+8 {
		return bits.ReverseBytes64(load8(name[from:]))
	}
	var key uint64
	for i := range 8 {
		key <<= 8
		if from+i < len(name) {
			key |= uint64(name[from+i])
		}
	}
	return key
}
