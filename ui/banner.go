package ui

import (
	"uprobetop/probes"
	"uprobetop/ui/chart"
	"uprobetop/ui/format"
)

// banner is the one line of news between table and detail. It stays until esc,
// and what was closed does not come back.
type banner struct {
	bad  bool
	text string
}

func (m *model) setBanner(bad bool, text string) {
	if !m.dismissed[text] {
		m.banner = banner{bad, text}
	}
}

func (m *model) closeBanner() {
	m.dismissed[m.banner.text] = true
	m.banner = banner{}
}

// lateBanner is the one banner whose text changes while it stands.
const lateBanner = "no snapshot: the host is busy; totals stay exact"

// warnAbout says what a person has to know beyond the row that it happens in;
// the gravest comes last.
func (m *model) warnAbout() {
	if m.snap.Gone {
		m.setBanner(false, clean(m.target.Label)+" has ended; its numbers stay until you leave")
	}
	for _, r := range m.rows {
		if r.stat != nil && r.stat.State == probes.Failed {
			m.setBanner(true, r.name+" cannot be placed: "+clean(r.stat.Note))
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
	c.Text(5, 0, chart.Cut(clean(text), c.W-19, m.th.Ellipsis), st)
	drawKeys(c, c.W-1, 0, []string{"esc", "close"}, m.th)
}
