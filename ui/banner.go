package ui

import (
	"slices"

	"uprobetop/probes"
	"uprobetop/ui/chart"
	"uprobetop/ui/format"
)

// banner is the one line of news between table and detail. It stays until esc,
// and what was closed does not come back.
type banner struct {
	bad  bool
	of   *row // whose probe is refused or failed; nil: of none
	text string
	less []string // where there is no room for the text, ever shorter
	keys []string // what can be done about it: key, word, …
}

func (m *model) setBanner(bad bool, text string) { m.show(banner{bad: bad, text: text}) }

func (m *model) show(b banner) {
	if !m.dismissed[b.text] {
		m.banner = b
	}
}

// bannerStands says whether there is a banner and the pane below does not tell the
// same of the selected row.
func (m *model) bannerStands() bool {
	r := m.banner.of
	if r == nil || r != m.selected || !m.split() || m.measured(r) {
		return m.banner.text != ""
	}
	cond := m.condition(r)
	return cond != refused && cond != failed
}

func (m *model) closeBanner() {
	m.dismissed[m.banner.text] = true
	m.banner = banner{}
}

// insist shows a banner although it was closed before, because a key asks for it.
func (m *model) insist(b banner) {
	delete(m.dismissed, b.text)
	m.show(b)
}

// onlyRecorded says whether nothing can be placed, or taken away, and tells why.
func (m *model) onlyRecorded() bool {
	if m.opts.Recorded {
		m.insist(banner{text: "this is a recording: nothing can be placed"})
	}
	return m.opts.Recorded
}

// lateBanner is the one banner whose text changes while it stands.
const lateBanner = "no snapshot: the host is busy; totals stay exact"

// warnAbout says what a person has to know beyond the row that it happens in;
// the gravest comes last.
func (m *model) warnAbout() {
	if m.opts.Banner != "" && m.banner.text == m.opts.Banner {
		return // it stands until it is closed
	}
	if m.snap.Gone {
		m.show(m.goneBanner())
	}
	for _, r := range slices.Backward(m.rows) {
		if r.stat != nil && r.stat.State == probes.Failed && !r.gaveUp && !m.snap.Gone {
			if text := r.name + " cannot be placed: " + clean(r.stat.Note); !m.dismissed[text] {
				m.show(banner{bad: true, text: text, of: r})
				break
			}
		}
	}
	switch {
	case m.late() > 0:
		m.setBanner(false, lateBanner)
	case m.banner.text == lateBanner:
		m.banner = banner{}
	default:
		delete(m.dismissed, lateBanner)
	}
}

func (m *model) drawBanner(c *chart.Canvas) {
	if m.banner.text == "" {
		return
	}
	text := m.banner.text
	if text == lateBanner {
		text = "no snapshot for " + format.Seconds(m.late()) + ": the host is busy; totals stay exact"
	}
	st, sign := m.th.Warn, m.th.Asks
	if m.banner.bad {
		st, sign = m.th.Bad, m.th.Failed
	}
	c.Put(3, 0, sign, st)
	text = clean(text)
	x := drawKeys(c, c.W-1, 0, append(slices.Clone(m.banner.keys), "esc", "close"), m.th)
	for _, less := range m.banner.less {
		if chart.Width(text) > x-7 {
			text = clean(less)
		}
	}
	c.Text(5, 0, chart.Cut(text, x-7, m.th.Ellipsis), st)
}
