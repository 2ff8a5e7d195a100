package ui

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"uprobetop/probes"
)

var update = flag.Bool("update", false, "write the goldens anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got+"\n" != string(want) {
		t.Errorf("%s differs from its golden (go test ./ui -update writes it anew):\n%s", name, firstDifference(string(want), got))
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("line %d\nwant %s\ngot  %s", i+1, w[i], g[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w)-1)
}

func TestGoldens(t *testing.T) {
	for _, tt := range []struct {
		name string
		w, h int
		keys []string
	}{
		{"watch-120x40", 120, 40, nil},
		{"watch-100x30", 100, 30, []string{"right", "right", "right"}},
		{"watch-80x24", 80, 24, nil},
		{"watch-60x12", 60, 12, []string{"esc"}},
		{"zoom-60x12", 60, 12, []string{"esc", "enter"}},
		{"zoom-120x40", 120, 40, []string{"enter"}},
		{"wide-200x60", 200, 60, []string{"esc"}},
		{"cpus-120x40", 120, 40, []string{"2"}},
		{"cpus-80x24", 80, 24, []string{"2"}},
		{"ledger-120x40", 120, 40, []string{"4"}},
		{"ledger-80x24", 80, 24, []string{"4"}},
		{"linear-120x40", 120, 40, []string{"y"}},
		{"entry-120x40", 120, 40, []string{"j", "j", "j"}},
		{"silent-120x40", 120, 40, []string{"G", "k"}},
		{"columns-120x40", 120, 40, []string{"C", "j", "j", "space"}},
		{"columns-60x12", 60, 12, []string{"C"}},
		{"by-name-120x40", 120, 40, []string{"<", "<", "<"}},
		{"failed-120x40", 120, 40, []string{"G"}},
		{"frozen-120x40", 120, 40, []string{"p"}},
		{"help-120x40", 120, 40, []string{"?"}},
		{"help-80x24", 80, 24, []string{"?", "w", "i", "n"}},
		{"help-end-80x24", 80, 24, []string{"?", "G"}},
		{"find-120x40", 120, 40, []string{"/", "m", "e", "m"}},
		{"find-80x24", 80, 24, []string{"/", "c"}},
		{"find-60x12", 60, 12, []string{"/", "m"}},
		{"help-60x12", 60, 12, []string{"?", "down", "down"}},
		{"cpus-60x12", 60, 12, []string{"esc", "enter", "tab"}},
		{"ledger-60x12", 60, 12, []string{"esc", "enter", "4"}},
		{"big-300x100", 300, 100, []string{"esc"}},
		{"too-small-44x9", 44, 9, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := watching(t, tt.w, tt.h)
			s.press(tt.keys...)
			golden(t, tt.name, s.text())
		})
	}
}

// TestGoldenSlowCalls has the view of single calls at every size, in both orders,
// and after a clear.
func TestGoldenSlowCalls(t *testing.T) {
	for _, tt := range []struct {
		name string
		w, h int
		keys []string
	}{
		{"slow-120x40", 120, 40, []string{"right", "right"}},
		{"slow-80x24", 80, 24, nil},
		{"slow-60x12", 60, 12, nil},
		{"slow-200x50", 200, 50, nil},
		{"slowest-120x40", 120, 40, []string{"y"}},
		{"slow-entry-120x40", 120, 40, []string{"j", "j", "j"}},
		{"cleared-120x40", 120, 40, []string{"c", "4"}},
	} {
		s := looking(t, tt.w, tt.h)
		s.press(tt.keys...)
		s.publish(mysqlLoad, func(sn *probes.Snapshot) { sn.HeldBack, sn.Lost.Calls = 214, 12 })
		golden(t, tt.name, s.text())
	}
}

func TestGoldenPlacing(t *testing.T) {
	s, _ := placingFree(t, 120, 40)
	s.placed(2, 4)
	golden(t, "placing-120x40", s.text())
	s.press("esc")
	golden(t, "given-up-120x40", s.text())
}

func TestGoldenGone(t *testing.T) {
	s := goneScreen(t, 120, func() (string, bool) { return "mysqld 3011", true })
	s.run(s.askSuccessor())
	golden(t, "gone-120x24", s.text())
}

func TestGoldenScene(t *testing.T) {
	opts := Options{Recorded: true, Banner: "a recording of the demo: probing needs root", Scenes: []Scene{{"calm"}, {"lock storm"}}}
	opts.SetScene = func(int) error { return nil }
	s := newScreen(t, 120, 40, &fakeSource{snap: snapshotAt(0, 4, twoLoads)}, opts)
	s.runFor(10, 4, twoLoads)
	s.press("S")
	golden(t, "recorded-120x40", s.text())
}

func TestGoldenNothingProbed(t *testing.T) {
	s := newScreen(t, 120, 40, &fakeSource{snap: snapshotAt(2, 64, nil)}, Options{})
	golden(t, "nothing-120x40", s.text())
}

func TestGoldenASCII(t *testing.T) {
	s := watching(t, 120, 40)
	s.look.ascii = true
	s.setTheme()
	s.send(tea.ColorProfileMsg{Profile: colorprofile.ASCII})
	got := s.text()
	golden(t, "ascii-120x40", got)
	for _, r := range got {
		if r > '~' {
			t.Fatalf("%q is not ASCII", r)
		}
	}
}

func TestGoldenAsks(t *testing.T) {
	s := watching(t, 120, 40)
	s.src.finding = probes.Finding{
		Verdict: probes.Asks,
		Reason:  "libc.so.6 is mapped by 212 processes: placing can stall every fork() on this host",
		Way:     "narrow it to one process with -p",
	}
	s.press("/", "m", "e", "m", "c", "p", "y", "tab")
	golden(t, "asks-120x40", s.text())
}

// TestGoldenColours fixes the escape codes of one row for every depth of colour.
func TestGoldenColours(t *testing.T) {
	var b strings.Builder
	for _, p := range []colorprofile.Profile{
		colorprofile.TrueColor, colorprofile.ANSI256, colorprofile.ANSI, colorprofile.ASCII,
	} {
		s := watching(t, 120, 40)
		s.send(tea.ColorProfileMsg{Profile: p})
		lines := strings.Split(s.View().Content, "\n")
		fmt.Fprintf(&b, "%v\n", p)
		for _, i := range []int{0, 4, 5, 9} {
			fmt.Fprintf(&b, "%q\n", lines[i])
		}
	}
	golden(t, "colours", b.String())
}

// TestGoldenWhy has the explanation of a silent row at every size.
func TestGoldenWhy(t *testing.T) {
	for _, tt := range []struct {
		name string
		w, h int
		why  func(*probes.Stats) probes.Explanation
	}{
		{"why-120x40", 120, 40, uncalledAnswer},
		{"why-80x24", 80, 24, uncalledAnswer},
		{"why-60x12", 60, 12, uncalledAnswer},
		{"why-shared-120x40", 120, 40, sharedAnswer},
		{"why-recorded-120x40", 120, 40, nil},
	} {
		s := watching(t, tt.w, tt.h)
		s.opts.Why = tt.why
		s.opts.Recorded = tt.why == nil
		s.press("esc", "G", "k", "w")
		golden(t, tt.name, s.text())
	}
}
