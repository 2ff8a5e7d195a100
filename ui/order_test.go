package ui

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"uprobetop/probes"
)

func (s *screen) order() string {
	var names []string
	for _, r := range s.rows {
		names = append(names, r.name)
	}
	return strings.Join(names, " ")
}

func (s *screen) heads() string {
	for _, line := range strings.Split(s.text(), "\n") {
		if strings.Contains(line, "FUNCTION") {
			return line
		}
	}
	return ""
}

var fiveLoads = []load{
	{"malloc", probes.Entry, 1000, nil, probes.Attached, "", -1},
	{"buf_page_get_gen", probes.Return, 10, [][3]float64{{1, 900, 1}}, probes.Attached, "", -1},
	{"row_search_mvcc", probes.Return, 500, [][3]float64{{1, 90, 1}}, probes.Attached, "", 2},
	{"free", probes.Entry, 2000, nil, probes.Attached, "", -1},
	{"getaddrinfo", probes.Return, 0, nil, probes.Failed, "no", -1},
}

func TestEveryColumnSorts(t *testing.T) {
	s := newScreen(t, 200, 40, &fakeSource{snap: snapshotAt(0, 4, fiveLoads)}, Options{})
	s.runFor(20, 4, fiveLoads)
	for title, want := range map[string]string{
		"FUNCTION": "buf_page_get_gen free getaddrinfo malloc row_search_mvcc",
		"KIND":     "malloc free buf_page_get_gen row_search_mvcc getaddrinfo",
		"HITS":     "free malloc row_search_mvcc buf_page_get_gen getaddrinfo",
		"LAST 30s": "free malloc row_search_mvcc buf_page_get_gen getaddrinfo",
		"LOAD":     "row_search_mvcc buf_page_get_gen free malloc getaddrinfo",
		"PER CPU":  "row_search_mvcc malloc free buf_page_get_gen getaddrinfo",
		"P50":      "buf_page_get_gen row_search_mvcc free malloc getaddrinfo",
		"P99":      "buf_page_get_gen row_search_mvcc free malloc getaddrinfo",
		"MAX":      "buf_page_get_gen row_search_mvcc free malloc getaddrinfo",
		"MISSED":   "buf_page_get_gen row_search_mvcc free malloc getaddrinfo",
	} {
		s.send(tea.WindowSizeMsg{Width: 200, Height: 40})
		for i := 0; s.sortColumn().title != title; i++ {
			if i > 20 {
				t.Fatalf("> does not come to %s", title)
			}
			s.press(">")
		}
		got := s.order()
		if got != want && title != "PER CPU" {
			t.Errorf("by %s: %s", title, got)
		}
		if title == "PER CPU" && !strings.HasPrefix(got, "row_search_mvcc") {
			t.Errorf("by %s: %s", title, got)
		}
		if title == "FUNCTION" || title == "KIND" {
			continue
		}
		s.press("I")
		if got := s.order(); !strings.HasSuffix(got, "getaddrinfo") || strings.HasPrefix(got, strings.Fields(want)[0]) && title != "MISSED" {
			t.Errorf("by %s, inverted: %s", title, got)
		}
	}
}

func TestClickOnAHeaderSortsAndAgainInverts(t *testing.T) {
	s := newScreen(t, 120, 40, &fakeSource{snap: snapshotAt(0, 4, fiveLoads)}, Options{})
	s.runFor(20, 4, fiveLoads)
	s.View()
	click := func(title string) {
		t.Helper()
		x := len([]rune(s.heads()[:strings.Index(s.heads(), title)]))
		s.send(tea.MouseClickMsg{X: x, Y: 3, Button: tea.MouseLeft})
		s.View()
	}
	for _, tt := range []struct{ title, head, first, again string }{
		{"FUNCTION", "FUNCTION ▴", "buf_page_get_gen", "row_search_mvcc"},
		{"KIND", "KIND▴", "malloc", "buf_page_get_gen"},
		{"P99", "▾ P99 ", "buf_page_get_gen", "row_search_mvcc"},
		{"LAST 30s", "LAST 30s ▾", "free", "buf_page_get_gen"},
		{"HITS", "▾ HITS /s", "free", "buf_page_get_gen"},
	} {
		click(tt.title)
		if !strings.Contains(s.heads(), tt.head) || s.rows[0].name != tt.first {
			t.Errorf("sorted by %s: %s first, %s", tt.title, s.rows[0].name, s.heads())
		}
		click(tt.title)
		if s.rows[0].name != tt.again {
			t.Errorf("by %s again: %s", tt.title, s.order())
		}
	}
}

func TestColumnsAreChosenForTheRun(t *testing.T) {
	s := watching(t, 120, 40)
	titles := func() string {
		var out []string
		for _, p := range slices.Backward(s.places) {
			out = append(out, p.title)
		}
		return strings.Join(out, " ")
	}
	go2 := func(title string) {
		s.press("C")
		for range slices.IndexFunc(s.columns, func(c column) bool { return c.title == title }) {
			s.press("j")
		}
		s.press("space", "esc")
	}
	go2("PER CPU")
	go2("P90")
	go2("HITS")
	if want := "KIND HITS LOAD LAST 30s P50 P90 P99 MAX MISSED"; titles() != want {
		t.Errorf("shown are %s, want %s", titles(), want)
	}
	s.send(tea.WindowSizeMsg{Width: 160, Height: 40})
	if strings.Contains(titles(), "PER CPU") {
		t.Error("the choice does not hold on a wider screen")
	}
	go2("PER CPU")
	if !strings.Contains(titles(), "PER CPU") {
		t.Error("the column does not come back")
	}
	for i := range s.columns {
		s.chosen[s.columns[i].title] = true
	}
	for w := leastW; w < 240; w++ {
		s.send(tea.WindowSizeMsg{Width: w, Height: 24})
		if name := s.nameEnd - 5; name < leastName {
			t.Fatalf("%d wide, with every column wanted, a name has %d cells", w, name)
		}
		checkSize(t, fmt.Sprint("every column at ", w), s.View().Content, w, 24)
	}
}
