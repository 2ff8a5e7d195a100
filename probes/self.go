package probes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sync/atomic"

	"github.com/prometheus/procfs"

	"uprobetop/bpf"
	"uprobetop/symbols"
)

var touches atomic.Int64

// touched is there to be probed by its own process.
//
//go:noinline
func touched() { touches.Add(1) }

const selfPath = "/proc/self/exe"

// selfOffset is where the file of this process holds touched. It is found without
// symbols: a release has none.
func selfOffset() (uint64, error) {
	pc := reflect.ValueOf(touched).Pointer()
	self, err := procfs.Self()
	if err != nil {
		return 0, err
	}
	maps, err := self.ProcMaps()
	if err != nil {
		return 0, err
	}
	for _, m := range maps {
		if m.StartAddr <= pc && pc < m.EndAddr {
			return uint64(pc-m.StartAddr) + uint64(m.Offset), nil
		}
	}
	return 0, errors.New("this process does not find itself in its own memory")
}

func tryPerfEvent() error {
	at, err := selfOffset()
	if err != nil {
		return err
	}
	return bpf.HavePerfEvent(selfPath, at)
}

// probeSelf goes the whole road once: a probe on a function of this process, and
// some calls, all of which have to be counted. It tells by which method.
func probeSelf() (Method, error) {
	at, err := selfOffset()
	if err != nil {
		return "", err
	}
	f, err := symbols.Open(selfPath)
	if err != nil {
		return "", err
	}
	defer f.Close()
	config := Config{MaxProbes: 1, MaxTimed: 1}
	if !foreignProc() { // or else whoever runs this file
		config.Filter.PIDs = []int{os.Getpid()}
	}
	c, err := New(config)
	if err != nil {
		return "", err
	}
	defer c.Close()
	return c.objs.Options.Method, c.counts(f, at)
}

// counts probes touched, calls it, and wants every call counted.
func (c *Collector) counts(f *symbols.File, at uint64) error {
	fn := &symbols.Function{Symbol: symbols.Symbol{Name: "touched"}, Offset: symbols.Offset(at)}
	if err := c.Place(context.Background(), Request{Kind: Entry, File: f, Function: fn}); err != nil {
		return err
	}
	const calls = 3
	for range calls {
		touched()
	}
	s, err := c.Finish()
	if err != nil {
		return err
	}
	switch p := s.Probes[0]; {
	case p.State != Attached:
		return errors.New(p.Note)
	case p.Hits != calls:
		return fmt.Errorf("of %d calls %d were counted: please report it with the output of uprobetop doctor", calls, p.Hits)
	}
	return nil
}
