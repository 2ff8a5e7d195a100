package ui

import (
	"fmt"
	"strings"

	"uprobetop/probes"
	"uprobetop/symbols"
	"uprobetop/ui/chart"
)

// limits is what can be measured of a function and why not more, as far as that is known
// here: the files of a recording are not there.
func limits(match symbols.Match) (probes.Ability, string) {
	if _, err := match.File.Code(match.Function, 1); err != nil && match.Function.Place == symbols.InFile {
		return probes.Times, ""
	}
	able, why := probes.Able(match.File, match.Function)
	if able == probes.Counts {
		return able, clean(why.Reason)
	}
	return able, why.String()
}

// classes says what the class of the first instruction means for a hit.
var classes = map[probes.Class]string{
	probes.Stepped:  "the first instruction is stepped: the dearest sort, about three times an emulated one",
	probes.Emulated: "the first instruction is emulated",
	probes.Nop5:     "begins with a 5-byte nop, which becomes a call: the cheapest sort",
	probes.Nop10:    "begins with a 10-byte nop, which becomes a call: the cheapest sort",
}

func (f *finder) drawAbout(m *model, c *chart.Canvas, match symbols.Match) {
	th, fn := m.th, match.Function
	c.Fill(0, 0, c.W, 1, th.H, th.Line)
	x := c.Text(1, 0, " "+shorten(match.Name, c.W-40, th.Ellipsis)+" ", th.Bright)
	c.Text(x, 0, clean(match.File.Path)+" ", th.Muted)
	var aliases []string
	for _, a := range fn.Aliases {
		aliases = append(aliases, clean(a.String()))
	}
	lines := [][2]string{
		{"symbol", clean(fn.Symbol.String())},
	}
	if fn.Place < symbols.NoCode {
		lines = append(lines, [2]string{"address", fmt.Sprintf("%#x, offset %#x in the file", uint64(fn.Addr), uint64(fn.Offset))})
	}
	if notes := probes.MarkerNotes(match.File, fn); fn.Place == symbols.Marker && len(notes) > 0 {
		lines = append(lines, [2]string{"usdt", strings.Join(notes, ", ")})
	}
	if of := match.File.CloneOf(fn); of != "" {
		lines = append(lines, [2]string{"clone of", clean(symbols.Symbol{Name: of}.Demangled()) + ", made by the compiler"})
	}
	if badge := match.File.Badge(); badge != "" {
		lines = append(lines, [2]string{"file", badge})
	}
	able, why := limits(match)
	if r := m.byKey[keyOf(match.File, fn)]; able != probes.Cannot && r != nil && (m.condition(r) == refused || m.condition(r) == failed) {
		lines = append(lines, [2]string{"no probe", m.sentence(r, m.condition(r)).long})
	}
	switch able {
	case probes.Cannot:
		lines = append(lines, [2]string{"no probe", why})
	case probes.Counts:
		lines = append(lines, [2]string{"no latency", "counts only: " + why})
	}
	if class := probes.ClassOf(match.File, fn); able != probes.Cannot && class != probes.NoClass {
		lines = append(lines, [2]string{"a hit", classes[class]})
	}
	if len(aliases) > 0 {
		lines = append(lines, [2]string{"aliases", strings.Join(aliases, ", ")})
	}
	if full := clean(fn.Demangled()); full != match.Name || chart.Width(full) > c.W/2 {
		lines = append(lines, [2]string{"in full", full})
	}
	y := 2
	for _, l := range lines {
		c.Text(4, y, l[0], th.Muted)
		for _, part := range wrap(l[1], c.W-20) {
			c.Text(16, y, chart.Cut(part, c.W-18, th.Ellipsis), th.Text)
			y++
		}
	}
}
