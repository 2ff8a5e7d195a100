package probes

import (
	"testing"
	"time"

	"uprobetop/bpf"
)

// A thread that did not give up its CPU was on one whenever it did not wait for
// one, whatever little of its time the kernel has accounted.
func TestTimeOnCPUOfACall(t *testing.T) {
	const ms = uint64(time.Millisecond)
	for _, tt := range []struct {
		name                                 string
		onCPU, waiting, voluntary, preempted uint64
		known                                uint64
		want                                 time.Duration
	}{
		{"it slept", ms, 2 * ms, 1, 0, bpf.KnownWaiting, time.Millisecond},
		{"more than there is room for", 9 * ms, 2 * ms, 1, 0, bpf.KnownWaiting, 4 * time.Millisecond},
		{"it waited longer than it took", ms, 9 * ms, 1, 0, bpf.KnownWaiting, 0},
		{"it never slept", 0, 0, 0, 0, bpf.KnownWaiting, 6 * time.Millisecond},
		{"it was only preempted", ms, 2 * ms, 0, 3, bpf.KnownWaiting, 4 * time.Millisecond},
		{"it never slept, how long it waited is not known", 0, 9 * ms, 0, 0, 0, 6 * time.Millisecond},
		{"it was preempted for a time that is not known", ms, 0, 0, 3, 0, time.Millisecond},
	} {
		c := bpf.Call{Start: 5, At: 5 + 6*ms, Known: bpf.KnownEntry | tt.known}
		c.Thread[bpf.OnCPU], c.Thread[bpf.Waiting] = tt.onCPU, tt.waiting
		c.Thread[bpf.Voluntary], c.Thread[bpf.Involuntary] = tt.voluntary, tt.preempted
		if got := callOf(&c).Thread.OnCPU; got != tt.want {
			t.Errorf("%s: %v on a CPU, want %v", tt.name, got, tt.want)
		}
	}
}
