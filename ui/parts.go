package ui

import (
	"slices"
	"strconv"
	"time"

	"uprobetop/probes"
	"uprobetop/ui/chart"
	"uprobetop/ui/format"
)

// callPart is a part of a call's time.
type callPart struct {
	name  string
	full  string // as a sentence has it
	d     time.Duration
	glyph rune
	style chart.Style
}

func (m *model) callParts(on, waiting, blocked time.Duration) [3]callPart {
	th := m.th
	return [3]callPart{
		{"on CPU", "on CPU", on, th.Bar, th.CPU},
		{"waiting", "waiting for a CPU", waiting, th.Waits, th.Hot},
		{"blocked", "blocked", blocked, th.Blocks, th.HMax},
	}
}

// partsOf divides a call's time.
func partsOf(call *probes.Call) (on, waiting, blocked time.Duration) {
	t := call.Thread
	waiting = min(max(t.Waiting, 0), call.Latency)
	on = min(t.OnCPU, call.Latency-waiting)
	return on, waiting, call.Latency - waiting - on
}

func (m *model) drawCallBar(c *chart.Canvas, call *probes.Call, full float64) {
	th := m.th
	if call.Thread == nil {
		// A full line would say that it was on a CPU.
		chart.Parts(c, []chart.Part{{Share: float64(call.Latency) / full, Glyph: th.Dot, Style: th.Muted}}, th)
		return
	}
	var parts []chart.Part
	for _, p := range m.callParts(partsOf(call)) {
		parts = append(parts, chart.Part{Share: float64(p.d) / full, Glyph: p.glyph, Style: p.style})
	}
	chart.Parts(c, parts, th)
}

// drawAboutCall says in one line what is known of the selected call: as much of
// it as there is room for, the weightiest first. It has returned, or is in flight.
func (m *model) drawAboutCall(c *chart.Canvas, call *probes.Call, returned bool) {
	th := m.th
	x := 3
	say := func(text string, st chart.Style) bool {
		fits := x+chart.Width(text) < c.W
		if fits {
			x = c.Text(x, 0, text, st) + 3
		}
		return fits
	}
	if call.Thread != nil {
		say(m.callSentence(call), th.Bright)
		say("args "+register(call.Args[0])+" "+register(call.Args[1])+" "+register(call.Args[2]), th.Text)
	}
	if returned {
		say("returned "+register(call.Return), th.Text)
	}
	t := call.Thread
	if t == nil {
		if !say("it began before it was watched: what its thread did meanwhile is not known", th.Muted) {
			say("it began before it was watched", th.Muted)
		}
		return
	}
	switches := format.Things(int(t.Voluntary+t.Involuntary), "switch")
	if t.Voluntary+t.Involuntary != 1 {
		switches = format.Count(t.Voluntary+t.Involuntary) + " switches"
	}
	if t.Involuntary > 0 {
		switches += ", " + format.Count(t.Involuntary) + " forced"
	}
	say(switches, th.Muted)
	faults := format.Things(int(t.MinorFaults+t.MajorFaults), "fault")
	if t.MajorFaults > 0 {
		faults += ", " + format.Count(t.MajorFaults) + " from disk"
	}
	say(faults, th.Muted)
}

// callSentence says where most of a call's time went.
func (m *model) callSentence(call *probes.Call) string {
	parts := m.callParts(partsOf(call))
	most := slices.MaxFunc(parts[:], func(a, b callPart) int { return int(a.d - b.d) })
	s := most.full + " " + ofWhole(most.d, call.Latency)
	if call.Vague() && most.name != "waiting" {
		s += ", give or take " + format.Latency(float64(call.Thread.OnCPUError))
	}
	if 2*call.Callees > call.Latency {
		s += ", " + ofWhole(call.Callees, call.Latency) + " in probed functions that it called"
	}
	return s
}

// ofWhole is a part and its whole with one unit: 5.9 of 6.1ms.
func ofWhole(d, whole time.Duration) string {
	for _, u := range slices.Backward(format.TimeUnits) {
		if v := float64(whole) / u.Scale; v >= 1 || u.Scale == 1 {
			number := func(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
			if v >= 100 || u.Scale == 1 {
				number = func(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) }
			}
			return number(float64(d)/u.Scale) + " of " + number(v) + u.Name
		}
	}
	return ""
}

// register is the content of a register as it is most likely meant: a small
// number as such, what else as bits.
func register(v uint64) string {
	switch n := int64(v); {
	case n >= -4095 && n < 10:
		return strconv.FormatInt(n, 10)
	default:
		return "0x" + strconv.FormatUint(v, 16)
	}
}
