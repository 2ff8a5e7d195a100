package assets

import (
	_ "embed"
	"io"
	"strings"
)

// Made as root, after a change of the demo program or of what records look like,
// on a machine with nothing else to do:
//
//	rm assets/demo/demo.recording; go run . demo --record assets/demo/demo.recording
//
//go:embed demo/demo.recording
var demoRecording string

// DemoRecording is a run of the demo program, through all of its scenes, in the
// form that probes.NewReplay reads.
func DemoRecording() io.ReadSeeker { return strings.NewReader(demoRecording) }
