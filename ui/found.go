package ui

import (
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"uprobetop/probes"
	"uprobetop/symbols"
	"uprobetop/ui/chart"
	"uprobetop/ui/format"
)

// notesColumn says whether there is room for notes beside the names. Where there is
// not, that of the selected one stands under the list.
func (f *finder) notesColumn(w int) bool { return w >= 100 }

func (f *finder) drawList(m *model, c *chart.Canvas) {
	th := m.th
	size, notes, file := c.W-1-32, c.W-31, c.W-1-32-8-18
	if !f.notesColumn(c.W) {
		file = c.W - 1 - 18
	}
	c.Text(5, 0, "FUNCTION", th.Muted)
	c.Text(file, 0, "FILE", th.Muted)
	if f.notesColumn(c.W) {
		c.Right(size, 0, "SIZE", th.Muted)
		c.Text(notes, 0, "NOTES", th.Muted)
	}
	f.rows = c.H - 1
	f.top = min(f.top, f.at)
	f.top = max(f.top, f.at-f.rows+1, 0)
	if len(f.matches) == 0 && !f.running {
		c.Text(5, 2, "no function of the target has this in its name", th.Muted)
		for i, line := range wrap(f.runtime, c.W-10) {
			c.Text(5, 3+i, line, th.Muted)
		}
	}
	visible := f.matches[f.top:min(f.top+max(c.H-1, 0), len(f.matches))]
	cuts := m.cutMatches(visible, file-6, f.query)
	for n, match := range visible {
		i, y := f.top+n, n+1
		line := c.Sub(0, y, c.W, 1)
		r := m.byKey[keyOf(match.File, match.Function)]
		able, why := limits(match)
		sign, st, name := th.NotProbed, th.Muted, th.Text
		if i == f.at {
			name = th.Bright
		}
		if able == probes.Cannot {
			sign, name = th.Dash, th.Muted
		}
		if r != nil && m.condition(r) != notProbed {
			sign, st = m.sign(r, m.condition(r))
		}
		line.Put(3, 0, sign, st)
		drawMatch(line.Sub(5, 0, file-6, 1), cuts[n], name, th)
		line.Text(file, 0, chart.Cut(clean(filepath.Base(match.File.Path)), 17, th.Ellipsis), th.Muted)
		if f.notesColumn(c.W) {
			f.drawSize(m, line, size, match.Function)
			note, noteStyle := m.findNote(match, r, able, why)
			line.Text(notes, 0, chart.Cut(note, c.W-1-notes, th.Ellipsis), noteStyle)
		}
		if i == f.at {
			selectLine(line, 1, th)
		}
		m.spot(c, 0, y, c.W, 1, func(m *model, x int) tea.Cmd {
			f.at = i
			if x >= 3 && x <= 4 {
				return onMatch((*model).toggle)(m)
			}
			return nil
		})
	}
}

func (f *finder) drawSize(m *model, c *chart.Canvas, x int, fn *symbols.Function) {
	if fn.Size == 0 {
		c.Right(x, 0, string(m.th.Dash), m.th.Faint)
		return
	}
	c.Right(x, 0, format.Count(fn.Size), m.th.Text)
}

// cutMatch is a name on its way into the list.
type cutMatch struct {
	symbols.Match
	middle bool // if it is too long its middle goes, not its end
}

// cutMatches has those names lose their middle that begin alike, and raw ones.
func (m *model) cutMatches(matches []symbols.Match, w int, query string) []cutMatch {
	cuts, begin := make([]cutMatch, len(matches)), map[string]int{}
	for i, match := range matches {
		cuts[i] = cutMatch{Match: m.nameOfMatch(match, query)}
		begin[chart.Cut(cuts[i].Name, w, m.th.Ellipsis)]++
	}
	for i := range cuts {
		c := &cuts[i]
		c.middle = mangled(c.Name) || begin[chart.Cut(c.Name, w, m.th.Ellipsis)] > 1
	}
	return cuts
}

// drawMatch draws a name with what was typed marked in it.
func drawMatch(c *chart.Canvas, match cutMatch, st chart.Style, th *chart.Theme) {
	hit := th.Key.With(chart.Underline)
	letters := utf8.RuneCountInString(match.Name)
	head, tail := letters, letters
	if chart.Width(match.Name) > c.W {
		head, tail = c.W-1, letters
		if match.middle {
			head, tail = middle(letters, c.W)
		}
	}
	x, n := 0, -1
	for i, r := range match.Name {
		n++
		if n == head {
			x = c.Text(x, 0, string(th.Ellipsis), st)
		}
		if n >= head && n < tail {
			continue
		}
		s := st
		for _, span := range match.Spans {
			if i >= span[0] && i < span[1] {
				s = hit
			}
		}
		if !unicode.IsPrint(r) {
			r = '?'
		}
		x = c.Text(x, 0, string(r), s)
	}
}

// findNote is the one thing to know of a match beside its name.
func (m *model) findNote(match symbols.Match, r *row, able probes.Ability, why string) (string, chart.Style) {
	th, fn := m.th, match.Function
	if r != nil {
		switch cond := m.condition(r); cond {
		case measuring:
			word := "counting, "
			if r.kindOf() == timed {
				word = "latency, "
			}
			_, st := m.kindSign(r)
			return word + format.SI(r.num.rate) + "/s", st
		case refused, failed:
			return m.sentence(r, cond).medium, th.Bad
		case notProbed:
		default:
			s := m.sentence(r, cond)
			return s.short, s.style
		}
	}
	switch {
	case fn.Place == symbols.Marker && len(match.File.Points(fn)) > 0:
		return strings.Join(append([]string{string(th.UsdtSign) + " usdt"}, probes.MarkerNotes(match.File, fn)...), ", "), th.Usdt
	case able == probes.Cannot:
		return why, th.Muted
	case fn.Chosen:
		return probes.ChosenNote, th.Muted
	case fn.Version != "" && !fn.Default:
		return "old version " + clean(fn.Version), th.Muted
	case match.File.CloneOf(fn) != "":
		return "clone made by the compiler", th.Muted
	case match.Name != clean(fn.Demangled()):
		return "alias of " + clean(fn.Demangled()), th.Muted
	case match.File.Go:
		return "Go: counts, no latency", th.Muted
	case able == probes.Counts:
		return "counts only: " + why, th.Muted
	}
	return "", th.Muted
}
