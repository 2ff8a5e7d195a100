package probes

import (
	"testing"
	"time"

	"uprobetop/bpf"
)

// The time on CPU is what the kernel had added up and what it had not, as far as that
// is known, and how far it can be wrong is what is not; there is never more than the
// call has room for.
func TestTimeOnCPUOfACall(t *testing.T) {
	const ms = uint64(time.Millisecond)
	const all = bpf.KnownWaiting | bpf.KnownUpdate
	for _, tt := range []struct {
		name                                 string
		onCPU, waiting, voluntary, preempted uint64
		known                                uint64
		rest                                 int64
		want, wrong, blocked                 time.Duration
	}{
		{"it slept", ms, 2 * ms, 1, 0, all, 1e6, 2e6, 3e3, 2e6},
		{"what had not been added up before it is", ms, 2 * ms, 1, 0, all, -5e5, 5e5, 3e3, 35e5},
		{"nothing was added up in it", 0, 0, 0, 0, all, 6e6, 6e6, 0, 0},
		{"a tick came in it", 3 * ms, 0, 0, 0, all, 3e6, 6e6, 3e3, 0},
		{"it was only preempted, and there were interrupts", ms, 2 * ms, 0, 3, all, 29e5, 39e5, 3e3, 0},
		{"how long it waited is not known", ms, 9 * ms, 1, 0, bpf.KnownUpdate, 1e6, 2e6, 3e3, -1},
		{"the clocks differ", ms, 2 * ms, 1, 0, all, 9e6, 1e6, 3e6, 3e6},
		{"the clocks differ, it did not sleep", ms, 2 * ms, 0, 1, all, 9e6, 4e6, 0, 0},
		{"when it was added up is not known", ms, 2 * ms, 1, 0, bpf.KnownWaiting, 0, 1e6, 3e6, 3e6},
		{"nor how long it waited", ms, 0, 1, 0, 0, 0, 1e6, 4e6, -1},
		{"more than there is room for", 9 * ms, 2 * ms, 1, 0, bpf.KnownWaiting, 0, 4e6, 4e6, 0},
		{"it waited longer than it took", ms, 9 * ms, 1, 0, bpf.KnownWaiting, 0, 0, 0, 0},
		{"it never slept", 0, 0, 0, 0, bpf.KnownWaiting, 0, 6e6, 0, 0},
		{"it was only preempted", ms, 2 * ms, 0, 3, bpf.KnownWaiting, 0, 4e6, 0, 0},
		{"it never slept, how long it waited is not known", 0, 9 * ms, 0, 0, 0, 0, 6e6, 0, 0},
		{"it was preempted for a time that is not known", ms, 0, 0, 3, 0, 0, 1e6, 4e6, 0},
	} {
		c := bpf.Call{Start: 5, At: 5 + 6*ms, Known: bpf.KnownEntry | tt.known, Unaccounted: tt.rest, Tick: 4 * ms}
		c.Thread[bpf.OnCPU], c.Thread[bpf.Waiting] = tt.onCPU, tt.waiting
		c.Thread[bpf.Voluntary], c.Thread[bpf.Involuntary] = tt.voluntary, tt.preempted
		if tt.want == 6e6 {
			c.Tick = 9 * ms // as with a tick that was late
		}
		got := callOf(&c)
		if th := got.Thread; th.OnCPU != tt.want || th.OnCPUError != tt.wrong || got.Blocked() != tt.blocked {
			t.Errorf("%s: %v ±%v on a CPU, blocked %v; want %v ±%v, %v", tt.name, th.OnCPU, th.OnCPUError, got.Blocked(), tt.want, tt.wrong, tt.blocked)
		}
		if vague := tt.wrong > 120e3; got.Vague() != vague {
			t.Errorf("%s: vague is %v", tt.name, got.Vague())
		}
	}
}

// Who has no id here is outside.
func TestOutside(t *testing.T) {
	for tgid, outside := range map[uint32]bool{0: true, 1: false} {
		if c := callOf(&bpf.Call{Tgid: tgid}); c.Outside() != outside {
			t.Errorf("process %d: outside is %v", tgid, c.Outside())
		}
	}
}
