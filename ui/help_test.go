package ui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// sizes at which the help is longer than the screen.
var smallSizes = [][2]int{{60, 12}, {80, 24}, {120, 24}}

func helpOf(t *testing.T, size [2]int) (*screen, *helper) {
	t.Helper()
	s := watching(t, size[0], size[1])
	s.press("esc", "?")
	return s, s.dialog.(*helper)
}

// Every line of the help can be reached, by each key that goes down, and the
// screen says that there is more until there is none.
func TestEveryLineOfTheHelpCanBeReached(t *testing.T) {
	for _, size := range smallSizes {
		for _, k := range []string{"j", "down", "ctrl+d", "pgdown", "wheel"} {
			s, h := helpOf(t, size)
			p := h.page(s.model)
			missing := map[string]bool{}
			for _, l := range p.lines {
				if l.right != "" {
					missing[l.right] = true
				}
			}
			for range p.lines {
				text := s.text()
				for right := range missing {
					if strings.Contains(text, right) {
						delete(missing, right)
					}
				}
				if more := strings.Contains(text, "▾ "+itoa(p.last()-h.top)+" more"); more != (h.top < p.last()) {
					t.Fatalf("%v, row %d of %d:\n%s", size, h.top, p.last(), text)
				}
				if h.top == p.last() && len(missing) == 0 {
					break
				}
				if k == "wheel" {
					s.send(tea.MouseWheelMsg{X: 20, Y: 5, Button: tea.MouseWheelDown})
				} else {
					s.press(k)
				}
			}
			if h.top != p.last() || len(missing) > 0 {
				t.Errorf("%v: %s ends at row %d of %d, never shown: %v", size, k, h.top, p.last(), missing)
			}
		}
	}
}

func TestKeysThatMoveInTheHelp(t *testing.T) {
	for _, size := range smallSizes {
		s, h := helpOf(t, size)
		p := h.page(s.model)
		for _, step := range []struct {
			key string
			top int
		}{
			{"pgup", 0},
			{"G", p.last()},
			{"g", 0},
			{"end", p.last()},
			{"home", 0},
			{"ctrl+d", min(p.room/2, p.last())},
			{"ctrl+u", 0},
			{"pgdown", min(p.room-1, p.last())},
			{"pgup", 0},
		} {
			if s.press(step.key); h.top != step.top {
				t.Errorf("%v: %s goes to row %d, want %d", size, step.key, h.top, step.top)
			}
		}
		s.press("G")
		s.text() // the wheel moves what was drawn under it
		s.send(tea.MouseWheelMsg{X: 20, Y: 5, Button: tea.MouseWheelUp})
		if h.top != p.last()-1 {
			t.Errorf("%v: the wheel goes to row %d of %d", size, h.top, p.last())
		}
	}
}

// What enter runs is on the screen, whatever was scrolled.
func TestChosenEntryOfTheHelpIsVisible(t *testing.T) {
	for _, size := range smallSizes {
		s, h := helpOf(t, size)
		for _, k := range strings.Fields("j j pgdown j k ctrl+d k k G k k k k up g down G down up end tab") {
			s.press(k)
			p := h.page(s.model)
			if h.at >= 0 && !p.visible(h.at, h.top) {
				t.Errorf("%v: after %s entry %d is chosen, out of sight", size, k, h.at)
			}
		}
		s.press("esc", "?", "j")
		if h = s.dialog.(*helper); h.at != 0 {
			t.Errorf("%v: j chooses entry %d", size, h.at)
		}
		s.press("j", "j", "j")
		s.send(tea.WindowSizeMsg{Width: 60, Height: 12})
		s.text()
		if p := h.page(s.model); !p.visible(3, h.top) {
			t.Errorf("%v: on a smaller screen entry 3 is out of sight", size)
		}
		s.press("enter")
		if s.dialog != nil {
			t.Error("enter does not leave the help")
		}
	}
}

// Once something is typed, all letters are text.
func TestLettersSearchTheHelp(t *testing.T) {
	s, h := helpOf(t, [2]int{80, 24})
	s.press("j", "e", "j", "k", "g", "G")
	if h.query != "ejkgG" {
		t.Errorf("searched for %q", h.query)
	}
	s.press("ctrl+u")
	if h.query != "" || h.at >= 0 {
		t.Errorf("ctrl-u leaves %q, entry %d", h.query, h.at)
	}
	s.press("z", "z", "pgdown", "down", "up", "end")
	if got := s.text(); strings.Contains(got, " more ") || !strings.Contains(got, "zz") {
		t.Errorf("of what is not in the help there is\n%s", got)
	}
	s.press("enter")
	if s.dialog != nil {
		t.Error("enter does not leave the help")
	}
}
