package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// hook is a pair of programs on one event, with the same body: the kernel may skip
// one of them, and then the other one does its work; see hooks.h.
type hook struct {
	programs [2]*ebpf.Program
	links    [2]link.Link
}

// hookList are the hooks, in the order of enum hook.
type hookList [3]*hook

// attachHooks attaches the programs on exec and exit, and on fork if children are
// followed.
func (l *Objects) attachHooks() error {
	o := &l.objs
	l.hooks = hookList{
		{programs: [2]*ebpf.Program{o.OnExec, o.OnExecAgain}},
		{programs: [2]*ebpf.Program{o.OnExit, o.OnExitAgain}},
		{programs: [2]*ebpf.Program{o.OnFork, o.OnForkAgain}},
	}
	wanted := l.hooks[:2]
	if l.Options.Filter.Follow {
		wanted = l.hooks[:]
	}
	for _, h := range wanted {
		// The kernel runs them in this order; the second has to follow the first.
		for i, p := range h.programs {
			one, err := link.AttachTracing(link.TracingOptions{Program: p})
			if err != nil {
				return fmt.Errorf("the kernel does not attach the hook %s: %w", p, err)
			}
			h.links[i] = one
		}
	}
	return nil
}

// DetachHooks takes one program of each pair (0 or 1) away; for tests: as if the kernel
// skipped it.
func (l *Objects) DetachHooks(which int) error {
	var errs []error
	for _, h := range l.hooks {
		if h != nil && h.links[which] != nil {
			errs = append(errs, h.links[which].Close())
			h.links[which] = nil
		}
	}
	return errors.Join(errs...)
}

// misses is at how many events the kernel skipped both programs, at most.
func (h *hook) misses(alone, unmarked uint64) (uint64, error) {
	var skipped [2]uint64
	for i, p := range h.programs {
		s, err := p.Stats()
		if err != nil {
			return 0, fmt.Errorf("the kernel does not tell how often it skipped the hook %s: %w", p, err)
		}
		skipped[i] = s.RecursionMisses
	}
	return bothSkipped(skipped, alone, unmarked), nil
}

// bothSkipped is how many events nobody saw, at most: those at which the first was
// skipped, less those at which the second ran alone. Where the first left no mark the
// second only seems to have been alone.
func bothSkipped(skipped [2]uint64, alone, unmarked uint64) uint64 {
	sure := alone - min(alone, unmarked)
	return min(skipped[0]-min(skipped[0], sure), skipped[1])
}

// HookMisses is how many ends of threads (exit or exec), and how many beginnings of
// threads, the kernel has not shown to the hooks, at most. 0: it has shown every one.
func (l *Objects) HookMisses() (ends, forks uint64, err error) {
	var alone, unmarked [len(l.hooks)]uint64
	// First: what happens from now on is skipped before the other one runs alone.
	if err := errors.Join(l.objs.Alone.Get(&alone), l.objs.Unmarked.Get(&unmarked)); err != nil {
		return 0, 0, fmt.Errorf("cannot read what the hooks counted: %w", err)
	}
	var of [len(l.hooks)]uint64
	for i, h := range l.hooks {
		if of[i], err = h.misses(alone[i], unmarked[i]); err != nil {
			return 0, 0, err
		}
	}
	return of[0] + of[1], of[2], nil
}
