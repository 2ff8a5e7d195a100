package cli

import (
	"fmt"
	"os"
	"time"

	"github.com/charmbracelet/x/term"

	"uprobetop/probes"
)

// leave takes everything out of the kernel. A person at a terminal is told how far
// it has come where that takes its time: a perf event can take some 100 ms.
func leave(s Streams, col *probes.Collector) {
	if w, ok := s.Err.(*os.File); ok && term.IsTerminal(w.Fd()) {
		defer tellLeaving(w, col)()
	} else if p := col.Leaving(); p.Of-p.Done > 20 {
		fmt.Fprintf(s.Err, "uprobetop: %d probes are being taken away, one after the other\n", p.Of-p.Done)
	}
	_ = col.Close() // what is left goes with this process
}

func tellLeaving(w *os.File, col *probes.Collector) (done func()) {
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
