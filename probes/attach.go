package probes

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"uprobetop/bpf"
	"uprobetop/symbols"
)

// point is a place for a breakpoint and the cookie that its program gets.
type point struct {
	symbols.Point
	cookie uint64
}

// when is where in a call a program runs.
type when uint8

const (
	atEntry when = iota
	atReturn
	atBoth // a session
)

// attacher is one way of putting a program on points of a file: an attach
// tier. What it returns takes all of them away when closed.
type attacher interface {
	attach(prog *ebpf.Program, at when, f *symbols.File, points []point) (io.Closer, error)
	// together tells whether many points at once are one link.
	together() bool
}

// multi attaches by uprobe_multi: one link for all points.
type multi struct {
	pids []int // only in these processes, by a link each; none: in every one
}

func (multi) together() bool { return true }

// attach has the kernel look at every instruction at once: where nobody maps the
// file yet, it would look only when somebody does, and then refuse in silence.
func (m multi) attach(prog *ebpf.Program, at when, f *symbols.File, points []point) (io.Closer, error) {
	place, err := placer(prog, at, f, points)
	if err != nil {
		return nil, err
	}
	// Of a process whose first thread has ended the kernel would look for that
	// thread's memory, and place nothing in silence (uprobe_multi_link_filter, Linux
	// 6.18).
	if len(m.pids) == 0 || slices.ContainsFunc(m.pids, symbols.FirstEnded) {
		unmap, err := mapPoints(f, points)
		if err != nil {
			return nil, err
		}
		defer unmap()
		l, err := place(0)
		return l, placeError(err, f, points)
	}
	var all links
	for _, pid := range m.pids {
		l, err := place(pid)
		if errors.Is(err, os.ErrNotExist) { // ESRCH: this one has ended
			continue
		}
		if err != nil {
			return nil, errors.Join(placeError(err, f, points), all.Close())
		}
		all = append(all, l)
	}
	if len(all) == 0 {
		return nil, errEnded
	}
	return all, nil
}

// placer makes the link for all points, in one process or, for 0, in every one.
func placer(prog *ebpf.Program, at when, f *symbols.File, points []point) (func(pid int) (io.Closer, error), error) {
	var offsets, cookies, semaphores []uint64
	for _, p := range points {
		offsets = append(offsets, uint64(p.Offset))
		cookies = append(cookies, p.cookie)
		semaphores = append(semaphores, uint64(p.Semaphore))
	}
	x, err := link.OpenExecutable(f.Open)
	if err != nil {
		return nil, openAgainError(f, err)
	}
	if at == atBoth {
		return func(pid int) (io.Closer, error) {
			return bpf.LinkSession(prog, bpf.Points{Path: f.Open, Offsets: offsets, Cookies: cookies, Semaphores: semaphores, PID: pid})
		}, nil
	}
	place := x.UprobeMulti
	if at == atReturn {
		place = x.UretprobeMulti
	}
	return func(pid int) (io.Closer, error) {
		return place(nil, prog, &link.UprobeMultiOptions{Addresses: offsets, Cookies: cookies, RefCtrOffsets: semaphores, PID: uint32(pid)})
	}, nil
}

// errEnded is that nobody is left who could be probed.
var errEnded = errors.New("the process has ended")

// links are closed together.
type links []io.Closer

// Close takes some away at once: each waits for the kernel's grace periods.
func (l links) Close() error {
	errs := make([]error, len(l))
	var g errgroup.Group
	g.SetLimit(8)
	for i, c := range l {
		g.Go(func() error { errs[i] = c.Close(); return nil })
	}
	_ = g.Wait()
	return errors.Join(errs...)
}

// perf attaches by perf events: one for each point, in every process. (A perf
// event can be for one thread, not for a process.)
type perf struct{}

func (perf) together() bool { return false }

