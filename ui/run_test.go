package ui

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
)

// terminal keeps what was written to it and tells when something appears.
type terminal struct {
	mu   sync.Mutex
	all  bytes.Buffer
	seen map[string]chan struct{}
}

func (w *terminal) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all.Write(p)
	for text, ch := range w.seen {
		if strings.Contains(w.all.String(), text) {
			close(ch)
			delete(w.seen, text)
		}
	}
	return len(p), nil
}

// appears is closed once a text has been written.
func (w *terminal) appears(text string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	ch := make(chan struct{})
	w.seen[text] = ch
	return ch
}

func wait(t *testing.T, what string, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(20 * time.Second):
		t.Fatalf("waited in vain for %s", what)
	}
}

// TestFollowEndsTheProgram has a target that ended and runs again: the screen asks
// by itself, tells it, and o leaves with what the rows want.
func TestFollowEndsTheProgram(t *testing.T) {
	snap := snapshotAt(3, 4, twoLoads)
	snap.Gone = true
	m := newModel(t.Context(), &fakeSource{snap: snap}, Target{Label: "mysqld 2841"}, Options{
		Successor: func() (string, bool) { return "mysqld 3011", true },
	})
	term := &terminal{seen: map[string]chan struct{}{}}
	offered := term.appears("runs again as 3011")
	keys, user := io.Pipe()
	defer user.Close()
	done := make(chan error, 1)
	go func() {
		done <- m.run(tea.WithInput(keys), tea.WithOutput(term), tea.WithWindowSize(120, 40), tea.WithoutSignals())
	}()
	wait(t, "the offer", offered)
	if _, err := io.WriteString(user, "o"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("o does not end it")
	}
	if !m.outcome.Follow || len(m.outcome.Wanted) != 2 {
		t.Errorf("the outcome is %+v", m.outcome)
	}
}

// TestWholeProgram runs the screen as a program, from the first byte to the
// last, with a user who looks and quits; and once with a context that ends.
func TestWholeProgram(t *testing.T) {
	for _, quit := range []string{"q", "context"} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		src := &fakeSource{snap: snapshotAt(3, 4, twoLoads)}
		m := newModel(ctx, src, Target{Label: "mysqld 2841"}, Options{})
		term := &terminal{seen: map[string]chan struct{}{}}
		shown := term.appears("buf_page_get_gen")
		keys, user := io.Pipe()
		done := make(chan error, 1)
		go func() {
			done <- m.run(tea.WithInput(keys), tea.WithOutput(term), tea.WithWindowSize(120, 40),
				tea.WithColorProfile(colorprofile.TrueColor), tea.WithoutSignals())
		}()
		wait(t, "the first row", shown)
		if quit == "q" {
			ledger := term.appears("the books balance")
			if _, err := io.WriteString(user, "4"); err != nil {
				t.Fatal(err)
			}
			wait(t, "the ledger", ledger)
			if _, err := io.WriteString(user, "q"); err != nil {
				t.Fatal(err)
			}
		} else {
			cancel()
		}
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("after %s: %v", quit, err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s does not end it", quit)
		}
		user.Close()
		got := term.all.String()
		on, off := strings.LastIndex(got, "\x1b[?1049h"), strings.LastIndex(got, "\x1b[?1049l")
		if on < 0 || off < on {
			t.Errorf("after %s the alternate screen is still on (%d, %d)", quit, on, off)
		}
	}
}
