package probes

import (
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"uprobetop/bpf/bpftest"
)

func TestKernelLogLines(t *testing.T) {
	var n LogCounts
	for _, line := range []string{
		"6,1,1,-;uprobe: omit uretprobe due to nestedness limit pid/tgid=12/7\n",
		"6,2,1,-;uprobe: omit uretprobe due to nestedness limit pid/tgid=12/8\n SUBSYSTEM=x\n",
		"4,3,1,-;uprobe: a b:c:12 failed to handle uretprobe, sending SIGILL.\n",
		"4,4,1,-;uprobe: other:1 failed to unregister, leaking uprobe\n",          // another process
		"14,5,1,-;uprobe: omit uretprobe due to nestedness limit pid/tgid=12/7\n", // not by the kernel
		"6,5,1,-;usb: omit uretprobe due to nestedness limit pid/tgid=12/7\n",
		"", ";", "6,6,1,-;uprobe: ", "6,6,1,-;uprobe: omit uretprobe due to nestedness limit pid/tgid=",
	} {
		n.add(line, []int{7})
	}
	if want := (LogCounts{Depth: 1, Killed: 1}); n != want {
		t.Errorf("%+v, want %+v", n, want)
	}
}

// The counts can be had while probes stand, and are none of a quiet run. (Of lines that
// the kernel logs not every one can be had: it limits their rate over all processes.)
func TestKernelCounts(t *testing.T) {
	target := bpftest.Build(t, "calls")
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	bpftest.Require(t, err)
	defer stats.Close()
	forStores(t, func(t *testing.T, config Config) {
		config.Filter = Filter{PIDs: []int{os.Getpid()}, Follow: true}
		c := newCollectorHere(t, config)
		place(t, c, request(t, open(t, target), Return, "work"))
		runs := truth(t, target)["calls"]
		if config.InFlight == SessionStore { // one program is for entries and returns
			runs *= 2
		}
		k, err := c.KernelCounts()
		if err != nil {
			t.Fatal(err)
		}
		if k.Runs == nil || *k.Runs != runs {
			t.Errorf("%d runs, the kernel says %+v", runs, k)
		}
		if k.Recursions != 0 || k.Log != nil && k.Log.Depth != 0 {
			t.Errorf("%+v, the log has %+v", k, k.Log)
		}
		if os.Geteuid() == 0 && k.Log == nil && !InContainer() {
			t.Error("root may not read the log")
		}
	})
}
