package ui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"uprobetop/probes"
)

// stuck has n calls of the first probe hang, the first for 35 s, and one of the
// fourth.
func stuck(n int) func(s *probes.Snapshot) {
	return func(s *probes.Snapshot) {
		s.Inside = &probes.Inside{At: s.At, Total: uint64(n + 1)}
		add := func(id probes.ID, i int, age time.Duration) {
			c := probes.Call{
				Probe: id, PID: 2841, TID: 2901 + i, Comm: [...]string{"ib_io_rd-3", "connection"}[i%2], At: s.At,
				Start: uint64(1 + i), Latency: age, Args: [3]uint64{0x7f1ab0012340, 16, 2},
			}
			if i%3 != 2 {
				c.Thread = &probes.ThreadStats{OnCPU: age / 40, Waiting: age / 9, Voluntary: 3, Involuntary: uint64(i % 2), MinorFaults: uint64(i % 2 * 12)}
			}
			s.Inside.Calls = append(s.Inside.Calls, c)
		}
		for i := range n {
			add(1, i, 35200*time.Millisecond/time.Duration(i*i*i+1))
		}
		add(4, 0, 800*time.Nanosecond)
		s.Probes[0].InFlight, s.Probes[0].Oldest = int64(n), 35200*time.Millisecond
		s.Probes[3].InFlight, s.Probes[3].Oldest = 1, 800
	}
}

func doing(_, tid int) string {
	return [...]string{"S futex_wait_queue", "D folio_wait_bit_common", "R"}[tid%3]
}

func insideScreen(t *testing.T, w, h int) *screen {
	t.Helper()
	s := watching(t, w, h)
	s.opts.Doing = doing
	s.press("esc", "6")
	return s
}

func TestGoldenInside(t *testing.T) {
	for _, tt := range []struct {
		name string
		w, h int
		keys []string
		n    int
	}{
		{"inside-120x40", 120, 40, []string{"right"}, 12},
		{"inside-80x24", 80, 24, nil, 40},
		{"inside-60x12", 60, 12, nil, 4},
		{"inside-200x50", 200, 50, nil, 4},
		{"inside-nobody-120x40", 120, 40, nil, 0},
		{"inside-latency-120x40", 120, 40, []string{"1"}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := insideScreen(t, tt.w, tt.h)
			change := stuck(tt.n)
			if tt.n == 0 {
				change = func(s *probes.Snapshot) { s.Probes[0].InFlight = 0 }
			}
			s.publish(mysqlLoad, change)
			s.View()
			s.press(tt.keys...)
			golden(t, tt.name, s.text())
		})
	}
}

// While a call hangs the largest latency is at least its age, wherever it is
// written; once it has returned it is what it is.
func TestLargestGrows(t *testing.T) {
	s := watching(t, 120, 40)
	s.publish(mysqlLoad, stuck(3))
	lines := strings.Split(s.text(), "\n")
	if n := strings.Count(s.text(), "≥35.2s"); n < 2 { // statistics and the flag of the chart
		t.Errorf("it says so %d times:\n%s", n, s.text())
	}
	row := ""
	for _, l := range lines {
		if strings.Contains(l, "buf_page_get_gen") && strings.Contains(l, "▸") {
			row = l
		}
		if strings.Contains(l, "row_search_mvcc") && strings.Contains(l, "≥") {
			t.Errorf("a young call makes a maximum grow: %s", l)
		}
	}
	if !strings.Contains(row, "≥35.2s") {
		t.Errorf("the table does not: %s", row)
	}
	s.publish(mysqlLoad, func(*probes.Snapshot) {})
	if strings.Contains(s.text(), "≥") {
		t.Errorf("it has returned:\n%s", s.text())
	}
}

// The selected call stays selected while others return.
func TestInsideKeepsSelection(t *testing.T) {
	s := insideScreen(t, 120, 40)
	s.publish(mysqlLoad, stuck(12))
	s.View()
	s.press("right", "right", "right")
	selected := func() int {
		calls := s.shown.Inside.Of(s.selected.shown.ID)
		return calls[s.charts.inside.selected(calls)].TID
	}
	if selected() != 2904 {
		t.Fatalf("thread %d is selected", selected())
	}
	s.publish(mysqlLoad, func(sn *probes.Snapshot) {
		stuck(12)(sn)
		sn.Inside.Calls = sn.Inside.Calls[2:]
	})
	if selected() != 2904 {
		t.Errorf("thread %d is selected", selected())
	}
	s.press("left", "left", "left", "left")
	if selected() != 2903 {
		t.Errorf("thread %d is selected", selected())
	}
}

