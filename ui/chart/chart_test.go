package chart

import (
	"math"
	"strings"
	"testing"
)

func plain() *Theme { return &Theme{Glyphs: Unicode()} }

func sample() *Histogram {
	return &Histogram{
		Buckets: []Bucket{{100, 200, 10}, {200, 400, 1000}, {400, 800, 500}, {800, 1600, 0}, {50000, 60000, 3}},
		Low:     100, High: 1e5, Top: 1000, Cursor: -1, P50: 300, P90: 700, P99: 800,
		XLabel: func(float64) string { return "x" }, YLabel: func(float64) string { return "y" },
	}
}

func TestColumnsKeepTheSum(t *testing.T) {
	h := sample()
	for n := 1; n < 300; n++ {
		sum := 0.0
		for _, v := range h.Columns(n) {
			sum += v
		}
		if math.Abs(sum-1513) > 1e-6 {
			t.Fatalf("%d columns hold %v, want 1513", n, sum)
		}
	}
	h.Low, h.High = 300, 1000 // an axis that does not reach everything
	sum := 0.0
	for _, v := range h.Columns(20) {
		sum += v
	}
	if math.Abs(sum-1513) > 1e-6 {
		t.Errorf("cut off, the columns hold %v", sum)
	}
}

func TestColumnsStandWhereTheAxisSays(t *testing.T) {
	h := &Histogram{Low: 1, High: 1000, Buckets: []Bucket{{100, 101, 7}}}
	cols := h.Columns(30)
	if math.Abs(cols[20]-7) > 1e-9 {
		t.Errorf("100 on 1…1000 is not in column 20 of 30: %v", cols)
	}
	low, high := h.Bounds(20, 30)
	if math.Abs(low-100) > 1e-6 || high <= 101 {
		t.Errorf("column 20 is %v…%v", low, high)
	}
	if got := h.Column(100.5, 30); got != 20 {
		t.Errorf("100.5 is in column %d", got)
	}
}

func TestHistogramDrawsEveryCountAndNothingElse(t *testing.T) {
	h := sample()
	c := New(80, 20)
	h.Draw(c, plain())
	cols := h.Columns(PlotWidth(80))
	lines := strings.Split(c.Plain(), "\n")
	bottom := []rune(lines[20-3])[Gutter:]
	for x, v := range cols {
		bar := strings.ContainsRune("▁▂▃▄▅▆▇█", bottom[x])
		if bar != (v > 0) {
			t.Errorf("column %d holds %v and shows %q", x, v, bottom[x])
		}
	}
}

func TestBarsOfAHistogramAreInOrder(t *testing.T) {
	for _, linear := range []bool{false, true} {
		h := sample()
		h.Linear = linear
		for rows := 1; rows < 40; rows++ {
			y := h.yScale(rows)
			last := 0
			for _, v := range []float64{0.5, 1, 3, 10, 99, 100, 500, 999, 1000} {
				s := h.steps(v, rows, y)
				if s < last || s < 1 {
					t.Fatalf("linear %v, %d rows: %v is %d steps, less than before", linear, rows, v, s)
				}
				last = s
			}
			if top := y.height(1000); top > float64(rows)+1e-9 {
				t.Errorf("linear %v: the largest count needs %v of %d rows", linear, top, rows)
			}
		}
	}
}

func TestLogTicksAreAtTheirHeight(t *testing.T) {
	for rows := 4; rows < 40; rows++ {
		y := logScale(2e7, rows)
		if len(y.ticks) == 0 {
			t.Fatalf("%d rows: no ticks", rows)
		}
		for _, tick := range y.ticks {
			if got, want := y.height(tick.value), float64(tick.row)+0.5; math.Abs(got-want) > 1e-6 {
				t.Errorf("%d rows: %v is drawn at %v and labelled at %v", rows, tick.value, got, want)
			}
		}
	}
}

func TestFlagsNeverOverlap(t *testing.T) {
	h := sample()
	for i, name := range []string{"p50", "p99", "max", "p90", "p99.9"} {
		h.Flags = append(h.Flags, Flag{At: []float64{300, 40000, 90000, 700, 60000}[i], Name: name, Value: "12.3µs"})
	}
	for w := 30; w < 160; w++ {
		c := New(w, 24)
		h.Draw(c, plain())
		text := strings.Join(strings.Split(c.Plain(), "\n")[:3], "\n")
		if n, lines := strings.Count(text, "12.3µs"), strings.Count(text, "│"); n != lines {
			t.Errorf("%d cells: %d values and %d lines\n%s", w, n, lines, text)
		}
		if w > 50 && !strings.Contains(text, "p50") {
			t.Errorf("%d cells: p50 has no room\n%s", w, text)
		}
	}
}

func TestStripShowsTheBusiestOfAGroup(t *testing.T) {
	cpus := make([]float64, 512)
	for i := range cpus {
		cpus[i] = 1
	}
	cpus[300] = 7
	c := New(64, 1)
	if n := Strip(c, cpus, plain()); n != 64 {
		t.Fatalf("%d cells, want 64", n)
	}
	got := []rune(c.Plain())
	for i, r := range got {
		want := '▁'
		if i == 300/8 {
			want = '▇'
		}
		if r != want {
			t.Errorf("cell %d is %q, want %q", i, r, want)
		}
	}
}

