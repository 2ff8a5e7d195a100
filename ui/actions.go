package ui

import (
	"context"
	"errors"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"uprobetop/probes"
	"uprobetop/symbols"
)

type checkedMsg struct {
	wish
	finding probes.Finding
}

type placedMsg struct {
	row *row
	seq uint64 // of the newest snapshot when Place returned
	err error
}

type removedMsg struct {
	row *row
	st  *probes.Stats // whose removal failed
	err error
}

// toggle is the space key: the uprobe of a function on, or everything off.
func (m *model) toggle(r *row) tea.Cmd {
	w := counted
	if m.wanted(r) != off {
		w = off
	}
	return m.change(r, w)
}

// toggleReturn is the r key: latency too, or no more.
func (m *model) toggleReturn(r *row) tea.Cmd {
	w := timed
	if m.wanted(r) == timed {
		w = counted
	}
	return m.change(r, w)
}

// wanted is what the user wants of a row; one that could not be placed is off,
// so that the same key tries again.
func (m *model) wanted(r *row) want {
	switch m.condition(r) {
	case refused, failed, stopped, gone, givenUp:
		return off
	}
	return r.want
}

// change does what a key asks for and remembers what was, for undo.
func (m *model) change(r *row, w want) tea.Cmd {
	return m.ask(wish{row: r, want: w, undo: true})
}

// wish is what a row shall become.
type wish struct {
	row  *row
	want want
	undo bool // it can be taken back
}

// ask has a placement checked before anything is done about it. Switching off
// needs no check.
func (m *model) ask(w wish) tea.Cmd {
	r := w.row
	if m.onlyRecorded() {
		return nil
	}
	if m.snap.Gone {
		m.insist(m.goneBanner())
		return nil
	}
	if w.want == off {
		return m.agree(w)
	}
	req := probes.Request{Kind: w.want.kind(r.fn), File: r.file, Function: r.fn}
	src := m.src
	return func() tea.Msg { return checkedMsg{w, src.Check(req)} }
}

func (m *model) checked(msg checkedMsg) tea.Cmd {
	r := msg.row
	switch msg.finding.Verdict {
	case probes.Refuses:
		if m.condition(r) != measuring && m.condition(r) != silent {
			r.finding, r.failure, r.want, r.kept = &msg.finding, "", off, true
		}
		m.refuse(msg)
		return nil
	case probes.Asks:
		if !m.yes[fileKey(r.file)] {
			m.dialog = &asker{wish: msg.wish, finding: msg.finding, under: m.dialog}
			return nil
		}
	}
	return m.agree(msg.wish)
}

// refuse says that a wish cannot be had. Where the row counts already it goes on with
// that, which is then no way out that has to be told.
func (m *model) refuse(msg checkedMsg) {
	text := msg.row.name + " cannot be placed: " + withWay(msg.finding)
	if cond := m.condition(msg.row); msg.want == timed && (cond == measuring || cond == silent) {
		why := "cannot be timed: " + clean(msg.finding.Reason)
		text = msg.row.name + " " + why
		if f, ok := m.dialog.(*finder); ok {
			f.said = why
		}
	}
	m.insist(banner{bad: true, text: text, of: msg.row})
}

// agree takes a wish over and does what follows from it. What failed or was
// stopped makes way for the next try.
func (m *model) agree(w wish) tea.Cmd {
	r := w.row
	if w.undo {
		m.remember(r)
	}
	r.finding, r.failure, r.want, r.kept, r.tried, r.gaveUp = nil, "", w.want, true, false, false
	if w.want == off {
		r.abandon()
	}
	retry := m.remove(r, slices.DeleteFunc(slices.Clone(r.all), func(st *probes.Stats) bool {
		return !hopeless(st) && st.State != probes.Stopped
	}))
	return tea.Batch(append(m.reconcile(), retry)...)
}

func fileKey(f *symbols.File) key { return key{dev: f.Dev, ino: f.Ino, path: f.Path} }

func withWay(f probes.Finding) string {
	if f.Way == "" {
		return clean(f.Reason)
	}
	return clean(f.Reason) + "; " + clean(f.Way)
}

// reconcile brings what is placed to what is wanted, row by row. It is run
// after every snapshot and every change: what takes time is done beside the
// screen, and its result shows in a later snapshot.
func (m *model) reconcile() []tea.Cmd {
	if m.opts.Recorded {
		return nil
	}
	cmds := append(m.reportCalls(), m.watchThreads()...)
	for _, r := range slices.Clone(m.rows) { // one may be dropped
		if cmd := m.reconcileRow(r); cmd != nil {
			cmds = append(cmds, cmd)
		}
	}
	return cmds
}

func (m *model) reconcileRow(r *row) tea.Cmd {
	settled := m.snap.Seq >= r.settled
	if r.asked || m.snap.Final || r.leaving && !settled {
		return nil
	}
	if r.leaving {
		cmd := m.remove(r, r.all)
		m.dropRow(r)
		return cmd
	}
	var keep *probes.Stats
	var drop []*probes.Stats
	for _, st := range r.all {
		if r.want == off || wantOf(st.Kind) != r.want || keep != nil && !better(st, keep) {
			drop = append(drop, st)
			continue
		}
		if keep != nil {
			drop = append(drop, keep)
		}
		keep = st
	}
	switch {
	case keep == nil && r.want != off && !settled:
		return nil
	case keep == nil && r.want != off && r.tried:
		r.failure, r.want = "its probe is gone, and nobody here took it away", off
		return nil
	case keep == nil && r.want != off:
		r.asked, r.tried = true, true
		return m.place(r)
	case keep != nil && keep.State == probes.Placing:
		return nil
	case keep != nil && hopeless(keep) && len(drop) > 0 && drop[0].State == probes.Attached:
		// The other kind could not be had: the one that counts stays.
		m.show(banner{bad: true, text: r.name + " cannot be timed: " + clean(keep.Note), of: r})
		r.want = wantOf(drop[0].Kind)
		drop = []*probes.Stats{keep}
	}
	return m.remove(r, drop)
}

