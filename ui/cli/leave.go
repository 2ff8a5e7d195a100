package cli

import (
	"fmt"
	"os"
	"time"

	"github.com/charmbracelet/x/term"

	"uprobetop/probes"
)

// tellLeaving tells a person at a terminal how far the kernel has come with taking
// probes away, until the returned function is called. A perf event can take it
// some 80 ms.
func tellLeaving(s Streams, col *probes.Collector) (done func()) {
	w, ok := s.Err.(*os.File)
	if !ok || !term.IsTerminal(w.Fd()) {
		return func() {}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		t := time.NewTicker(200 * time.Millisecond)
		defer t.Stop()
		told := false
		for {
			select {
			case <-t.C:
			case <-stop:
				if told {
					fmt.Fprint(w, "\r\x1b[K")
				}
				return
			}
			if p := col.Leaving(); p.Of > 0 {
				fmt.Fprintf(w, "\r\x1b[Kuprobetop: taking probes away, %d of %d", p.Done, p.Of)
				told = true
			}
		}
	}()
	return func() { close(stop); <-stopped }
}
