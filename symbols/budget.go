package symbols

import (
	"fmt"
	"os"
	"sync"
	"syscall"
)

// Bounds on holes, which cost whoever made them nothing: 64 MB may be one, and more
// if the file is not much smaller on disk. File systems that compress make names a
// tenth as large.
const (
	maxHole    = 64 << 20 // bytes
	compressed = 16       // times
)

// most is how many bytes of a file are worth reading in one piece. Some file systems
// do not tell what a file has on disk: then it is all.
func (im *image) most() uint64 {
	file, ok := im.r.(*os.File)
	if !ok {
		return im.size
	}
	st, err := file.Stat()
	if err != nil {
		return im.size
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok || sys.Blocks == 0 {
		return im.size
	}
	return max(maxHole, uint64(sys.Blocks)*512*compressed)
}

// maxProcessNames is how many bytes of names are held of all files of one process:
// it can map thousands.
const maxProcessNames = 2 << 30

// budget is the bytes of names that are held of the files of a process.
type budget struct {
	sync.Mutex
	taken uint64
}

// take asks for n bytes more. Of a nil budget there are always enough.
func (b *budget) take(n uint64) error {
	if b == nil {
		return nil
	}
	b.Lock()
	defer b.Unlock()
	if n > maxProcessNames-min(b.taken, maxProcessNames) {
		return fmt.Errorf("is not read: the files of its process have more than %d MB of names; name the file alone", maxProcessNames>>20)
	}
	b.taken += n
	return nil
}

// give returns what was taken.
func (b *budget) give(n uint64) {
	if b == nil {
		return
	}
	b.Lock()
	defer b.Unlock()
	b.taken -= min(n, b.taken)
}
