package symbols

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds on the search among all processes of the host.
var searchTime = 500 * time.Millisecond // a busy host needs it; tests do not depend on it

const searchPatience = 64 // processes that had nothing new, once one had something

// search asks the processes of the host: those that have the very file mapped, then
// those that have the same build of it. It gives up after a while: a process that is
// busy with its mappings lets nobody see them.
func (d *indirect) search() {
	apart := *d // for what may be held up beyond the time, and then ends by itself
	apart.asked, apart.told = map[fileID]*relocated{}, maps.Clone(d.told)
	news, over := make(chan map[uint64]choice), make(chan struct{})
	defer close(over)
	go func() {
		defer close(news)
		apart.searchAll(func() bool {
			select {
			case news <- maps.Clone(apart.told):
				return true
			case <-over:
				return false
			}
		})
	}()
	timer := time.NewTimer(searchTime)
	defer timer.Stop()
	for {
		select {
		case told, more := <-news:
			if !more {
				return
			}
			d.told = told
		case <-timer.C:
			return
		}
	}
}

// searchAll calls tell after each process that knew something, and ends if that
// returns false.
func (d *indirect) searchAll(tell func() bool) {
	pids := witnesses()
	for _, twins := range []bool{false, true} {
		if twins && (len(d.told) > 0 || d.buildID == "") {
			return
		}
		patience := searchPatience
		for _, pid := range pids {
			p := &Process{PID: pid}
			if !twins && !p.maps(d.id) {
				continue
			}
			if t, ok := p.tunables(); !ok || t != "" {
				continue // it may have chosen otherwise than all others
			}
			before := len(d.told)
			d.ask(p)
			switch {
			case len(d.told) > before:
				if patience = searchPatience; !tell() || d.complete() {
					return
				}
			case before > 0:
				if patience--; patience == 0 {
					return
				}
			}
		}
	}
}

// witnesses is the processes of the host, those of root first: what others have in
// memory can be meant to mislead.
func witnesses() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	others := map[int]bool{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		var st unix.Stat_t
		if unix.Stat("/proc/"+e.Name(), &st) != nil {
			continue
		}
		pids = append(pids, pid)
		others[pid] = st.Uid != 0
	}
	slices.SortFunc(pids, func(a, b int) int {
		if others[a] != others[b] {
			return map[bool]int{false: -1, true: 1}[others[a]]
		}
		return cmp.Compare(a, b)
	})
	return pids
}
