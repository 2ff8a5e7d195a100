package ui

import (
	"errors"
	"strings"
	"testing"
	"time"

	"uprobetop/probes"
	"uprobetop/probes/hist"
)

// addThreads gives the watched probes of a snapshot their rows, since 60 s.
func (f *fakeSource) addThreads(s *probes.Snapshot) {
	for i := range s.Probes {
		if st := &s.Probes[i]; f.watched[st.ID] && st.State == probes.Attached {
			st.Threads = threadsOf(st, max(s.Elapsed-60*time.Second, 0))
			st.Threads.Counted = s.Elapsed - st.Threads.Since
		}
	}
}

// threadsOf is 212 connections, of which the first have more hits, in three
// processes, and three threads that are slow.
func threadsOf(st *probes.Stats, since time.Duration) *probes.Threads {
	t := &probes.Threads{Since: since}
	if st.Hits == 0 {
		return t
	}
	for i := range 215 {
		row := probes.ThreadShare{PID: 2841 + i%3, TID: 2917 + 3*i, Threads: 1, Comm: "connection"}
		row.Hits = st.Hits / 40 / uint64(i+1)
		median := 640 * uint64(100+i%9) / 100
		if i >= 11 && i < 14 {
			row.Comm, median = "ib_io_rd-"+itoa(i-10), 70000
		}
		if st.Kind == probes.Return {
			at := func(ns uint64) int { return hist.Index(ns) / hist.CoarseWidth }
			row.Returned = row.Hits
			slow := row.Hits / 50
			row.Latency = hist.Coarse{{Index: at(median), Count: row.Hits - slow}, {Index: at(9 * median), Count: slow}}
			row.Sum, row.Max = row.Hits*median, 9*median+uint64(i)
		}
		t.Rows = append(t.Rows, row)
	}
	t.Others.Hits = st.Hits / 500
	return t
}

// onThreads is a screen on the view of threads.
func onThreads(t *testing.T, w, h int, keys ...string) *screen {
	t.Helper()
	s := watching(t, w, h)
	s.press(append([]string{"esc"}, keys...)...)
	s.press("5")
	s.runFor(10, 64, mysqlLoad)
	return s
}

func TestGoldenThreads(t *testing.T) {
	for _, tt := range []struct {
		name      string
		w, h      int
		rows, now []string // pressed before the view is there, and on it
	}{
		{"threads-120x40", 120, 40, nil, nil},
		{"threads-80x24", 80, 24, nil, nil},
		{"threads-60x12", 60, 12, nil, nil},
		{"threads-200x60", 200, 60, nil, nil},
		{"threads-entry-120x40", 120, 40, []string{"j", "j", "j"}, []string{"right", "right", "right"}},
		{"processes-120x40", 120, 40, nil, []string{"y"}},
		{"processes-60x12", 60, 12, nil, []string{"y"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := onThreads(t, tt.w, tt.h, tt.rows...)
			s.View()
			s.press(tt.now...)
			golden(t, tt.name, s.text())
		})
	}
}

// A probe is watched while somebody looks at its threads, and for a while after.
func TestThreadsAreWatchedOnceSomebodyLooks(t *testing.T) {
	s := watching(t, 120, 40)
	if len(s.src.watched) != 0 {
		t.Fatalf("nobody looked, and %v are watched", s.src.watched)
	}
	s.press("5")
	s.runFor(1, 64, mysqlLoad)
	if !s.src.watched[1] || len(s.src.watched) != 1 {
		t.Fatalf("watched are %v", s.src.watched)
	}
	s.press("1")
	s.runFor(9, 64, mysqlLoad)
	if !s.src.watched[1] {
		t.Error("it is not watched any more 9 s after the last look")
	}
	s.press("5")
	s.runFor(1, 64, mysqlLoad)
	s.press("j")
	s.runFor(1, 64, mysqlLoad)
	s.press("1")
	s.runFor(5, 64, mysqlLoad)
	if !s.src.watched[1] || !s.src.watched[5] {
		t.Errorf("watched are %v", s.src.watched)
	}
	s.runFor(20, 64, mysqlLoad)
	if s.src.watched[1] || s.src.watched[5] || len(s.model.watched) != 0 {
		t.Errorf("watched are %v, and remembered %v", s.src.watched, s.model.watched)
	}
}

