// Package chart draws on a grid of cells: text, sparklines, bars, histograms.
// Everything in it is a pure function of data, size and theme.
package chart

import (
	"strings"

	"charm.land/lipgloss/v2"
)

// wideTail marks the second cell of a character that takes two.
const wideTail rune = -1

type cell struct {
	r     rune
	style Style
}

// Canvas is a rectangle of cells. What does not fit into it is not drawn, so
// no text can ever make a line longer than the terminal is wide.
type Canvas struct {
	W, H   int
	X, Y   int // where it lies on the whole of which it is a part
	cells  []cell
	stride int
}

// New returns an empty canvas of w×h cells.
func New(w, h int) *Canvas {
	w, h = max(w, 0), max(h, 0)
	c := &Canvas{W: w, H: h, stride: w, cells: make([]cell, w*h)}
	for i := range c.cells {
		c.cells[i].r = ' '
	}
	return c
}

// Sub is the part of c at x, y, cut to c. Drawing on it draws on c.
func (c *Canvas) Sub(x, y, w, h int) *Canvas {
	x, y = min(max(x, 0), c.W), min(max(y, 0), c.H)
	w, h = min(max(w, 0), c.W-x), min(max(h, 0), c.H-y)
	if w == 0 || h == 0 {
		return &Canvas{}
	}
	return &Canvas{W: w, H: h, X: c.X + x, Y: c.Y + y, stride: c.stride, cells: c.cells[y*c.stride+x:]}
}

// Put draws one cell. A background that is already there stays unless st has
// one of its own.
func (c *Canvas) Put(x, y int, r rune, st Style) {
	if x < 0 || y < 0 || x >= c.W || y >= c.H {
		return
	}
	p := &c.cells[y*c.stride+x]
	if st.Bg == 0 {
		st.Bg = p.style.Bg
	}
	*p = cell{r, st}
}

// Text draws s from x on and returns the cell behind it, whether or not that
// is still inside.
func (c *Canvas) Text(x, y int, s string, st Style) int {
	for _, r := range s {
		w := 1
		if r >= 0x300 {
			w = lipgloss.Width(string(r))
		}
		switch {
		case w == 0 || r < ' ':
			continue
		case w == 2 && x+1 >= c.W:
			c.Put(x, y, ' ', st)
		case w == 2:
			c.Put(x, y, r, st)
			c.Put(x+1, y, wideTail, st)
		default:
			c.Put(x, y, r, st)
		}
		x += w
	}
	return x
}

// Right draws s so that it ends before x, and returns where it begins.
func (c *Canvas) Right(x, y int, s string, st Style) int {
	x -= Width(s)
	c.Text(x, y, s, st)
	return x
}

// Fill repeats r over w×h cells.
func (c *Canvas) Fill(x, y, w, h int, r rune, st Style) {
	for j := y; j < y+h; j++ {
		for i := x; i < x+w; i++ {
			c.Put(i, j, r, st)
		}
	}
}

// Map changes the style of every cell.
func (c *Canvas) Map(f func(Style) Style) {
	for y := range c.H {
		row := c.cells[y*c.stride:][:c.W]
		for x := range row {
			row[x].style = f(row[x].style)
		}
	}
}

// Clear makes every cell a blank of the given style, whatever was there.
func (c *Canvas) Clear(st Style) {
	for y := range c.H {
		row := c.cells[y*c.stride:][:c.W]
		for x := range row {
			row[x] = cell{' ', st}
		}
	}
}

// String is the canvas as lines with escape codes, each exactly W cells wide.
func (c *Canvas) String() string {
	type pair struct{ before, after string }
	known := map[Style]pair{}
	var b strings.Builder
	b.Grow(c.W * c.H * 3)
	for y := range c.H {
		if y > 0 {
			b.WriteByte('\n')
		}
		row := c.cells[y*c.stride:][:c.W]
		for x := 0; x < len(row); {
			st := row[x].style
			p, ok := known[st]
			if !ok {
				p.before, p.after = st.escapes()
				known[st] = p
			}
			b.WriteString(p.before)
			for ; x < len(row) && row[x].style == st; x++ {
				if row[x].r != wideTail {
					b.WriteRune(row[x].r)
				}
			}
			b.WriteString(p.after)
		}
	}
	return b.String()
}

// Plain is the canvas without styles.
func (c *Canvas) Plain() string {
	var b strings.Builder
	for y := range c.H {
		if y > 0 {
			b.WriteByte('\n')
		}
		for _, p := range c.cells[y*c.stride:][:c.W] {
			if p.r != wideTail {
				b.WriteRune(p.r)
			}
		}
	}
	return b.String()
}

// Width is the number of cells that s takes.
func Width(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case r < ' ':
		case r < 0x300:
			n++
		default:
			n += lipgloss.Width(string(r))
		}
	}
	return n
}

// Cut shortens s to w cells, with a mark at its end if something went.
func Cut(s string, w int, mark rune) string {
	if Width(s) <= w {
		return s
	}
	n := 0
	for i, r := range s {
		rw := Width(string(r))
		if n+rw > w-1 {
			if w <= 0 {
				return ""
			}
			return s[:i] + string(mark)
		}
		n += rw
	}
	return s
}

// ASCII replaces every character that is not ASCII.
func (c *Canvas) ASCII() {
	for y := range c.H {
		row := c.cells[y*c.stride:][:c.W]
		for x := range row {
			if r := row[x].r; r > '~' || r == wideTail {
				row[x].r = asciiFor(r)
			}
		}
	}
}

func asciiFor(r rune) rune {
	switch r {
	case 'µ':
		return 'u'
	case '–', '─':
		return '-'
	case '×':
		return 'x'
	case '·', '│':
		return '|'
	case '…', '≈':
		return '~'
	case '↑':
		return '^'
	case '↓':
		return 'v'
	case '←', '‹':
		return '<'
	case '→', '›':
		return '>'
	case '≤':
		return '<'
	case '≥':
		return '>'
	case wideTail:
		return ' '
	}
	return '?'
}
