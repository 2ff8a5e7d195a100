package ui

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"uprobetop/probes"
)

// watched is a probe that is counted by thread as well, because somebody looks.
type watched struct {
	on     bool
	asking bool
	failed bool      // not asked for again until somebody looks anew
	looked time.Time // last
}

// keepWatching is for how long a probe is watched after the last look: who comes back
// finds the rows as they were.
const keepWatching = 10 * time.Second

type watchedMsg struct {
	row *row // nil: nobody looks any more
	id  probes.ID
	err error
}

// threadsLooked says whether somebody looks at the threads of the selected row.
func (m *model) threadsLooked() bool {
	return m.hasView() && m.views[m.viewAt].title == threadsTitle
}

// watchThreads has the collector watch the probe that is looked at, and those no
// more that nobody has looked at for a while.
func (m *model) watchThreads() []tea.Cmd {
	var cmds []tea.Cmd
	if r := m.selected; m.threadsLooked() && r.stat != nil && r.stat.State == probes.Attached {
		w := m.watched[r.stat.ID]
		if w == nil {
			w = &watched{}
			m.watched[r.stat.ID] = w
		}
		w.looked = m.now
		if !w.on && !w.asking && !w.failed {
			cmds = append(cmds, m.tellWatch(w, r, r.stat.ID, true))
		}
	}
	for id, w := range m.watched {
		switch {
		case w.asking || m.now.Sub(w.looked) < keepWatching:
		case w.on:
			cmds = append(cmds, m.tellWatch(w, nil, id, false))
		default:
			delete(m.watched, id)
		}
	}
	return cmds
}

func (m *model) tellWatch(w *watched, r *row, id probes.ID, on bool) tea.Cmd {
	w.on, w.asking = on, true
	src := m.src
	return func() tea.Msg { return watchedMsg{r, id, src.Watch(id, on)} }
}

// watchAnswered takes the collector's answer. That a probe is watched no more can
// only fail because it is gone.
func (m *model) watchAnswered(msg watchedMsg) {
	w := m.watched[msg.id]
	if w == nil {
		return
	}
	w.asking = false
	if msg.err != nil && msg.row != nil {
		w.on, w.failed = false, true
		m.setBanner(true, "the threads of "+msg.row.name+" cannot be told apart: "+clean(msg.err.Error()))
	}
}
