package probes

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"uprobetop/symbols"
)

// point is a place for a breakpoint and the cookie that its program gets.
type point struct {
	offset symbols.Offset
	cookie uint64
}

// attacher is one way of putting a program on points of a file: an attach
// tier. What it returns takes all of them away when closed.
type attacher interface {
	attach(prog *ebpf.Program, ret bool, f *symbols.File, points []point) (io.Closer, error)
}

// multi attaches by uprobe_multi: one link for all points.
type multi struct {
	pid int // only in this process; 0: in every one
}

func (m multi) attach(prog *ebpf.Program, ret bool, f *symbols.File, points []point) (io.Closer, error) {
	x, err := link.OpenExecutable(f.Open)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be opened again: %w", f.Path, err)
	}
	o := &link.UprobeMultiOptions{PID: uint32(m.pid)}
	for _, p := range points {
		o.Addresses = append(o.Addresses, uint64(p.offset))
		o.Cookies = append(o.Cookies, p.cookie)
	}
	place := x.UprobeMulti
	if ret {
		place = x.UretprobeMulti
	}
	l, err := place(nil, prog, o)
	if err != nil {
		return nil, attachError(err)
	}
	return l, nil
}

// attachError gives the kernel's error numbers the meaning that they have here
// (kernel/events/uprobes.c, Linux 6.18).
func attachError(err error) error {
	const enotsupp = unix.Errno(524) // no name outside the kernel
	switch {
	case errors.Is(err, enotsupp), errors.Is(err, unix.ENOEXEC), errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("the kernel refuses to step its first instruction: %w", err)
	case errors.Is(err, unix.EIO):
		return fmt.Errorf("the file system of this file does not support breakpoints: %w", err)
	case errors.Is(err, unix.ESRCH):
		return fmt.Errorf("the process has ended: %w", err)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("the kernel does not permit it, root or CAP_BPF and CAP_PERFMON are needed: %w", err)
	case errors.Is(err, unix.EINVAL):
		return fmt.Errorf("the kernel does not accept a breakpoint there: %w", err)
	}
	return fmt.Errorf("the kernel does not place it: %w", err)
}
