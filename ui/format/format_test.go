package format

import (
	"strings"
	"testing"
	"time"
)

func TestTableNumbers(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.001: "<0.01", 0.64: "0.64", 5.21: "5.21", 9.996: "10.0", 18.4: "18.4", 99.96: "100",
		214: "214", 1834: "1,830", 2410: "2,410", 999.7: "1,000", 123456: "123,000",
	} {
		if got := Table(v); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
}

func TestFreeNumbers(t *testing.T) {
	for ns, want := range map[float64]string{
		64: "64ns", 95.23: "95.2ns", 640: "640ns", 999.4: "999ns", 999.5: "1.00µs", 1120: "1.12µs", 96400: "96.4µs", 999499: "999µs", 999500: "1.00ms", 4.21e6: "4.21ms", 2.1e9: "2.10s",
	} {
		if got := Latency(ns); got != want {
			t.Errorf("%v ns is %q, want %q", ns, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		41 * time.Second: "41s", 252 * time.Second: "4m 12s", 3*time.Hour + 5*time.Minute: "3h 5m",
	} {
		if got := Span(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

func TestList(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  string
	}{
		{nil, ""},
		{[]string{"a"}, "a"},
		{[]string{"a", "b"}, "a and b"},
		{[]string{"a", "b", "c"}, "a, b and c"},
		{[]string{"a", "b", "c", "d", "e", "f", "g"}, "a, b, c, d and 3 more"},
		{[]string{strings.Repeat("x", 60), strings.Repeat("y", 600)}, strings.Repeat("x", 60) + " and " + strings.Repeat("y", 59) + "…"},
	} {
		if got := List(c.names); got != c.want {
			t.Errorf("%v is %q, want %q", c.names, got, c.want)
		}
	}
}
