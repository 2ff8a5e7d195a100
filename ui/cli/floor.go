package cli

import (
	"context"
	"fmt"
	"sync"

	"uprobetop/assets"
	"uprobetop/probes"
	"uprobetop/ui/format"
)

// calibrate measures the probe's own share of the latencies of a collector. Where that
// cannot be done, it stays unknown.
func calibrate(ctx context.Context, col *probes.Collector) {
	_ = col.Calibrate(ctx, func(ctx context.Context) (probes.Empty, error) { return assets.StartEmpty(ctx) })
}

// calibrating is a callback of Collector.Run that calibrates in the background once a
// timed probe stands. wait returns when nothing goes on any more.
func calibrating(ctx context.Context, col *probes.Collector) (each func(*probes.Snapshot), wait func()) {
	var going sync.WaitGroup
	var one sync.Mutex
	each = func(s *probes.Snapshot) {
		if !s.Uncalibrated() || !one.TryLock() {
			return
		}
		going.Go(func() {
			defer one.Unlock()
			calibrate(ctx, col)
		})
	}
	return each, going.Wait
}

// ownShare is one line on what the latencies include, or nothing where it is not known.
func ownShare(s *probes.Snapshot) string {
	var known string
	seen := map[probes.Class]bool{}
	for i := range s.Probes {
		f := s.Probes[i].Floor
		switch {
		case f.P50 == 0 || seen[f.Class]:
			continue
		case known == "":
			known = fmt.Sprintf("an empty function takes %s under such a probe here (%s)", format.Latency(float64(f.P50)), f.Class)
		default:
			known += fmt.Sprintf(", %s (%s)", format.Latency(float64(f.P50)), f.Class)
		}
		seen[f.Class] = true
	}
	if known == "" {
		return ""
	}
	return known + ": the latencies include it\n"
}
