package ui

import (
	"image/color"
	"strings"

	"uprobetop/ui/chart"
)

// look is what decides which theme is used.
type look struct {
	name  string // what the user asked for: auto, dark, light, high-contrast, 16, mono
	depth depth
	light bool
	bg    color.Color // as the terminal reports it; nil: not known
	ascii bool
}

type depth uint8

const (
	full    depth = iota // 24 bits
	palette              // 256 colours
	sixteen              // the terminal's own
	mono                 // none
)

// themeNames are the themes that can be asked for by name.
var themeNames = [...]string{"auto", "dark", "light", "high-contrast", "16", "mono"}

func (l look) theme() *chart.Theme {
	light := l.light
	d := l.depth
	switch l.name {
	case "dark", "high-contrast":
		light = false
	case "light":
		light = true
	case "16":
		d = max(d, sixteen)
	case "mono":
		d = mono
	}
	var th *chart.Theme
	switch d {
	case mono:
		th = monoTheme()
	case sixteen:
		th = ansiTheme(light)
	case palette:
		t := dark256
		if light {
			t = light256
		}
		th = t.theme(func(n uint32) chart.Color { return chart.ANSI(uint8(n)) })
	default:
		th = rgbTheme(light, l.name == "high-contrast")
		if l.bg != nil && light == l.light {
			th.Bg = chart.FromColor(l.bg)
		}
	}
	th.Glyphs = chart.Unicode()
	if l.ascii {
		th.Glyphs = chart.ASCII()
	}
	return th
}

// asciiOnly says whether the environment promises nothing beyond ASCII.
func asciiOnly(getenv func(string) string) bool {
	switch getenv("TERM") {
	case "linux", "vt100", "vt102", "vt220", "dumb":
		return true
	}
	for _, name := range [...]string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := getenv(name); v != "" {
			v = strings.ToLower(v)
			return !strings.Contains(v, "utf-8") && !strings.Contains(v, "utf8")
		}
	}
	return true
}

// tokens are the colours of a theme in the order of the table in the design.
type tokens struct {
	bg, surface, sel                    uint32
	bright, text, muted, faint          uint32
	line, grid, accent, inv             uint32
	entry, ret, usdt, good, warn, bad   uint32
	t90, t99, tmax, h50, h90, h99, hmax uint32
	spark, cpu, hot                     uint32
}

var darkTokens = tokens{
	0x0d1117, 0x151b25, 0x1d2a40,
	0xf3f6fb, 0xccd5e2, 0x8d99ab, 0x66738a,
	0x2f3a4b, 0x1e2632, 0x62bbff, 0x0d1117,
	0x63d2c3, 0xbba6ff, 0xa3cf7a, 0x7fd491, 0xf1b84c, 0xff8078,
	0x62bbff, 0xf1c65c, 0xff9160, 0x3f83c8, 0x62bbff, 0xf1c65c, 0xff9160,
	0x4a9be0, 0x7d8cc4, 0xf1b84c,
}

var lightTokens = tokens{
	0xfbfbfa, 0xeef1f5, 0xd9e8fb,
	0x05090f, 0x232b36, 0x566273, 0x717d8e,
	0xc3ccd8, 0xe4e8ee, 0x0860b0, 0xffffff,
	0x0b6e63, 0x6639ba, 0x446b10, 0x1a7032, 0x8a5a00, 0xb3261e,
	0x1b62a5, 0x855600, 0xad3d10, 0x7fb2e0, 0x2f7fc4, 0xd09a1e, 0xcf5a28,
	0x2f7fc4, 0x6a76b0, 0xb06f00,
}

// In 256 colours the greys come from the ramp of greys: the nearest colour of a
// dark blue one would be a loud blue. Nothing is mixed.
var dark256 = tokens{
	0, 234, 237,
	255, 252, 246, 241,
	238, 236, 75, 233,
	79, 141, 150, 114, 215, 210,
	75, 221, 209, 68, 75, 221, 209,
	68, 103, 215,
}

var light256 = tokens{
	0, 255, 189,
	16, 235, 241, 244,
	250, 254, 25, 231,
	23, 55, 58, 22, 94, 124,
	25, 94, 130, 110, 32, 178, 166,
	32, 61, 130,
}

func rgbTheme(light, contrast bool) *chart.Theme {
	t := darkTokens
	if light {
		t = lightTokens
	}
	if contrast {
		t.muted, t.faint, t.line = 0xc3ccda, 0x8d99ab, 0x6d7a90
		t.text, t.bright = 0xffffff, 0xffffff
	}
	th := t.theme(chart.RGB)
	th.Bg, th.Fade = chart.RGB(t.bg), !contrast
	return th
}

