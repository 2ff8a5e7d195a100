package symbols

import (
	"fmt"

	"github.com/prometheus/procfs"
)

// Thread is one thread of a process.
type Thread struct {
	TID     int
	Start   uint64 // clock ticks after boot at which it started: with TID it names one thread for good
	Process *Process
}

// OpenThread looks at a thread and its process. An error is one sentence.
func OpenThread(tid int) (*Thread, error) {
	if tid <= 0 {
		return nil, fmt.Errorf("%d is no thread id: they are above 0", tid)
	}
	proc, st, err := lookAt(tid)
	if err != nil {
		if gone(err) {
			err = sentence{fmt.Sprintf("thread %d does not exist: it has ended, or the number is wrong", tid), err}
		}
		return nil, err
	}
	status, err := proc.NewStatus()
	if err != nil {
		return nil, sentence{fmt.Sprintf("thread %d has ended", tid), err}
	}
	p, err := OpenProcess(status.TGID)
	if err != nil {
		return nil, err
	}
	return &Thread{TID: tid, Start: st.Starttime, Process: p}, nil
}

// Alive says whether the thread still runs.
func (t *Thread) Alive() bool {
	_, st, err := lookAt(t.TID)
	return err == nil && st.Starttime == t.Start && st.State != "Z" && st.State != "X"
}

// ProcessOf is the process of a thread, or 0 if it has ended.
func ProcessOf(tid int) int {
	proc, err := procfs.NewProc(tid)
	if err != nil {
		return 0
	}
	status, err := proc.NewStatus()
	if err != nil {
		return 0
	}
	return status.TGID
}
