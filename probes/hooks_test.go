package probes

import (
	"os"
	"strconv"
	"testing"

	"uprobetop/bpf/bpftest"
)

// seenAll holds that the kernel has shown every event to the hooks.
func seenAll(t testing.TB, c *Collector) {
	t.Helper()
	k, err := c.KernelCounts()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "ends that no hook saw", k.UnseenEnds, 0)
	equal(t, "forks that no hook saw", k.UnseenForks, 0)
}

// Each hook is a pair: what the kernel skips one of is the other's work. Here one of
// each is gone, the first and then the second. (Not on other kernels: from 7.0 on those
// that are left are skipped themselves now and then.)
func TestHalfHooks(t *testing.T) {
	bpftest.Long(t)
	target := bpftest.Build(t, "scenes")
	f := open(t, target)
	for i := range 2 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			forStores(t, func(t *testing.T, config Config) {
				config.Filter = Filter{PIDs: []int{os.Getpid()}, Follow: true}
				c := newCollectorHere(t, config)
				place(t, c, request(t, f, Return, "dies"), request(t, f, Return, "hangs"), request(t, f, Return, "thread_becomes"))
				if err := c.objs.DetachHooks(i); err != nil {
					t.Fatal(err)
				}
				equal(t, "dies", truth(t, target, "kill", "3")["dies"], 3)
				truth(t, target, "thread-exec", "1")
				s := finish(t, c)
				dies, hangs, thread := &s.Probes[0], &s.Probes[1], &s.Probes[2]
				lost(t, dies, dies.Unwound.Exit, 3)
				lost(t, hangs, hangs.Unwound.Exit, 6)
				lost(t, thread, thread.Unwound.Exec, 1)
				emptyStore(t, c)
			})
		})
	}
}

// A child for which there is no room is one, though both hooks find none.
func TestKernelUnfollowed(t *testing.T) {
	target := bpftest.Build(t, "scenes")
	truth(t, target, "fork", "1") // whatever the runtime starts before its first program
	c := newCollectorHere(t, Config{Filter: Filter{PIDs: []int{os.Getpid()}, Follow: true}})
	const none = 1 << 23 // no process has such a number (PID_MAX_LIMIT)
	for pid := none; c.objs.Admit(pid) == nil; pid++ {
	}
	const children = 5
	for range children {
		truth(t, target, "fork", "1")
	}
	equal(t, "processes not followed", finish(t, c).Unfollowed, children)
	seenAll(t, c)
}