// theme makes styles of the tokens, given what their numbers mean.
func (t tokens) theme(color func(uint32) chart.Color) *chart.Theme {
	fg := func(n uint32) chart.Style { return chart.Style{Fg: color(n)} }
	bg := func(n uint32) chart.Style { return chart.Style{Bg: color(n)} }
	return &chart.Theme{
		Surface: bg(t.surface), Sel: bg(t.sel),
		Bright: fg(t.bright).With(chart.Bold), Text: fg(t.text), Muted: fg(t.muted),
		Faint: fg(t.faint), Line: fg(t.line), Grid: fg(t.grid),
		Accent: fg(t.accent), Key: fg(t.accent).With(chart.Bold),
		Tab:   chart.Style{Fg: color(t.inv), Bg: color(t.accent), Attr: chart.Bold},
		Entry: fg(t.entry), Ret: fg(t.ret), Usdt: fg(t.usdt), Good: fg(t.good), Warn: fg(t.warn), Bad: fg(t.bad),
		T90: fg(t.t90), T99: fg(t.t99), TMax: fg(t.tmax),
		H50: fg(t.h50), H90: fg(t.h90), H99: fg(t.h99), HMax: fg(t.hmax),
		Spark: fg(t.spark), CPU: fg(t.cpu), Hot: fg(t.hot),
	}
}

// ansiTheme uses the terminal's palette. Hierarchy is bold against plain: dim
// is unreadable on many terminals.
func ansiTheme(light bool) *chart.Theme {
	pick := func(dark, lightN uint8) chart.Style {
		if light {
			dark = lightN
		}
		return chart.Style{Fg: chart.ANSI(dark)}
	}
	plain := chart.Style{}
	gray := pick(8, 8)
	accent := pick(14, 4)
	sel := chart.Style{Bg: chart.ANSI(4), Fg: chart.ANSI(15)}
	return &chart.Theme{
		Sel: sel, SelText: true,
		Bright: plain.With(chart.Bold), Text: plain, Muted: plain,
		Faint: gray, Line: gray, Grid: gray,
		Accent: accent, Key: accent.With(chart.Bold),
		Tab:   chart.Style{Fg: pick(0, 15).Fg, Bg: accent.Fg, Attr: chart.Bold},
		Entry: pick(6, 6), Ret: pick(13, 5), Usdt: pick(10, 2), Good: pick(10, 2), Warn: pick(11, 3), Bad: pick(9, 1),
		T90: pick(12, 4), T99: pick(11, 3), TMax: pick(9, 1),
		H50: pick(4, 4), H90: pick(12, 12), H99: pick(11, 11), HMax: pick(9, 9),
		Spark: pick(12, 4), CPU: pick(12, 4), Hot: pick(11, 3),
	}
}

func monoTheme() *chart.Theme {
	plain := chart.Style{}
	bold, dim := plain.With(chart.Bold), plain.With(chart.Dim)
	return &chart.Theme{
		Sel:    plain.With(chart.Reverse),
		Bright: bold, Text: plain, Muted: dim, Faint: dim, Line: dim, Grid: dim,
		Accent: bold, Key: bold, Tab: bold.With(chart.Reverse),
		Good: plain, Warn: bold, Bad: bold,
		T90: bold, T99: bold, TMax: bold,
		Shade: true,
	}
}

// selected lays the selection over a style.
func selected(th *chart.Theme) func(chart.Style) chart.Style {
	return func(s chart.Style) chart.Style {
		switch {
		case th.SelText:
			return chart.Style{Fg: th.Sel.Fg, Bg: th.Sel.Bg, Attr: s.Attr}
		case th.Sel.Bg != 0:
			s.Bg = th.Sel.Bg
		default:
			s.Attr = s.Attr&^chart.Dim | chart.Reverse
		}
		return s
	}
}

// behind is how the screen looks behind a dialog.
func behind(th *chart.Theme) func(chart.Style) chart.Style {
	return func(s chart.Style) chart.Style {
		switch {
		case th.Bg != 0:
			if s.Fg != 0 {
				s.Fg = s.Fg.Mix(th.Bg, 0.65)
			} else {
				s.Fg = th.Muted.Fg.Mix(th.Bg, 0.65)
			}
			if s.Bg != 0 {
				s.Bg = s.Bg.Mix(th.Bg, 0.65)
			}
			s.Attr &^= chart.Bold
		case th.Sel.Bg != 0:
			s = chart.Style{Fg: th.Faint.Fg}
		default:
			s = chart.Style{Attr: chart.Dim}
		}
		return s
	}
}