// What a thread calls itself reaches no terminal as it is.
func TestInsideIsClean(t *testing.T) {
	s := insideScreen(t, 120, 40)
	s.publish(mysqlLoad, func(sn *probes.Snapshot) {
		stuck(2)(sn)
		sn.Inside.Calls[0].Comm = "a\x1b[2Jb"
	})
	if got := s.text(); strings.Contains(got, "\x1b") {
		t.Errorf("%q", got)
	}
}

// What a function takes itself is shown where there is room, once it is less than all.
func TestSelfIsShown(t *testing.T) {
	s := watching(t, 300, 80)
	if strings.Contains(s.text(), "self") || !strings.Contains(s.text(), "SELF") {
		t.Errorf("self time before there is any:\n%s", s.text())
	}
	s.publish(mysqlLoad, func(sn *probes.Snapshot) {
		st := &sn.Probes[0]
		st.Callees = time.Duration(st.Latency.Sum / 2)
	})
	want := fmt.Sprintf("%.0f", s.rows[0].num.mean) // the mean of all, before
	if got := s.text(); !strings.Contains(got, "self") {
		t.Errorf("no self time, the mean is %s:\n%s", want, got)
	}
	for _, r := range s.rows {
		if r.shown != nil && r.shown.Callees > 0 && (r.num.self >= r.num.mean || r.num.self <= 0) {
			t.Errorf("self %v, mean %v", r.num.self, r.num.mean)
		}
	}
}

// Of a container the threads outside are not listed: that is said where their calls
// would stand.
func TestInsideOfContainer(t *testing.T) {
	s := insideScreen(t, 120, 40)
	s.publish(mysqlLoad, func(sn *probes.Snapshot) { sn.Container, sn.Probes[0].InFlight = true, 2 })
	if !strings.Contains(s.text(), "their threads are outside of this PID namespace") {
		t.Errorf("of none that is listed it says\n%s", s.text())
	}
	s.publish(mysqlLoad, func(sn *probes.Snapshot) {
		stuck(3)(sn)
		sn.Container, sn.Probes[0].InFlight = true, 5
		sn.Inside.Calls[0].PID, sn.Inside.Calls[0].TID = 0, 0
	})
	if !strings.Contains(s.text(), "3 shown, the oldest first, and 2 not seen from this PID namespace") || !strings.Contains(s.text(), "35.2s       –  ib_io") {
		t.Errorf("of some it says\n%s", s.text())
	}
}

// Session cookies do not tell who is inside, which is not that nobody is.
func TestInsideOfSession(t *testing.T) {
	s := insideScreen(t, 120, 40)
	s.publish(mysqlLoad, func(sn *probes.Snapshot) {
		sn.InFlight = probes.SessionStore
		p := &sn.Probes[0]
		p.NoFrames, p.InFlight, p.Unreturned = true, 0, 3
	})
	got := s.text()
	if !strings.Contains(got, "Session cookies do not tell who is inside: --inflight task does.") || !strings.Contains(got, " 3 unreturned ") || strings.Contains(got, "Nobody") {
		t.Errorf("it says\n%s", got)
	}
}

// Where it is not known what the threads did, no bar says that they were on a CPU, and
// on a small screen the number of those inside is told.
func TestInsideUnknown(t *testing.T) {
	s := insideScreen(t, 60, 12)
	s.publish(mysqlLoad, func(sn *probes.Snapshot) {
		stuck(20)(sn)
		for i := range sn.Inside.Calls {
			sn.Inside.Calls[i].Thread = nil
		}
	})
	got := s.text()
	if strings.Contains(got, "━") || !strings.Contains(got, "····") || !strings.Contains(got, "20 in flight") {
		t.Errorf("it reads\n%s", got)
	}
	s = insideScreen(t, 120, 40)
	s.publish(mysqlLoad, func(sn *probes.Snapshot) {
		stuck(1)(sn)
		sn.Inside.Calls[0].Thread = nil
	})
	if got := s.text(); !strings.Contains(got, "what its thread did meanwhile is not known") {
		t.Errorf("it reads\n%s", got)
	}
}
