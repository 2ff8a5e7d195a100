// Package assets holds the workload that comes with uprobetop: a small program
// that behaves like a server, for the demo, for benches and for tests.
//
// Its source and the recipe that makes the embedded files are in demo/. In empty/ is
// a program of functions that do nothing: what a probe on them measures is the probe.
package assets

import (
	"fmt"
	"runtime"
)

// Demo returns the ELF file of the demo program for this architecture: static,
// without a libc, with a symbol table of its own few functions.
//
// Run with "--calls N" it serves N requests as fast as it can, prints one line
// "name calls" a function and exits. The same N makes the same calls in every
// run, so that probes can be held against what the program counted itself.
func Demo() ([]byte, error) {
	if len(demoELF) == 0 {
		return nil, fmt.Errorf("there is no demo program for %s, only for amd64 and arm64: "+
			"run uprobetop on a program of your own", runtime.GOARCH)
	}
	return []byte(demoELF), nil
}

// DemoFunction is a function of the demo program that is worth a probe.
type DemoFunction struct {
	Name  string // as it stands in the symbol table
	Timed bool   // its latency has something to show; else count its hits
}

// DemoFunctions are the functions to probe first, in an order for a first
// screen. It is a table to read, never to change. The program has some more,
// left for its user to find.
var DemoFunctions = []DemoFunction{
	{"handle_request", true},  // all of the below: 50 µs to 20 ms
	{"read_page", true},       // two humps: in the cache, or from the disk
	{"compress_body", true},   // two humps: small and large bodies
	{"render_tree", true},     // recursion, 3 to 12 levels deep
	{"lock_shard", true},      // free, or held by another thread
	{"write_log", true},       // a rare flush of several ms
	{"parse_request", true},   // steady
	{"send_reply", true},      // now and then a slow client
	{"update_shard", true},    // what the lock is held for
	{"alloc_buffer", true},    // large buffers cost more
	{"hash_key", false},       // the hottest
	{"collect_garbage", true}, // one call every other second
}
