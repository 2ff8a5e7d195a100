package ui

import (
	"strings"

	"uprobetop/symbols"
)

// nameOf is a function's name as the screen has it now: for people, or as it stands in
// the symbol table.
func (m *model) nameOf(fn *symbols.Function) string {
	if m.rawNames {
		return clean(fn.Symbol.String())
	}
	return clean(fn.Demangled())
}

// nameOfMatch is the same of the name that was found, which can be an alias. The parts
// that match are those of what was typed.
func (m *model) nameOfMatch(match symbols.Match, query string) symbols.Match {
	if !m.rawNames {
		return match
	}
	raw := match.Function.Symbol
	for _, alias := range match.Function.Aliases {
		if match.Name != clean(raw.Demangled()) && match.Name == clean(alias.Demangled()) {
			raw = alias
			break
		}
	}
	if name := clean(raw.String()); name != match.Name {
		match.Name, match.Spans = name, nil
		if at := strings.Index(name, query); at >= 0 && query != "" { // it may stand nowhere in it
			match.Spans = [][2]int{{at, at + len(query)}}
		}
	}
	return match
}

// turnNames changes between the two.
func (m *model) turnNames() {
	m.rawNames = !m.rawNames
	for _, r := range m.rows {
		r.name = m.nameOf(r.fn)
	}
	clear(m.short)
	m.resort()
}
