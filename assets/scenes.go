package assets

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// DemoScene is a weather that the demo program has to live with.
type DemoScene struct {
	Name  string
	Shows string // what is to be seen, and where: one line
}

// DemoScenes are what SetScene can play; the first is how the program starts. It
// is a table to read, never to change. Its order is that of enum scene in
// demo/demo.c.
var DemoScenes = []DemoScene{
	{"calm", "a server on a good day: every function has its usual shape"},
	{"lock storm", "lock_shard takes up to tens of ms and its load rises, while update_shard holds the lock for long"},
	{"slow disk", "wait_disk takes ten times as long: the right humps of read_page and write_log move"},
	{"CPU hog", "other threads burn the CPUs: whoever slept in wait_disk gets a CPU late, and every tail grows"},
	{"hang", "one worker does not come back: handle_request and send_reply keep one call in flight, the others go on"},
}

// SetScene changes the scene to DemoScenes[i], at once. A program that was
// started with "--calls" has none to change. The error says that there is no
// such scene, or that the program has ended.
func (p *DemoProcess) SetScene(i int) error {
	if i < 0 || i >= len(DemoScenes) {
		return fmt.Errorf("the demo program has no scene %d: use 0 to %d", i, len(DemoScenes)-1)
	}
	_, err := p.stdin.Write([]byte{'0' + byte(i)})
	if errors.Is(err, os.ErrClosed) || errors.Is(err, syscall.EPIPE) {
		return errors.New("the demo program has ended: no scene can be played")
	}
	if err != nil {
		return fmt.Errorf("the demo program cannot be told to change the scene: %w", err)
	}
	return nil
}
