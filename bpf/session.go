package bpf

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// AttachSession is BPF_TRACE_UPROBE_SESSION, which cilium/ebpf does not export.
const AttachSession = ebpf.AttachType(57)

// HaveSession tells whether a program can run at a hit and at its return, with a
// cookie that the kernel carries from one to the other (Linux 6.13, commit
// d920179b3d48), by trying. An error is ebpf.ErrNotSupported, or says why it could
// not be tried.
func HaveSession() error {
	if _, err := sessionTakesContext(); err != nil {
		return err
	}
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type:         ebpf.Kprobe,
		AttachType:   AttachSession,
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
		License:      "GPL",
	})
	if errors.Is(err, unix.EINVAL) {
		return ebpf.ErrNotSupported
	}
	if err != nil {
		return err
	}
	defer prog.Close()
	// EBADF: it went on to look at the path, which is no file.
	switch _, err := linkUprobes(prog, AttachSession, Points{Path: "/", Offsets: []uint64{0}}); {
	case errors.Is(err, unix.EBADF):
		return nil
	case errors.Is(err, unix.EINVAL):
		return ebpf.ErrNotSupported
	default:
		return err
	}
}

// sessionTakesContext tells whether the kernel's functions for sessions have an
// argument (from Linux 7.0 on), or is ebpf.ErrNotSupported if there are none.
func sessionTakesContext() (bool, error) {
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		return false, fmt.Errorf("the kernel's BTF cannot be read: %w", err)
	}
	var f *btf.Func
	if err := kernel.TypeByName("bpf_session_cookie", &f); errors.Is(err, btf.ErrNotFound) {
		return false, fmt.Errorf("the function bpf_session_cookie: %w", ebpf.ErrNotSupported)
	} else if err != nil {
		return false, err
	}
	proto, ok := f.Type.(*btf.FuncProto)
	return ok && len(proto.Params) > 0, nil
}

// loadSessionProgram loads the program of timed probes, which works on these maps.
func loadSessionProgram(maps *uprobetopMaps, o Options, cpus int) (*ebpf.Program, error) {
	context, err := sessionTakesContext()
	if err != nil {
		return nil, err
	}
	load := loadSession
	if context {
		load = loadSessionContext
	}
	spec, err := load()
	if err != nil {
		return nil, fmt.Errorf("the embedded BPF object is damaged: %w", err)
	}
	if err := shape(spec, o, cpus); err != nil {
		return nil, err
	}
	var loaded struct {
		Session *ebpf.Program `ebpf:"session"`
	}
	if err := spec.LoadAndAssign(&loaded, &ebpf.CollectionOptions{MapReplacements: map[string]*ebpf.Map{
		"admitted":         maps.Admitted,
		"admitted_threads": maps.AdmittedThreads,
		"call_budgets":     maps.CallBudgets,
		"calls":            maps.Calls,
		"cells":            maps.Cells,
		"cgroups":          maps.Cgroups,
		"contexts":         maps.Contexts,
		"hists":            maps.Hists,
		"other_shares":     maps.OtherShares,
		"shares":           maps.Shares,
		"shares_full":      maps.SharesFull,
		"switches":         maps.Switches,
	}}); err != nil {
		return nil, fmt.Errorf("the kernel does not load the BPF program of sessions: %w", err)
	}
	return loaded.Session, nil
}

// Points are places in a file for a program.
type Points struct {
	Path                         string
	Offsets, Cookies, Semaphores []uint64 // equally many, or empty
	PID                          int      // of the process in which alone they are placed; 0: in every one
}

// LinkSession puts Objects.Session on points. Closing takes it away. An error is the
// kernel's number, or os.ErrNotExist if there is no such process.
func LinkSession(session *ebpf.Program, p Points) (io.Closer, error) {
	fd, err := linkUprobes(session, AttachSession, p)
	if errors.Is(err, unix.ESRCH) {
		return nil, fmt.Errorf("process %d has ended: %w", p.PID, os.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "bpf-link"), nil
}

// linkUprobes is the system call that makes a uprobe_multi link (Linux 6.6), here for
// what cilium/ebpf does not call it for.
func linkUprobes(prog *ebpf.Program, as ebpf.AttachType, p Points) (fd int, err error) {
	path, err := unix.ByteSliceFromString(p.Path)
	if err != nil {
		return -1, err
	}
	// union bpf_attr.link_create, with its part uprobe_multi.
	attr := struct {
		prog, target, attach, flags        uint32
		path, offsets, semaphores, cookies unsafe.Pointer
		count, multi                       uint32
		pid                                int32
		_                                  uint32
	}{
		prog: uint32(prog.FD()), attach: uint32(as), count: uint32(len(p.Offsets)), pid: int32(p.PID),
		path: unsafe.Pointer(&path[0]), offsets: first(p.Offsets), semaphores: first(p.Semaphores), cookies: first(p.Cookies),
	}
	r, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_LINK_CREATE, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	runtime.KeepAlive(prog)
	if errno != 0 {
		return -1, errno
	}
	return int(r), nil
}

// first is where the kernel finds the numbers; nil if there are none.
func first(numbers []uint64) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(numbers)) }
