package bpf

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"
)

// PossibleCPUs is how many CPUs the kernel may ever bring online.
func PossibleCPUs() (int, error) {
	n, err := ebpf.PossibleCPU()
	if err != nil {
		return 0, fmt.Errorf("cannot tell how many CPUs are possible: %w", err)
	}
	return n, nil
}

// HaveUprobeMulti tells whether the kernel has uprobe_multi links (Linux 6.6,
// commit 89ae89f53d20), by trying. An error is ebpf.ErrNotSupported, or says why
// it could not be tried.
func HaveUprobeMulti() error { return features.HaveBPFLinkUprobeMulti() }

// HavePerfUprobes tells whether perf events can be uprobes that carry a cookie
// (Linux 4.17, and 5.15 for the cookie). An error is ebpf.ErrNotSupported, or says
// why it could not be tried.
func HavePerfUprobes() error {
	if _, err := os.Stat("/sys/bus/event_source/devices/uprobe/type"); err != nil {
		return fmt.Errorf("perf events for uprobes: %w", ebpf.ErrNotSupported)
	}
	return features.HaveProgramHelper(ebpf.Kprobe, asm.FnGetAttachCookie)
}

// ProcessFilter tells whether the process filter of a uprobe_multi link means a
// whole process. From 6.6 to 6.9 it meant one thread (fixed by commit
// 46ba0e49b642, which also began to reject negative numbers: that is asked for
// here, as libbpf does).
var ProcessFilter = sync.OnceValue(func() bool {
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type:         ebpf.Kprobe,
		AttachType:   ebpf.AttachTraceUprobeMulti,
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
		License:      "GPL",
	})
	if err != nil {
		return false
	}
	defer prog.Close()
	path, offset := []byte("/\x00"), uint64(0)
	// union bpf_attr.link_create, with its part uprobe_multi (Linux 6.6 UAPI).
	attr := struct {
		prog, target, attach, flags uint32
		path, offsets, refs, cookie uint64
		count, multi                uint32
		pid                         int32
		_                           uint32
	}{
		prog: uint32(prog.FD()), attach: uint32(ebpf.AttachTraceUprobeMulti), count: 1, pid: -1,
		path: uint64(uintptr(unsafe.Pointer(&path[0]))), offsets: uint64(uintptr(unsafe.Pointer(&offset))),
	}
	_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_LINK_CREATE, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	runtime.KeepAlive(&path)
	runtime.KeepAlive(&offset)
	return errno == unix.EINVAL // EBADF: it went on to look at the path, which is no file
})
