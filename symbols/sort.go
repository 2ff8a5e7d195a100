package symbols

import (
	"cmp"
	"iter"
	"math/bits"
	"slices"
	"strings"
)

// keyed is a function in a list that is put in order, with eight letters of the best of
// its names. The names of one namespace begin alike, and a comparison that reads both from
// their beginning would read the same again and again.
type keyed struct {
	key         uint64
	fn          int32  // index into File.Functions
	block, slot int32  // where its names begin
	from, to    uint32 // the best in the block's text, whatever the version
	several     bool   // more names follow
	versioned   bool   // the version stands behind the name
	exact       bool   // the pattern is one of its names
}

// keyed is the function whose names, es, begin at a slot of the block with this number.
func (f *File) keyed(es []entry, number, slot int, exact bool) keyed {
	e := es[0]
	k := keyed{fn: e.fn, block: int32(number), slot: int32(slot), from: e.from, to: e.to, several: len(es) > 1, exact: exact}
	if fn := &f.Functions[e.fn]; fn.old() {
		k.versioned, k.to = true, k.to-uint32(len("@"+Printable(fn.Version)))
	}
	return k
}

// ordering puts functions in order by their names in blocks.
type ordering struct {
	f  *File
	bs []block
}

func (o *ordering) name(k *keyed) string { return o.bs[k.block].text[k.from:k.to] }

// compare puts the versions of one name in order, and those that read alike.
func (o *ordering) compare(a, b *keyed) int {
	if c := strings.Compare(o.name(a), o.name(b)); c != 0 {
		return c
	}
	x, y := &o.f.Functions[a.fn], &o.f.Functions[b.fn]
	return cmp.Or(
		cmp.Compare(x.age(x.Name), y.age(y.Name)),
		strings.Compare(y.Version, x.Version),
		cmp.Compare(x.Addr, y.Addr),
		cmp.Compare(a.block, b.block),
		cmp.Compare(a.slot, b.slot),
	)
}

// sort puts exact names first, and each part in order.
func (o *ordering) sort(found []keyed) {
	exact := 0
	for i := range found {
		if found[i].exact {
			found[i], found[exact] = found[exact], found[i]
			exact++
		}
	}
	groups := o.split(nil, group{found[:exact], 0})
	groups = o.split(groups, group{found[exact:], 0})
	inParallel(len(groups), func() func(i int) {
		return func(i int) { o.sortGroup(groups[i]) }
	})
}

// group is functions whose names are the same up to from.
type group struct {
	ks   []keyed
	from int
}

// split puts a large group in order by eight letters, on all CPUs, and appends the
// smaller ones of which it then consists.
func (o *ordering) split(groups []group, g group) []group {
	const large = 4096 // functions
	if len(g.ks) < large {
		return append(groups, g)
	}
	g.from += o.alike(g)
	half := len(g.ks) / 2
	halves := [][]keyed{slices.Clone(g.ks[:half]), slices.Clone(g.ks[half:])}
	inParallel(len(halves), func() func(i int) {
		return func(i int) { o.sortByKey(group{halves[i], g.from}) }
	})
	a, b := halves[0], halves[1]
	for i := range g.ks {
		if len(b) == 0 || len(a) > 0 && a[0].key <= b[0].key {
			g.ks[i], a = a[0], a[1:]
		} else {
			g.ks[i], b = b[0], b[1:]
		}
	}
	for same := range g.byKey() {
		if same.ended() {
			groups = append(groups, same)
		} else {
			groups = o.split(groups, same)
		}
	}
	return groups
}

// sortGroup puts a group in order.
func (o *ordering) sortGroup(g group) {
	const few = 8
	if len(g.ks) < few || g.ended() {
		slices.SortFunc(g.ks, func(a, b keyed) int { return o.compare(&a, &b) })
		return
	}
	g.from += o.alike(g)
	o.sortByKey(g)
	for same := range g.byKey() {
		if len(same.ks) > 1 {
			o.sortGroup(same)
		}
	}
}

// sortByKey puts a group in order by eight letters of the names.
func (o *ordering) sortByKey(g group) {
	for i := range g.ks {
		g.ks[i].key = lettersFrom(o.name(&g.ks[i]), g.from)
	}
	slices.SortFunc(g.ks, func(a, b keyed) int { return cmp.Compare(a.key, b.key) })
}

// byKey is the groups with the same eight letters, which stand side by side.
func (g group) byKey() iter.Seq[group] {
	return func(yield func(group) bool) {
		for ks := g.ks; len(ks) > 0; {
			n := 1
			for n < len(ks) && ks[n].key == ks[0].key {
				n++
			}
			if !yield(group{ks[:n], g.from + 8}) {
				return
			}
			ks = ks[n:]
		}
	}
}

// ended says that the names are the same to their end.
func (g group) ended() bool { return g.from > 0 && g.ks[0].key&0xff == 0 }

// alike is how many letters from a place on are the same in all names of a group.
func (o *ordering) alike(g group) int {
	first := o.name(&g.ks[0])[g.from:]
	for i := range g.ks {
		name := o.name(&g.ks[i])[g.from:]
		n := 0
		for n < min(len(first), len(name)) && first[n] == name[n] {
			n++
		}
		if first = first[:n]; n == 0 {
			break
		}
	}
	return len(first)
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
