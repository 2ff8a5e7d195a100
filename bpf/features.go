package bpf

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
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
	if _, err := os.Stat(UprobePMU + "/type"); err != nil {
		return fmt.Errorf("perf events for uprobes: %w", ebpf.ErrNotSupported)
	}
	return HaveCookie()
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
	// EBADF: it went on to look at the path, which is no file.
	_, err = linkUprobes(prog, ebpf.AttachTraceUprobeMulti, Points{Path: "/", Offsets: []uint64{0}, PID: -1})
	return errors.Is(err, unix.EINVAL)
})

// OptimisedNop is the length in bytes of the nop that the kernel turns into a call
// once its breakpoint was hit: 5 since Linux 6.18, 10 since 7.2, 0 where it does not.
// The system call of that call tells, used from elsewhere: libbpf asks the same.
var OptimisedNop = sync.OnceValue(func() int {
	if runtime.GOARCH != "amd64" {
		return 0
	}
	const uprobe = 336
	switch _, _, errno := unix.Syscall(uprobe, 0, 0, 0); errno {
	case unix.ENXIO:
		return 5
	case unix.EPROTO:
		return 10
	}
	return 0
})

// HaveRingBuffer tells whether the kernel has BPF ring buffers (Linux 5.8).
// An error of this and of the following is as that of HaveUprobeMulti.
func HaveRingBuffer() error { return features.HaveMapType(ebpf.RingBuf) }

// HaveTaskStorage tells whether a probe can keep something with a thread (Linux
// 5.11; in programs of this type a little later).
func HaveTaskStorage() error {
	if err := features.HaveMapType(ebpf.TaskStorage); err != nil {
		return err
	}
	return features.HaveProgramHelper(ebpf.Kprobe, asm.FnTaskStorageGet)
}

// HaveLoop tells whether programs can call bpf_loop (Linux 5.17).
func HaveLoop() error { return features.HaveProgramHelper(ebpf.Syscall, asm.FnLoop) }

// HaveCookie tells whether one program can serve many probes (Linux 5.15).
func HaveCookie() error { return features.HaveProgramHelper(ebpf.Kprobe, asm.FnGetAttachCookie) }

// HaveHooks tells whether programs can be attached to the end of threads, by BTF
// (Linux 5.5).
func HaveHooks() error {
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type:         ebpf.Tracing,
		AttachType:   ebpf.AttachTraceRawTp,
		AttachTo:     "sched_process_exit",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
		License:      "GPL",
	})
	if err != nil {
		return err
	}
	return prog.Close()
}

// UprobePMU is the directory in which the kernel describes uprobes as perf events
// (Linux 4.17, commit 33ea4b24277b).
const UprobePMU = "/sys/bus/event_source/devices/uprobe"

// HavePerfEvent tells whether a perf event can be opened on a function of this
// process itself: on the instruction at the offset in the file of a path. It is
// closed before it has counted anything.
func HavePerfEvent(path string, offset uint64) error {
	text, err := os.ReadFile(UprobePMU + "/type")
	if errors.Is(err, os.ErrNotExist) {
		return ebpf.ErrNotSupported
	} else if err != nil {
		return err
	}
	typ, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
	if err != nil {
		return fmt.Errorf("the kernel's number for uprobes is not understood: %w", err)
	}
	name, err := unix.BytePtrFromString(path)
	if err != nil {
		return err
	}
	attr := unix.PerfEventAttr{
		Type: uint32(typ), Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})), Bits: unix.PerfBitDisabled,
		Ext1: uint64(uintptr(unsafe.Pointer(name))), Ext2: offset, // uprobe_path, probe_offset
	}
	fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	runtime.KeepAlive(name)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}
