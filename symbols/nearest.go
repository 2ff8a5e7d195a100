package symbols

import (
	"cmp"
	"slices"
	"strings"
)

// Nearest is up to n names of functions that someone who typed name may have
// meant, the nearest first: few letters apart from it, or containing it.
func (f *File) Nearest(name string, n int) []string {
	near := newNearness(name)
	for _, b := range f.blocks() {
		lower := lowerASCII(b.text)
		for _, e := range b.entries {
			near.add(b.name(e), lower[e.from:e.to])
		}
	}
	return near.best(n)
}

// Nearest is File.Nearest among any names.
func Nearest(name string, among []string, n int) []string {
	near := newNearness(name)
	for _, other := range among {
		near.add(other, lowerASCII(other))
	}
	return near.best(n)
}

// nearness collects names that are near to one.
type nearness struct {
	want  string // in lower case
	far   int    // edits that are still near
	d     distance
	found []near
	seen  map[string]bool
}

type near struct {
	name string
	far  int
}

func newNearness(name string) *nearness {
	const longest = 128 // bytes that are compared
	want := lowerASCII(strings.TrimSpace(name))
	want = want[:min(len(want), longest)]
	return &nearness{want: want, far: min(len(want)/3, 8), seen: map[string]bool{}}
}

func (n *nearness) add(name, lower string) {
	if n.want == "" {
		return
	}
	score := -1
	for _, part := range []string{lower, leaf(lower)} {
		if edits := n.d.between(n.want, part, n.far); edits <= n.far && (score < 0 || 4*edits < score) {
			score = 4 * edits
		}
	}
	if score < 0 && len(n.want) > 2 && strings.Contains(lower, n.want) {
		score = 5 + min(len(name)-len(n.want), 1000)/4
	}
	if score >= 0 && !n.seen[name] {
		n.seen[name] = true
		n.found = append(n.found, near{name, score})
	}
}

func (n *nearness) best(most int) (names []string) {
	slices.SortFunc(n.found, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.far, b.far), cmp.Compare(len(a.name), len(b.name)), strings.Compare(a.name, b.name))
	})
	for _, f := range n.found[:max(0, min(most, len(n.found)))] {
		names = append(names, f.name)
	}
	return names
}

// distance computes edit distances, with one row that is used again.
type distance struct{ row []int }

// between is the number of bytes to insert, take away, change or swap with the
// next to make b of a; or more than far, if it is more.
func (d *distance) between(a, b string, far int) int {
	if len(a)-len(b) > far || len(b)-len(a) > far {
		return far + 1
	}
	n := len(b) + 1
	if cap(d.row) < 3*n {
		d.row = make([]int, 3*n)
	}
	above2, above, row := d.row[:n], d.row[n:2*n], d.row[2*n:3*n]
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		least := i
		for j := 1; j < n; j++ {
			change := above[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, above[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], above2[j-2]+1)
			}
			least = min(least, row[j])
		}
		if least > far {
			return far + 1
		}
		above2, above, row = above, row, above2
	}
	return above[len(b)]
}