func (perf) attach(prog *ebpf.Program, at when, f *symbols.File, points []point) (io.Closer, error) {
	x, err := link.OpenExecutable(f.Open)
	if err != nil {
		return nil, openAgainError(f, err)
	}
	unmap, err := mapPoints(f, points)
	if err != nil {
		return nil, err
	}
	defer unmap()
	place := x.Uprobe
	if at == atReturn {
		place = x.Uretprobe
	}
	var all links
	for _, p := range points {
		l, err := place("", prog, &link.UprobeOptions{Address: uint64(p.Offset), Cookie: p.cookie, RefCtrOffset: uint64(p.Semaphore)})
		if err != nil {
			return nil, errors.Join(placeError(err, f, []point{p}), all.Close())
		}
		alone, err := withoutEvent(l)
		if err != nil {
			return nil, errors.Join(attachError(err), all.Close())
		}
		all = append(all, alone)
	}
	return all, nil
}

// withoutEvent keeps a link and lets go of its perf event, which the link holds as
// well (bpf_perf_link, Linux 5.15): so a point takes one file descriptor, not two.
func withoutEvent(l link.Link) (io.Closer, error) {
	defer l.Close()
	of, ok := l.(interface{ FD() int })
	if !ok {
		return nil, errors.New("the link has no descriptor of its own")
	}
	fd, err := unix.FcntlInt(uintptr(of.FD()), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "bpf-link"), nil
}

// mapPoints maps the part of a file that holds the points as code, as a program
// that runs it does. Nothing of it is run, or even read. Where that is not
// allowed (a file system mounted noexec) nobody can run it either.
func mapPoints(f *symbols.File, points []point) (unmap func(), err error) {
	file, err := os.Open(f.Open)
	if err != nil {
		return nil, openAgainError(f, err)
	}
	defer file.Close()
	first, last := points[0].Offset, points[0].Offset
	for _, p := range points {
		first, last = min(first, p.Offset), max(last, p.Offset)
	}
	page := symbols.Offset(os.Getpagesize())
	first -= first % page
	code, err := unix.Mmap(int(file.Fd()), int64(first), int(last-first)+1, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
	if err != nil {
		return func() {}, nil
	}
	return func() { _ = unix.Munmap(code) }, nil
}

func openAgainError(f *symbols.File, err error) error {
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		return attachError(err)
	}
	return fmt.Errorf("%s cannot be opened again: %w", symbols.Printable(f.Path), err)
}

// placeError is attachError for points of a file. All who probe one of them must name
// the same semaphore for it, or none (alloc_uprobe).
func placeError(err error, f *symbols.File, points []point) error {
	if errors.Is(err, unix.EINVAL) && slices.ContainsFunc(points, func(p point) bool { return p.Semaphore != 0 || f.Guarded(p.Offset) }) {
		return &sentence{"somebody probes the same instruction with another semaphore, or without its own, and the kernel allows one alone: that probe has to go first", err}
	}
	return attachError(err)
}

// attachError gives the kernel's error numbers the meaning that they have here
// (kernel/events/uprobes.c, Linux 6.18).
func attachError(err error) error {
	const enotsupp = unix.Errno(524) // no name outside the kernel
	switch {
	case err == nil:
		return nil
	case errors.Is(err, enotsupp), errors.Is(err, unix.ENOEXEC), errors.Is(err, unix.EOPNOTSUPP):
		return &sentence{"the kernel refuses to step the first instruction", err}
	case errors.Is(err, unix.EIO):
		return &sentence{"the file system of this file does not support breakpoints", err}
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		return &sentence{"too many files are open: each perf event takes one, see ulimit -n", err}
	case errors.Is(err, os.ErrPermission):
		return &sentence{"the kernel does not permit it: root, or CAP_BPF and CAP_PERFMON, are needed", err}
	case errors.Is(err, unix.EINVAL):
		return &sentence{"the kernel does not accept a breakpoint there", err}
	}
	return fmt.Errorf("the kernel does not place it: %w", err)
}
