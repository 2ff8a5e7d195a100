package ui

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestTableNumbers(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.001: "<0.01", 0.64: "0.64", 5.21: "5.21", 9.996: "10.0", 18.4: "18.4", 99.96: "100",
		214: "214", 1834: "1,830", 2410: "2,410", 999.7: "1,000", 123456: "123,000",
	} {
		if got := tableNumber(v); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
}

func TestFreeNumbers(t *testing.T) {
	for ns, want := range map[float64]string{
		64: "64ns", 95.23: "95.2ns", 640: "640ns", 999.4: "999ns", 999.5: "1.00µs", 1120: "1.12µs", 96400: "96.4µs", 999499: "999µs", 999500: "1.00ms", 4.21e6: "4.21ms", 2.1e9: "2.10s",
	} {
		if got := latency(ns); got != want {
			t.Errorf("%v ns is %q, want %q", ns, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		41 * time.Second: "41s", 252 * time.Second: "4m 12s", 3*time.Hour + 5*time.Minute: "3h 5m",
	} {
		if got := span(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

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
		u.update(tt.values, timeUnits, tt.room, time.Second)
		got := ""
		if u.at < len(timeUnits) {
			got = timeUnits[u.at].name
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
			u.update([]float64{v}, timeUnits, 4, at)
		}
		return timeUnits[u.at].name
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
		tr.add(second, float64(second*second))
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
