package ui

import (
	tea "charm.land/bubbletea/v2"
)

// scene is what a demo plays now.
type scene struct {
	at      int
	setting bool
}

type sceneMsg struct {
	at  int
	err error
}

func (m *model) hasScenes() bool { return len(m.opts.Scenes) > 1 && m.opts.SetScene != nil }

// nextScene has the demo play the next scene, beside the screen; one at a time.
func (m *model) nextScene() tea.Cmd {
	if m.scene.setting {
		return nil
	}
	m.scene.setting = true
	set, at := m.opts.SetScene, (m.scene.at+1)%len(m.opts.Scenes)
	return func() tea.Msg { return sceneMsg{at, set(at)} }
}

func (m *model) sceneSet(msg sceneMsg) {
	m.scene.setting = false
	if msg.err != nil {
		m.setBanner(true, "the scene cannot be set: "+clean(msg.err.Error()))
		return
	}
	m.scene.at = msg.at
}
