package ui

import (
	"math"
	"slices"
	"strconv"

	"uprobetop/ui/chart"
	"uprobetop/ui/format"
)

// cpuGroup is one line of the CPUs view: one CPU, or several where not every
// one has room.
type cpuGroup struct {
	first, last int
	rate        float64 // of the busiest
}

func (g cpuGroup) label() string {
	if g.first == g.last {
		return itoa(g.first)
	}
	return itoa(g.first) + "–" + itoa(g.last)
}

const cpuColumn = 26 // least width of a column of bars

// drawCPUs shows one thin bar a CPU.
func drawCPUs(m *model, c *chart.Canvas, r *row) {
	th, rates := m.th, r.num.perCPU()
	if len(rates) == 0 {
		return
	}
	m.charts.fit(r, m.window())
	top := slices.Max(rates)
	u := format.RateUnits[min(bestUnit(math.Max(top/100, 1), math.Max(top, 1), format.RateUnits, 5), len(format.RateUnits)-1)]
	head := 2
	if c.H < 10 {
		head = 1
	}
	m.drawCPUSummary(c, rates, u)
	rows := max(c.H-head-1, 1)
	columns := min(max((c.W-4)/cpuColumn, 1), (len(rates)+rows-1)/rows)
	groups := groupCPUs(rates, rows*columns)
	columns = (len(groups) + rows - 1) / rows
	// Even columns read better than full ones.
	perColumn := (len(groups) + columns - 1) / columns
	full := m.charts.cpus.follow(math.Max(top, 1), m.shown.Elapsed, higher)
	_, hot := chart.Hottest(rates)
	w := min((c.W-4)/columns, 60)
	label := max(len(itoa(len(rates)-1)), 2)
	if len(groups) < len(rates) {
		label = 2*label + 1
	}
	for i, g := range groups {
		x, y := 3+i/perColumn*w, head+1+i%perColumn
		if i%perColumn == 0 {
			c.Right(x+w-4, head, u.Name, th.Muted)
			if i == 0 && len(groups) < len(rates) {
				c.Text(x, head, "busiest of "+itoa(groups[0].last-groups[0].first+1), th.Muted)
			}
		}
		name, bar, value := th.Muted, th.CPU, th.Text
		if hot >= g.first && hot <= g.last {
			name, bar, value = th.Hot.With(chart.Bold), th.Hot, th.Bright
		}
		c.Right(x+label, y, g.label(), name)
		chart.Bar(c.Sub(x+label+2, y, w-label-15, 1), g.rate/full, bar, th)
		m.drawAligned(c, x+w-4, y, g.rate/u.Scale, value)
	}
}

// drawAligned ends a number before x so that decimal points stand under each
// other.
func (m *model) drawAligned(c *chart.Canvas, x, y int, v float64, st chart.Style) {
	s := format.Table(v)
	if v == 0 {
		st = m.th.Muted
	}
	c.Text(x-3-len(wholePart(s)), y, s, st)
}

func groupCPUs(rates []float64, room int) []cpuGroup {
	size := max((len(rates)+room-1)/max(room, 1), 1)
	var out []cpuGroup
	first := 0
	for g := range slices.Chunk(rates, size) {
		out = append(out, cpuGroup{first, first + len(g) - 1, slices.Max(g)})
		first += len(g)
	}
	return out
}

func (m *model) drawCPUSummary(c *chart.Canvas, rates []float64, u format.Unit) {
	th := m.th
	sum := 0.0
	for _, v := range rates {
		sum += v
	}
	mean := sum / float64(len(rates))
	gap := 5
	if c.W < 90 {
		gap = 2
	}
	x := c.Text(3, 0, "hits "+u.Name+" a CPU", th.Muted)
	x = c.Text(x+gap, 0, "mean ", th.Muted)
	x = c.Text(x, 0, format.Table(mean/u.Scale), th.Bright)
	if top, hot := chart.Hottest(rates); hot >= 0 {
		x = c.Text(x+gap, 0, "hottest ", th.Muted)
		x = c.Text(x, 0, "cpu "+itoa(hot), th.Hot.With(chart.Bold))
		if rate := " " + format.Table(top/u.Scale); x+len(rate) < c.W {
			x = c.Text(x, 0, rate, th.Text)
		}
		if times := ", " + strconv.FormatFloat(top/mean, 'f', 1, 64) + th.Times + " the mean"; x+chart.Width(times) < c.W {
			x = c.Text(x, 0, times, th.Text)
		}
	}
	if sum == 0 || x+gap+26 > c.W {
		return
	}
	x = c.Text(x+gap, 0, "half of it on ", th.Muted)
	x = c.Text(x, 0, itoa(half(rates, sum)), th.Bright)
	c.Text(x, 0, " of "+format.Things(len(rates), "CPU"), th.Muted)
}

// half is the least number of CPUs that carry half of all hits.
func half(rates []float64, sum float64) int {
	sorted := slices.Sorted(slices.Values(rates))
	n, have := 0, 0.0
	for _, v := range slices.Backward(sorted) {
		if have >= sum/2 {
			break
		}
		have += v
		n++
	}
	return n
}
