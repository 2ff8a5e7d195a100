package symbols

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Mappers counts the processes that have the file mapped as code. It looks for as
// long as given, since a process that is busy with its mappings lets nobody see
// them for a while: all is false if there was no time for every one.
func (f *File) Mappers(within time.Duration) (n int, all bool) {
	m, ok := f.mappedAs()
	if !ok {
		return 0, false
	}
	needle := needleOf(m.id())
	return countProcesses(within, func(pid string) bool { return hasCode("/proc/"+pid+"/maps", needle) })
}

// OldMappers counts the processes that run an older file of the same path, which is
// deleted since. What is probed in this one does not count in them.
func (f *File) OldMappers(within time.Duration) (n int, all bool) {
	path, err := os.Readlink(f.Open) // the one that the kernel knows
	var here, there unix.Stat_t
	if err != nil || unix.Stat("/", &here) != nil {
		return 0, false
	}
	needle := []byte(" " + strings.ReplaceAll(path, "\n", `\012`) + deletedMark + "\n")
	return countProcesses(within, func(pid string) bool {
		return hasCode("/proc/"+pid+"/maps", needle) &&
			unix.Stat("/proc/"+pid+"/root", &there) == nil && there.Dev == here.Dev && there.Ino == here.Ino
	})
}

// countProcesses counts those that are as asked, for as long as given.
func countProcesses(within time.Duration, is func(pid string) bool) (n int, all bool) {
	var count atomic.Int64
	var stop atomic.Bool
	done := make(chan struct{})
	go func() { // it may be held up beyond the time, and then ends by itself
		defer close(done)
		proc, err := os.ReadDir("/proc")
		if err != nil {
			return
		}
		for _, p := range proc {
			if stop.Load() {
				return
			}
			if _, err := strconv.Atoi(p.Name()); err == nil && is(p.Name()) {
				count.Add(1)
			}
		}
	}()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-done:
		return int(count.Load()), true
	case <-timer.C:
		stop.Store(true)
		return int(count.Load()), false
	}
}

// needleOf is how a line of a maps file names an inode.
func needleOf(id fileID) []byte {
	return fmt.Appendf(nil, " %02x:%02x %d ", unix.Major(id.dev), unix.Minor(id.dev), id.ino)
}

// maps tells whether a process has a file mapped as code.
func (p *Process) maps(id fileID) bool { return hasCode(p.path("maps"), needleOf(id)) }

// hasCode tells whether a maps file has a line of code with the needle.
func hasCode(path string, needle []byte) bool {
	maps, err := os.ReadFile(path)
	if err != nil {
		return false // it has ended, or is not ours to see
	}
	for {
		at := bytes.Index(maps, needle)
		if at < 0 {
			return false
		}
		line := maps[bytes.LastIndexByte(maps[:at], '\n')+1 : at]
		if part := bytes.Fields(line); len(part) > 1 && bytes.IndexByte(part[1], 'x') >= 0 {
			return true
		}
		maps = maps[at+len(needle):]
	}
}
