package chart

import (
	"fmt"
	"image/color"
	"strings"

	"charm.land/lipgloss/v2"
)

// Color is a colour of the terminal: its default, one of its palette, or 24
// bits of red, green and blue. The zero value is the default.
type Color uint32

const (
	rgbBit  Color = 1 << 24
	ansiBit Color = 1 << 25
)

// RGB is a colour from 0xrrggbb.
func RGB(hex uint32) Color { return rgbBit | Color(hex&0xffffff) }

// ANSI is one of the 256 colours of the terminal's palette.
func ANSI(n uint8) Color { return ansiBit | Color(n) }

// FromColor is the nearest 24-bit colour of c.
func FromColor(c color.Color) Color {
	r, g, b, _ := c.RGBA()
	return RGB((r>>8)<<16 | (g>>8)<<8 | b>>8)
}

// Mix goes the share t (0…1) of the way from c to d. Only 24-bit colours can be
// mixed; of any other the result is c.
func (c Color) Mix(d Color, t float64) Color {
	if c&d&rgbBit == 0 {
		return c
	}
	var out uint32
	for shift := 0; shift < 24; shift += 8 {
		a, b := float64(c>>shift&0xff), float64(d>>shift&0xff)
		out |= uint32(a+(b-a)*t+0.5) << shift
	}
	return RGB(out)
}

func (c Color) lipgloss() color.Color {
	switch {
	case c&rgbBit != 0:
		return lipgloss.Color(fmt.Sprintf("#%06x", uint32(c&0xffffff)))
	case c&ansiBit != 0:
		return lipgloss.Color(fmt.Sprint(uint32(c & 0xff)))
	}
	return lipgloss.NoColor{}
}

// Attr is a set of text attributes.
type Attr uint8

const (
	Bold Attr = 1 << iota
	Dim
	Underline
	Reverse
)

// Style is how a cell is painted. The zero value is the terminal's own.
type Style struct {
	Fg, Bg Color
	Attr   Attr
}

// With adds attributes.
func (s Style) With(a Attr) Style { s.Attr |= a; return s }

// escapes returns what the terminal has to be told before and after a run of
// cells of this style.
func (s Style) escapes() (before, after string) {
	if s == (Style{}) {
		return "", ""
	}
	st := lipgloss.NewStyle().Bold(s.Attr&Bold != 0).Faint(s.Attr&Dim != 0).
		Underline(s.Attr&Underline != 0).Reverse(s.Attr&Reverse != 0)
	if s.Fg != 0 {
		st = st.Foreground(s.Fg.lipgloss())
	}
	if s.Bg != 0 {
		st = st.Background(s.Bg.lipgloss())
	}
	before, after, _ = strings.Cut(st.Render("x"), "x")
	return before, after
}

// Theme is every style and sign that the screen uses, by meaning.
type Theme struct {
	Bg Color // what colours are mixed towards; never painted

	Surface Style // header, key bar, dialogs: a background
	Sel     Style // selected row: laid over the row's own styles
	SelText bool  // Sel replaces the foreground too

	Bright, Text, Muted, Faint, Line, Grid Style
	Accent, Key, Tab                       Style // acts; a key; the active tab
	Entry, Ret, Usdt, Good, Warn, Bad      Style

	T90, T99, TMax      Style // words: p50 and p90, p99, above
	H50, H90, H99, HMax Style // bars: to p50, to p90, to p99, above
	Spark, CPU, Hot     Style

	Fade  bool // colours can be mixed
	Shade bool // bars carry their zone by shade, because they cannot by colour
	Glyphs
}

// Glyphs are the signs of a theme, each one cell wide.
type Glyphs struct {
	Ramp  []rune // sparklines and strips, low to high; never a full cell
	Empty rune   // a sparkline's zero
	Eight []rune // vertical bars: one to eight eighths

	Bar, Half, Track, Waits, Blocks        rune // horizontal bars
	H, V, Tick, GridLine, Drop, Top        rune // rules, axes, ticks, lines of the chart
	Cursor, Selected, Down, Up, Dot, Dash  rune
	NotProbed, EntrySign, RetSign, Placing rune
	UsdtSign                               rune
	Frozen, Failed, Live, Late             rune
	Ellipsis, Prompt, Left, Right, Asks    rune
	TopLeft, TopRight, BottomLeft, BottomR rune
	Range, Times, Sigma, Check             string
	AtMost, AtLeast                        string
	Zones                                  [4]rune // bars to p50, p90, p99, above, where colour cannot say
	ASCII                                  bool
}

// Unicode is the full set of signs.
func Unicode() Glyphs {
	return Glyphs{
		Ramp: []rune("▁▂▃▄▅▆▇"), Empty: '▁', Eight: []rune("▁▂▃▄▅▆▇█"),
		Bar: '━', Half: '╸', Track: '─', Waits: '╍', Blocks: '═',
		H: '─', V: '│', Tick: '┴', GridLine: '╌', Drop: '┊', Top: '▔',
		Cursor: '▲', Selected: '▸', Down: '▾', Up: '▴', Dot: '·', Dash: '–',
		NotProbed: '○', EntrySign: '●', RetSign: '◉', UsdtSign: '◆', Placing: '◌',
		Frozen: '‖', Failed: '×', Live: '●', Late: '○',
		Ellipsis: '…', Prompt: '›', Left: '←', Right: '→', Asks: '▲',
		TopLeft: '╭', TopRight: '╮', BottomLeft: '╰', BottomR: '╯',
		Range: "–", Times: "×", Sigma: "Σ", Check: "✓", AtMost: "≤", AtLeast: "≥",
		Zones: [4]rune{'█', '▓', '▒', '░'},
	}
}

// ASCII is the set for terminals that show nothing else.
func ASCII() Glyphs {
	return Glyphs{
		Ramp: []rune(".:-=+*#"), Empty: '_', Eight: []rune(".:-=+*##"),
		Bar: '=', Half: '=', Track: '.', Waits: '~', Blocks: '-',
		H: '-', V: '|', Tick: '+', GridLine: '-', Drop: ':', Top: '-',
		Cursor: '^', Selected: '>', Down: 'v', Up: '^', Dot: '|', Dash: '-',
		NotProbed: 'o', EntrySign: '*', RetSign: '@', UsdtSign: '+', Placing: '~',
		Frozen: '=', Failed: 'x', Live: '*', Late: 'o',
		Ellipsis: '~', Prompt: '>', Left: '<', Right: '>', Asks: '!',
		TopLeft: '+', TopRight: '+', BottomLeft: '+', BottomR: '+',
		Range: "-", Times: "x", Sigma: "sum", Check: "ok", AtMost: "<=", AtLeast: ">=",
		Zones: [4]rune{'#', '+', '=', ':'},
		ASCII: true,
	}
}
