package symbols

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestThread(t *testing.T) {
	ids, end := make(chan int), make(chan bool)
	var own func()
	own = func() {
		runtime.LockOSThread() // the thread ends with this goroutine
		if unix.Gettid() == os.Getpid() {
			go own() // on another one: the first is kept to the end
		} else {
			ids <- unix.Gettid()
		}
		<-end
	}
	go own()
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
	for deadline := time.Now().Add(30 * time.Second); th.Alive(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) { // the kernel takes it away in its own time
			t.Fatal("it lives after its end")
		}
	}
	for tid, want := range map[int]string{0: "is no thread id", -1: "is no thread id", 1 << 30: "thread 1073741824 does not exist"} {
		if _, err := OpenThread(tid); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v", tid, err)
		}
	}
}