func TestWatchThatFailsIsTold(t *testing.T) {
	s := watching(t, 120, 40)
	s.press("esc")
	s.src.err = errors.New("there is no room")
	s.press("5")
	s.runFor(3, 64, mysqlLoad)
	if !strings.Contains(s.text(), "the threads of buf_page_get_gen cannot be told apart: there is no room") {
		t.Errorf("the screen says nothing:\n%s", s.text())
	}
}

// Why there are no rows is said.
func TestNoThreads(t *testing.T) {
	for want, s := range map[string]*screen{
		"It is being watched from now on.": func() *screen {
			s := watching(t, 120, 40)
			s.press("5")
			return s
		}(),
		"It was not counted by thread when this was recorded.": func() *screen {
			s := newScreen(t, 120, 40, &fakeSource{snap: snapshotAt(5, 4, mysqlLoad)}, Options{Recorded: true})
			s.runFor(5, 4, mysqlLoad)
			s.press("5")
			return s
		}(),
	} {
		if !strings.Contains(s.text(), want) {
			t.Errorf("it does not say %q:\n%s", want, s.text())
		}
	}
}

// The list moves as far as it is long, and who is slow is told of processes as well.
func TestThreadsMove(t *testing.T) {
	s := onThreads(t, 120, 40)
	for range 300 {
		s.press("right")
		s.View()
	}
	if text := s.text(); !strings.Contains(text, "3559   connection") || strings.Contains(text, "2917   connection") {
		t.Errorf("the last row is not on the screen:\n%s", text)
	}
	for i := range s.src.snap.Probes {
		if th := s.src.snap.Probes[i].Threads; th != nil {
			for k := range th.Rows {
				th.Rows[k].PID = 1 + k // each a process, as much as a thread
			}
			th.Rows = th.Rows[:100]
		}
	}
	s.press("y")
	s.View()
	text := s.text()
	for _, want := range []string{"3 processes are slow at their median: ib_io_rd-1, -2, -3 at", "… ", " 80 more processes, "} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
}

func TestShareNames(t *testing.T) {
	for want, names := range map[string][]string{
		"io-1, -3, -4":                       {"io-1", "io-3", "io-4"},
		"a":                                  {"a"},
		"io-1 and main":                      {"io-1", "main"},
		"a-1 and a-longer-one":               {"a-1", "a-longer-one"},
		"a, b, c, d and 2 more":              {"a", "b", "c", "d", "e", "f"},
		"w-1, -2, -3, -4, -5, -6, -7, -8, …": {"w-1", "w-2", "w-3", "w-4", "w-5", "w-6", "w-7", "w-8", "w-9"},
	} {
		if got := shareNames(names); got != want {
			t.Errorf("%v are %q, want %q", names, got, want)
		}
	}
}

// All threads outside of the PID namespace are one row, of no thread.
func TestThreadsOutside(t *testing.T) {
	s := onThreads(t, 120, 40)
	s.publish(mysqlLoad, func(sn *probes.Snapshot) {
		th := threadsOf(&sn.Probes[0], 0)
		r := &th.Rows[0]
		r.PID, r.TID, r.Threads, r.Comm = 0, 0, 0, ""
		sn.Probes[0].Threads = th
	})
	for range 2 {
		if !strings.Contains(s.text(), " –   outside ") {
			t.Errorf("it says\n%s", s.text())
		}
		s.press("y")
	}
}

// Before a tick in which all the time was watched it is not known who hit it.
func TestThreadsBeforeTheFirstTick(t *testing.T) {
	s := onThreads(t, 120, 40)
	for _, tt := range []struct {
		ticks time.Duration // ago watching began, twice
		want  string
	}{{1, "It is being watched from now on."}, {2, "No thread has hit it since watching began."}} {
		s.publish(mysqlLoad, func(sn *probes.Snapshot) {
			sn.Probes[0].Threads = &probes.Threads{Since: sn.Elapsed - tt.ticks*sn.Interval/2}
		})
		if !strings.Contains(s.text(), tt.want) {
			t.Errorf("it does not say %q:\n%s", tt.want, s.text())
		}
	}
}
