package ui

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"uprobetop/probes"
)

// successor is a process that runs in the place of a target that has ended.
type successor struct {
	label  string // empty: there is none, as far as is known
	asking bool
	asked  time.Time
}

type successorMsg struct {
	label string
	ok    bool
}

const askSuccessorEvery = time.Second

// askSuccessor asks beside the screen whether the target runs again, once a
// second while it is gone.
func (m *model) askSuccessor() tea.Cmd {
	s := &m.successor
	ask := m.opts.Successor
	if ask == nil || !m.snap.Gone || s.asking || m.now.Sub(s.asked) < askSuccessorEvery {
		return nil
	}
	s.asking, s.asked = true, m.now
	return func() tea.Msg {
		label, ok := ask()
		return successorMsg{label, ok}
	}
}

func (m *model) succeeded(msg successorMsg) {
	m.successor.asking, m.successor.label = false, ""
	if msg.ok {
		m.successor.label = clean(msg.label)
	}
	m.warnAbout()
}

// goneBanner says that the target has ended, and as what it runs again.
func (m *model) goneBanner() banner {
	label := clean(m.target.Label)
	if m.successor.label == "" {
		stay := label + " has ended; its numbers stay"
		b := banner{text: stay + " until you leave", less: []string{stay, "ended; its numbers stay"}}
		if m.opts.Successor != nil {
			b.less = append([]string{b.text}, b.less...)
			b.text += "; waits for the same command to run again"
		}
		return b
	}
	name, _, _ := strings.Cut(label, " ")
	again := "runs again as " + strings.TrimPrefix(m.successor.label, name+" ")
	return banner{text: label + " has ended and " + again, less: []string{"ended, " + again}, keys: []string{"o", "follow it"}}
}

func (m *model) canFollow() bool { return m.snap.Gone && m.successor.label != "" }

// follow is the o key: it leaves the screen with what is to be measured of the
// successor.
func (m *model) follow() tea.Cmd {
	m.outcome = Outcome{Follow: true}
	for _, r := range m.rows {
		if r.want != off {
			m.outcome.Wanted = append(m.outcome.Wanted, m.request(r))
		}
	}
	return tea.Quit
}

// request asks for what a row wants.
func (m *model) request(r *row) probes.Request {
	return probes.Request{Kind: r.want.kind(r.fn), File: r.file, Function: r.fn, Accepted: m.yes[fileKey(r.file)]}
}