// hopeless says that a probe will never count.
func hopeless(st *probes.Stats) bool {
	return st.State == probes.Failed || st.State == probes.Refused
}

func (m *model) place(r *row) tea.Cmd {
	req, src := m.request(r), m.src
	ctx, cancel := context.WithCancel(m.ctx)
	r.cancel, r.begun = cancel, m.now
	return func() tea.Msg {
		defer cancel()
		err := src.Place(ctx, req)
		return placedMsg{r, src.Snapshot().Seq, err}
	}
}

// slowWork is when a person is shown that something takes time, and the way out.
const slowWork = 200 * time.Millisecond

// canGiveUp says whether a row is being placed by this screen, for long enough
// that giving up is offered.
func (m *model) canGiveUp(r *row) bool {
	return r.asked && !r.gaveUp && m.now.Sub(r.begun) >= slowWork
}

// abandon has a pending Place of a row end.
func (r *row) abandon() {
	if r.asked {
		r.cancel()
		r.gaveUp = true
	}
}

// giveUp has every pending Place end, and says whether there was one. What stood
// already is taken away again; a probe that counted before stays.
func (m *model) giveUp() bool {
	any := false
	for _, r := range m.rows {
		if !m.canGiveUp(r) {
			continue
		}
		any = true
		r.abandon()
		r.want = off
		if r.stat != nil && r.stat.State == probes.Attached {
			r.want = wantOf(r.stat.Kind)
		}
	}
	return any
}

func (m *model) placed(msg placedMsg) tea.Cmd {
	r := msg.row
	r.asked = false
	if msg.err != nil && !errors.Is(msg.err, context.Canceled) {
		r.failure, r.want = clean(msg.err.Error()), off
		if r.stat != nil {
			r.want = wantOf(r.stat.Kind)
		}
		m.show(banner{bad: true, text: r.name + " cannot be placed: " + r.failure, of: r})
	}
	if r.want != off {
		r.gaveUp = false // what counted before goes on
	}
	// The snapshot after this one may have been begun before Place returned.
	r.settled = msg.seq + 2
	return nil
}

// remove takes probes away.
func (m *model) remove(r *row, drop []*probes.Stats) tea.Cmd {
	if len(drop) == 0 {
		return nil
	}
	drop = slices.Clone(drop) // it may be a part of r.all, and is read beside the screen
	for _, st := range drop {
		m.removed[st.ID] = true
	}
	r.all = slices.DeleteFunc(r.all, func(st *probes.Stats) bool { return m.removed[st.ID] })
	r.choose()
	if !m.frozen {
		m.measure()
	}
	src := m.src
	return func() tea.Msg {
		for _, st := range drop {
			if err := src.Remove(st.ID); err != nil {
				return removedMsg{r, st, err}
			}
		}
		return nil
	}
}

// notRemoved puts a probe back on the screen that could not be taken away.
func (m *model) notRemoved(msg removedMsg) {
	delete(m.removed, msg.st.ID)
	if msg.row.want == off {
		msg.row.want = wantOf(msg.st.Kind)
	}
	m.setBanner(true, msg.row.name+" cannot be taken away: "+clean(msg.err.Error()))
}

// takeAway is the d key: the row goes, and its probe with it. A probe that is
// being placed has no id yet: its row goes as soon as it has one.
func (m *model) takeAway(r *row) tea.Cmd {
	if m.onlyRecorded() {
		return nil
	}
	m.remember(r)
	r.want, r.finding, r.failure, r.leaving = off, nil, "", true
	r.abandon()
	return m.reconcileRow(r)
}

// remember lets what a row wants now be had back.
func (m *model) remember(r *row) {
	file, fn, was := r.file, r.fn, m.wanted(r)
	m.canUndo(func(m *model) tea.Cmd {
		r := m.rowFor(file, fn)
		r.leaving = false
		m.selected = r
		return m.ask(wish{row: r, want: was})
	})
}

const keepUndo = 100

// canUndo remembers how the last change is taken back.
func (m *model) canUndo(back func(m *model) tea.Cmd) {
	if len(m.undo) == keepUndo {
		m.undo = slices.Delete(m.undo, 0, 1)
	}
	m.undo = append(m.undo, back)
}

// takeBack is the u key.
func (m *model) takeBack() tea.Cmd {
	if len(m.undo) == 0 {
		return nil
	}
	last := m.undo[len(m.undo)-1]
	m.undo = m.undo[:len(m.undo)-1]
	return last(m)
}

// freeze stops the picture, never the counting.
func (m *model) freeze() {
	m.frozen = !m.frozen
	if m.frozen {
		m.held = m.past.clone()
		return
	}
	m.shown = m.snap
	m.measure()
}
