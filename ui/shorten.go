package ui

import (
	"fmt"
	"path/filepath"
	"strings"

	"uprobetop/ui/chart"
)

// shorten fits a name into w cells: parameter lists go first, then template
// arguments, then leading namespaces, then the end. What the compiler made of a
// function stays told: f.cold. A raw name loses its middle: those of one class begin
// alike.
func shorten(name string, w int, mark rune) string {
	if chart.Width(name) <= w {
		return name
	}
	if mangled(name) {
		return cutMiddle(name, w, mark)
	}
	name, clone := withoutClone(name)
	clone = chart.Cut(clone, w/2, mark)
	w -= chart.Width(clone)
	name = withoutParameters(name)
	if chart.Width(name) > w {
		name = withoutTemplates(name, mark)
	}
	return chart.Cut(withoutNamespaces(name, w), w, mark) + clone
}

// spellings are the ways to write a name in w cells beside others that are alike but
// for their parameters. Each keeps more of that in which names differ that look alike in
// the one before.
var spellings = [...]func(name string, w int, mark rune) string{
	func(name string, w int, mark rune) string { // with parameters
		if chart.Width(name) <= w {
			return name
		}
		name, clone := withoutClone(name)
		bare := withoutParameters(name)
		rest := name[len(bare):] + clone
		bare = withoutTemplates(bare, mark)
		return cutMiddle(withoutNamespaces(bare, w-chart.Width(rest))+rest, w, mark)
	},
	func(name string, w int, mark rune) string { // with all but leading namespaces
		name, clone := withoutClone(name)
		return cutMiddle(withoutNamespaces(name, w-chart.Width(clone))+clone, w, mark)
	},
	cutMiddle,
}

// shortNames has the names of all rows fit into w cells, so that no two read alike.
// They are kept until a row comes or goes: there can be thousands.
func (m *model) shortNames(w int) map[*row]string {
	if names, known := m.short[w]; known {
		return names
	}
	names := make(map[*row]string, len(m.rows))
	alike := map[string][]*row{}
	for _, r := range m.rows {
		names[r] = shorten(r.name, w, m.th.Ellipsis)
		bare, clone := withoutClone(r.name)
		key := shorten(withoutParameters(bare)+clone, w, m.th.Ellipsis)
		alike[key] = append(alike[key], r)
	}
	for _, rows := range alike {
		if len(rows) > 1 {
			tellApart(names, rows, w, m.th.Ellipsis)
		}
	}
	m.short[w] = names
	return names
}

// tellApart finds the first spelling in which all these rows differ. If they have one
// name, what tells them apart is the file, or the address in it.
func tellApart(names map[*row]string, rows []*row, w int, mark rune) {
	differ := func(spell func(r *row) string) bool {
		seen := map[string]bool{}
		for _, r := range rows {
			names[r] = spell(r)
			seen[names[r]] = true
		}
		return len(seen) == len(rows)
	}
	for _, spell := range spellings {
		if differ(func(r *row) string { return spell(r.name, w, mark) }) {
			return
		}
	}
	with := func(what func(r *row) string) func(r *row) string {
		return func(r *row) string {
			end := chart.Cut(what(r), w/2, mark)
			return shorten(r.name, w-1-chart.Width(end), mark) + " " + end
		}
	}
	if !differ(with(func(r *row) string { return clean(filepath.Base(r.file.Path)) })) {
		differ(with(func(r *row) string { return fmt.Sprintf("%#x", uint64(r.fn.Addr)) }))
	}
}

// mangled tells whether a name is as it stands in the symbol table of C++ or Rust.
func mangled(name string) bool {
	return strings.HasPrefix(name, "_Z") || strings.HasPrefix(name, "_R")
}

// cutMiddle fits a text into w cells and keeps both ends.
func cutMiddle(s string, w int, mark rune) string {
	if chart.Width(s) <= w {
		return s
	}
	runes := []rune(s)
	head, tail := middle(len(runes), w)
	return chart.Cut(string(runes[:head])+string(mark)+string(runes[tail:]), w, mark) // some are two cells wide
}

// middle is what goes of a text that is longer than w: the letters from head to tail.
func middle(letters, w int) (head, tail int) {
	keep := max(w-1, 0)
	return keep - keep/2, letters - keep/2
}

// withoutClone takes the compiler's marks of a clone from a demangled name and returns
// them as they are in the raw one: .isra.0 for [clone .isra.0].
func withoutClone(name string) (bare, clone string) {
	const begin = " [clone "
	for strings.HasSuffix(name, "]") {
		i := strings.LastIndex(name, begin)
		if i < 0 {
			break
		}
		name, clone = name[:i], name[i+len(begin):len(name)-1]+clone
	}
	return name, clone
}

// withoutNamespaces takes leading namespaces away until a name fits into w cells, but
// never the last part.
func withoutNamespaces(name string, w int) string {
	for chart.Width(name) > w {
		i := namespace(name)
		if i == 0 {
			break
		}
		name = name[i:]
	}
	return name
}

// namespace is the length of the first part of a name, with its colons; 0 if it is the
// only one.
func namespace(name string) int {
	depth := 0
	for i := 0; i+2 < len(name); i++ {
		switch name[i] {
		case '<', '{':
			depth++
		case '>', '}':
			depth--
		case '(':
			if !strings.HasPrefix(name[i:], anonymous) {
				return 0 // parameters
			}
			i += len(anonymous) - 1
		case ':':
			if depth <= 0 && name[i+1] == ':' {
				return i + 2
			}
		}
	}
	return 0
}

const anonymous = "(anonymous namespace)"

func withoutParameters(name string) string {
	depth := 0
	for i := 0; i < len(name); i++ {
		switch name[i] {
		case '<':
			depth++
		case '>':
			depth--
		case '(':
			if strings.HasPrefix(name[i:], anonymous) {
				i += len(anonymous) - 1
				continue
			}
			if depth <= 0 && i > 0 && !strings.HasSuffix(name[:i], "operator") {
				return name[:i]
			}
		}
	}
	return name
}

// withoutTemplates replaces the outermost template arguments by a mark. The
// signs of an operator are none.
func withoutTemplates(name string, mark rune) string {
	if strings.Contains(name, "operator<") || strings.Contains(name, "operator>") || strings.Contains(name, "operator-") {
		return name
	}
	var b strings.Builder
	depth := 0
	for _, r := range name {
		switch {
		case r == '<':
			if depth++; depth == 1 {
				b.WriteString("<" + string(mark) + ">")
			}
		case r == '>' && depth > 0:
			depth--
		case depth == 0:
			b.WriteRune(r)
		}
	}
	return b.String()
}