func TestHottestOnlyIfItStandsOut(t *testing.T) {
	for _, tt := range []struct {
		cpus []float64
		want int
	}{
		{[]float64{1, 1, 1, 1}, -1},
		{[]float64{1, 1.4, 1, 1}, -1},
		{[]float64{1, 1, 3, 1}, 2},
		{[]float64{0, 0}, -1},
		{[]float64{5}, -1},
		{nil, -1},
	} {
		if _, got := Hottest(tt.cpus); got != tt.want {
			t.Errorf("of %v the hottest is %d, want %d", tt.cpus, got, tt.want)
		}
	}
}

func TestSparklineNewestIsAtTheRight(t *testing.T) {
	c := New(6, 1)
	Sparkline(c, []float64{math.NaN(), 0, 1, 7}, plain())
	if got := c.Plain(); got != "   ▁▁▇" {
		t.Errorf("%q", got)
	}
}

func TestBarIsItsShare(t *testing.T) {
	for _, tt := range []struct {
		share float64
		want  string
	}{{0, "────"}, {1e-9, "╸───"}, {0.5, "━━──"}, {0.625, "━━╸─"}, {1, "━━━━"}, {3, "━━━━"}, {math.NaN(), "────"}} {
		c := New(4, 1)
		Bar(c, tt.share, Style{}, plain())
		if got := c.Plain(); got != tt.want {
			t.Errorf("%v is %q, want %q", tt.share, got, tt.want)
		}
	}
}

func TestScale125(t *testing.T) {
	for _, tt := range []struct{ v, floor, ceil float64 }{
		{1, 1, 1}, {1.5, 1, 2}, {2, 2, 2}, {3, 2, 5}, {7, 5, 10}, {99, 50, 100}, {100, 100, 100}, {1000, 1000, 1000}, {0.03, 0.02, 0.05}, {1e9, 1e9, 1e9},
	} {
		if got := Floor125(tt.v); math.Abs(got-tt.floor) > tt.floor*1e-9 {
			t.Errorf("floor of %v is %v", tt.v, got)
		}
		if got := Ceil125(tt.v); math.Abs(got-tt.ceil) > tt.ceil*1e-9 {
			t.Errorf("ceiling of %v is %v", tt.v, got)
		}
	}
}

func TestCanvasCutsAndCountsWideCharacters(t *testing.T) {
	c := New(5, 1)
	c.Text(0, 0, "a漢字b", Style{})
	if got := c.Plain(); got != "a漢字" {
		t.Errorf("%q", got)
	}
	if got := Cut("a漢字b", 4, '…'); got != "a漢…" {
		t.Errorf("%q", got)
	}
	if got := Cut("abc", 3, '…'); got != "abc" {
		t.Errorf("%q", got)
	}
	sub := New(10, 2).Sub(8, 1, 9, 9)
	if sub.W != 2 || sub.H != 1 {
		t.Errorf("the part is %d×%d", sub.W, sub.H)
	}
	sub.Text(-1, 0, "abcdef", Style{}) // must stay inside
	if got := sub.Plain(); got != "bc" {
		t.Errorf("%q", got)
	}
}

func TestMix(t *testing.T) {
	if got := RGB(0x000000).Mix(RGB(0xffffff), 0.5); got != RGB(0x808080) {
		t.Errorf("%x", uint32(got))
	}
	if got := ANSI(4).Mix(RGB(0xffffff), 0.5); got != ANSI(4) {
		t.Errorf("a palette colour was mixed: %x", uint32(got))
	}
}

func TestPartsOfABarAddUp(t *testing.T) {
	for _, tt := range []struct {
		shares [3]float64
		want   string
	}{
		{[3]float64{}, "────────"},
		{[3]float64{0.25, 0.25, 0.25}, "aabbcc──"},
		{[3]float64{0.06, 0.06, 0.06}, "b───────"}, // none has half a cell, together they have one
		{[3]float64{1e-9, 2e-9, 0}, "b───────"},    // a call is never without a bar
		{[3]float64{0, 0.5, 9}, "bbbbcccc"},
		{[3]float64{math.NaN(), -1, 0.5}, "cccc────"},
	} {
		var parts []Part
		for i, glyph := range "abc" {
			parts = append(parts, Part{Share: tt.shares[i], Glyph: glyph})
		}
		c := New(8, 1)
		Parts(c, parts, plain())
		if got := c.Plain(); got != tt.want {
			t.Errorf("%v is %q, want %q", tt.shares, got, tt.want)
		}
	}
}

func TestPartOfACanvasKnowsWhereItLies(t *testing.T) {
	c := New(20, 10).Sub(3, 2, 10, 5).Sub(4, 1, 2, 2)
	if c.X != 7 || c.Y != 3 {
		t.Errorf("it lies at %d, %d", c.X, c.Y)
	}
}
