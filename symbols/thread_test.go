package symbols

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestThread(t *testing.T) {
	ids, end, ended := make(chan int), make(chan bool), make(chan bool)
	go func() {
		runtime.LockOSThread() // the thread ends with this goroutine
		ids <- unix.Gettid()
		<-end
		close(ended)
	}()
	tid := <-ids
	th, err := OpenThread(tid)
	if err != nil {
		t.Fatal(err)
	}
	if th.TID != tid || th.Process.PID != os.Getpid() || len(th.Process.Mappings) == 0 || !th.Alive() {
		t.Errorf("got %+v", th)
	}
	main, err := OpenThread(os.Getpid())
	if err != nil || main.Process.PID != os.Getpid() {
		t.Errorf("the first thread: %+v, %v", main, err)
	}
	another := *th
	another.Start++
	if another.Alive() {
		t.Error("a thread that started at another time passes for this one")
	}
	close(end)
	<-ended
	for th.Alive() { // the kernel takes it away in its own time
		runtime.Gosched()
	}
	for tid, want := range map[int]string{0: "is no thread id", -1: "is no thread id", 1 << 30: "thread 1073741824 does not exist"} {
		if _, err := OpenThread(tid); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v", tid, err)
		}
	}
}
