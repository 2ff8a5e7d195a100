package ui

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"uprobetop/probes"
	"uprobetop/ui/format"
)

func TestColumnUnitIsTheLargestThatShowsTheSmallest(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		room   int
		want   string
	}{
		{[]float64{640, 5210, 118e3}, 4, "µs"},
		{[]float64{96400, 212e3, 2.41e6}, 5, "µs"},
		{[]float64{4.21e6, 18.3e6, 41.2e6}, 4, "ms"},
		{[]float64{84}, 4, "ns"},
		{[]float64{0, 640}, 4, "µs"},
		{[]float64{84, 2.1e9}, 4, ""},
	} {
		var u columnUnit
		u.update(tt.values, format.TimeUnits, tt.room, time.Second)
		got := ""
		if u.at < len(format.TimeUnits) {
			got = format.TimeUnits[u.at].Name
		}
		if got != tt.want {
			t.Errorf("%v is in %q, want %q", tt.values, got, tt.want)
		}
	}
}

func TestColumnUnitIsPatient(t *testing.T) {
	var u columnUnit
	at := time.Second
	step := func(v float64, d time.Duration) string {
		for end := at + d; at < end; at += 250 * time.Millisecond {
			u.update([]float64{v}, format.TimeUnits, 4, at)
		}
		return format.TimeUnits[u.at].Name
	}
	if got := step(500e3, time.Second); got != "ms" {
		t.Fatalf("500 µs begins in %s", got)
	}
	if got := step(500, 1500*time.Millisecond); got != "ms" {
		t.Errorf("it changed to %s within 2 s", got)
	}
	if got := step(500, time.Second); got != "µs" {
		t.Errorf("after 2 s it is still in %s", got)
	}
	if got := step(500e3, 20*time.Second); got != "µs" {
		t.Errorf("it went up to %s within 30 s", got)
	}
	if got := step(500e3, 11*time.Second); got != "ms" {
		t.Errorf("after 30 s it is still in %s", got)
	}
}

// While a column holds on to its unit, a latency that is too small for it brings
// its own: nothing of what was measured is lost. Small values that come and go
// keep the column from ever changing.
func TestNoLatencyIsBelowItsUnit(t *testing.T) {
	loads := func(low float64) []load {
		return []load{
			{"buf_page_get_gen", probes.Return, 1000, [][3]float64{{1, 50e6, 0.1}}, probes.Attached, "", -1},
			{"row_search_mvcc", probes.Return, 1000, [][3]float64{{1, low, 0.1}}, probes.Attached, "", -1},
		}
	}
	for _, size := range [][2]int{{60, 12}, {80, 24}, {120, 40}, {200, 60}} {
		s := newScreen(t, size[0], size[1], &fakeSource{snap: snapshotAt(0, 4, loads(20e6))}, Options{})
		s.runFor(3, 4, loads(20e6))
		s.press("esc")
		if !strings.Contains(s.text(), "P99 ms") {
			t.Fatalf("it does not begin in ms:\n%s", s.text())
		}
		for i := range 24 {
			low := [...]float64{700, 20e6, 20e6}[i%3]
			s.publish(loads(low), nil)
			s.clear()
			s.publish(loads(low), nil)
			text := s.text()
			if got := s.rowText("row_search_mvcc"); low == 700 && (strings.Contains(got, "<0.01") || !regexp.MustCompile(`[78]\d\dns`).MatchString(got)) || !strings.Contains(text, "P99 ms") {
				t.Fatalf("%v, step %d: the row reads %q", size, i, got)
			}
		}
	}
}

func TestShorten(t *testing.T) {
	const long = "mysql::storage::Table<std::pair<int, Row> >::insert(Row const&, unsigned long)"
	for _, tt := range []struct {
		w    int
		want string
	}{
		{100, long},
		{70, "mysql::storage::Table<std::pair<int, Row> >::insert"},
		{40, "mysql::storage::Table<…>::insert"},
		{28, "storage::Table<…>::insert"},
		{18, "Table<…>::insert"},
		{6, "insert"},
		{4, "ins…"},
	} {
		if got := shorten(long, tt.w, '…'); got != tt.want {
			t.Errorf("in %d cells %q, want %q", tt.w, got, tt.want)
		}
	}
	if got := shorten("(anonymous namespace)::run(int)", 28, '…'); got != "(anonymous namespace)::run" {
		t.Errorf("%q", got)
	}
	if got := shorten("Set::operator()(int) const", 20, '…'); got != "Set::operator()" {
		t.Errorf("%q", got)
	}
}

func TestTrailCellsNeverChangeOnceTheyArePast(t *testing.T) {
	var tr trail
	for second := range 40 {
		tr.add(second-1, second, float64(second*second))
	}
	for _, n := range []int{8, 12, 14} {
		old := tr.cells(38, n)
		now := tr.cells(39, n)
		moved := 39*n/30 - 38*n/30
		for i := moved; i < n-1; i++ {
			if math.Abs(old[i]-now[i-moved]) > 1e-9 && i != n-1 {
				t.Errorf("%d cells: cell %d was %v and is %v", n, i, old[i], now[i-moved])
			}
		}
	}
}

// A tick that comes late is neither a hole nor a spike; where the row was not probed,
// there is a hole.
func TestTrailOfALateTick(t *testing.T) {
	var tr trail
	tr.add(4, 5, 100)
	tr.add(5, 6, 100)
	tr.add(6, 10, 100) // nothing was seen for three seconds
	tr.add(12, 13, 50) // it was not probed up to 12
	want := []float64{100, 100, 100, 100, 100, 100, math.NaN(), math.NaN(), 50}
	if fmt.Sprint(tr.rates) != fmt.Sprint(want) || tr.first != 5 {
		t.Errorf("from %d on %v, want %v", tr.first, tr.rates, want)
	}
}

func TestASCIIOnly(t *testing.T) {
	for env, want := range map[string]bool{
		"LANG=C.UTF-8": false, "LANG=de_DE.utf8": false, "LANG=C": true, "": true,
		"LC_ALL=C LANG=C.UTF-8": true, "LC_CTYPE=C.UTF-8 LANG=C": false, "TERM=linux LANG=C.UTF-8": true,
	} {
		get := func(name string) string {
			for _, kv := range strings.Fields(env) {
				if v, ok := strings.CutPrefix(kv, name+"="); ok {
					return v
				}
			}
			return ""
		}
		if got := asciiOnly(get); got != want {
			t.Errorf("%q: %v, want %v", env, got, want)
		}
	}
}
