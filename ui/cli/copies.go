package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"uprobetop/probes"
	"uprobetop/symbols"
)

// copies looks for processes of a command that load another copy of a probed library
// than the one that was found in uprobetop's own environment: env LD_LIBRARY_PATH=…, a
// shell or chroot can make them. Their calls do not come to the probes.
type copies struct {
	root  int // the command
	files []*symbols.File
	done  chan struct{} // closed after the last look

	mu    sync.Mutex
	found map[copyOf]string
}

type copyOf struct {
	pid  int
	file *symbols.File
}

// newCopies is for the libraries among what is asked for, without those that an argument
// names by their path.
func newCopies(root int, requests []probes.Request, args []string) *copies {
	c := &copies{root: root, done: make(chan struct{}), found: map[copyOf]string{}}
	for _, r := range requests {
		if r.File.Library && !slices.Contains(c.files, r.File) && !named(r.File, args) {
			c.files = append(c.files, r.File)
		}
	}
	return c
}

// named tells whether one of the arguments has the path of a file.
func named(f *symbols.File, args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool {
		if s, err := probes.ParseSpec(a); err == nil && s.Target != "" && !exists(a) {
			a = s.Target
		}
		var st unix.Stat_t
		return isPath(a) && unix.Stat(a, &st) == nil && st.Ino == f.Ino && st.Dev == f.Dev
	})
}

// watch looks until ctx ends, and then a last time. It begins with looks close together,
// since many commands are short.
func (c *copies) watch(ctx context.Context) {
	defer close(c.done)
	if len(c.files) == 0 {
		return
	}
	for wait := time.Millisecond; ctx.Err() == nil; wait = min(2*wait, probes.Tick) {
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		c.look()
	}
}

// look notes what each process of the command has mapped now: a wrapper can become the
// program.
func (c *copies) look() {
	for _, pid := range family(c.root) {
		for _, f := range c.files {
			path, own := f.CopyIn(pid)
			if path == "" && !own {
				continue // nothing of the kind yet, or it has ended
			}
			comm, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
			c.mu.Lock()
			if own {
				delete(c.found, copyOf{pid, f})
			} else {
				c.found[copyOf{pid, f}] = fmt.Sprintf("%s maps %s, and what is probed is %s: start it first and name it with -p",
					symbols.Printable(strings.TrimSpace(string(comm))), symbols.Printable(path), symbols.Printable(f.Path))
			}
			c.mu.Unlock()
		}
	}
}

// end waits for the last look, which a process that is busy with its mappings can hold
// up, for a while.
func (c *copies) end() {
	if c == nil {
		return
	}
	select {
	case <-c.done:
	case <-time.After(looking):
	}
}

// sentences is one for each library of which a copy was seen.
func (c *copies) sentences() (all []string) {
	if c == nil {
		return nil
	}
	c.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.files {
		first := 0
		for at := range c.found {
			if at.file == f && (first == 0 || at.pid < first) {
				first = at.pid
			}
		}
		if first != 0 {
			all = append(all, c.found[copyOf{first, f}])
		}
	}
	return all
}

// family is a process and its descendants, at most some dozens.
func family(root int) []int {
	const most = 64
	pids := []int{root}
	for i := 0; i < len(pids) && len(pids) < most; i++ {
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pids[i]))
		for _, list := range lists {
			text, _ := os.ReadFile(list) // it may have ended
			for _, field := range strings.Fields(string(text)) {
				if pid, err := strconv.Atoi(field); err == nil {
					pids = append(pids, pid)
				}
			}
		}
	}
	return pids[:min(len(pids), most)]
}
