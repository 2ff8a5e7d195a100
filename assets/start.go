package assets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// DemoProcess is a running demo program. Its methods may be called from any
// goroutine.
type DemoProcess struct {
	cmd    *exec.Cmd
	stdin  *os.File // a byte changes the scene, its end of file ends the program
	output bytes.Buffer
	done   chan struct{}
	status error // of Wait, set before done is closed
	stop   sync.Once
	err    error // of Stop
}

// StartDemo starts the demo program and returns when all of its threads run.
// args are added to its command line, see Demo. It runs until Stop, the end of
// ctx or the end of this process, whatever ends it; the file that it runs has
// no name in any file system, so that nothing remains. The file to probe is
// /proc/PID/exe.
//
// The error says what this architecture or this host does not allow.
func StartDemo(ctx context.Context, args ...string) (*DemoProcess, error) {
	elf, err := Demo()
	if err != nil {
		return nil, err
	}
	program, err := namelessProgram("demo", elf)
	if err != nil {
		return nil, err
	}
	defer program.Close()

	stdin, stdinWriter, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("the demo program has no standard input: %w", err)
	}
	defer stdin.Close()
	ready, readyWriter, err := os.Pipe()
	if err != nil {
		stdinWriter.Close()
		return nil, fmt.Errorf("the demo program cannot tell when it is ready: %w", err)
	}
	defer ready.Close()

	p := &DemoProcess{stdin: stdinWriter, done: make(chan struct{})}
	// An extra file gets a number that fork and exec in package syscall leave
	// alone. In another process the number of program could be taken.
	p.cmd = exec.CommandContext(ctx, "/proc/self/fd/3")
	p.cmd.ExtraFiles = []*os.File{program, readyWriter}
	p.cmd.Args = append([]string{"demo", "--until-eof"}, args...)
	p.cmd.Env = []string{}
	p.cmd.Dir = "/"
	p.cmd.Stdin = stdin
	p.cmd.Stdout = &p.output
	// A group of its own: Ctrl-C at the terminal is for uprobetop, which then
	// reads the last numbers while the program still runs.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = p.cmd.Start()
	readyWriter.Close()
	if err != nil {
		stdinWriter.Close()
		return nil, fmt.Errorf("this host does not let the demo program run: %w", err)
	}
	go p.wait()

	// The program closes its end when its workers run, or by ending.
	if _, err := io.Copy(io.Discard, ready); err != nil {
		p.Stop() //nolint:errcheck // the first error is the one to tell
		return nil, fmt.Errorf("the demo program did not say that it runs: %w", err)
	}
	return p, nil
}

func (p *DemoProcess) wait() {
	p.status = p.cmd.Wait()
	p.stdin.Close()
	close(p.done)
}

// PID is the process id of the program.
func (p *DemoProcess) PID() int { return p.cmd.Process.Pid }

// Done is closed when the program has ended and its output is complete.
func (p *DemoProcess) Done() <-chan struct{} { return p.done }

// Output waits for the end of the program and returns what it printed, which is
// nothing without "--calls".
func (p *DemoProcess) Output() string {
	<-p.done
	return p.output.String()
}

// Stop ends the program and waits for its end. A second call does nothing and
// returns what the first did. The error is that of a program which had ended
// badly before it was stopped.
func (p *DemoProcess) Stop() error {
	p.stop.Do(func() {
		select {
		case <-p.done:
			if p.status != nil {
				p.err = fmt.Errorf("the demo program had ended before it was stopped: %w", p.status)
			}
		default:
			// Nothing is kept or flushed by the program, so it need not be asked.
			// The error is that it has just ended.
			_ = p.cmd.Process.Kill()
			<-p.done
		}
	})
	return p.err
}

// namelessProgram returns an executable file with this content, open for
// reading, that no directory knows: it is gone when nobody uses it any more. The
// name is for people.
func namelessProgram(name string, elf []byte) (*os.File, error) {
	program, inMemory := writeNameless(elf, func() (int, error) { return openMemory(name) })
	if inMemory == nil {
		return program, nil
	}
	// A host may refuse programs in memory: sysctl vm.memfd_noexec=2.
	program, onDisk := writeNameless(elf, openUnlinked)
	if onDisk == nil {
		return program, nil
	}
	return nil, fmt.Errorf("there is no room for the %s program, set TMPDIR to a directory "+
		"that programs can run from: %w", name, errors.Join(inMemory, onDisk))
}

func openMemory(name string) (int, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3 all are executable
		fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	}
	if err != nil {
		return -1, os.NewSyscallError("memfd_create", err)
	}
	return fd, nil
}

func openUnlinked() (int, error) {
	fd, err := unix.Open(os.TempDir(), unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o700)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: os.TempDir(), Err: err}
	}
	return fd, nil
}

// writeNameless fills a file from open and opens it again for reading: a file
// that anybody has open for writing cannot be run. The lock keeps a child that
// is being forked meanwhile from being that anybody.
func writeNameless(elf []byte, open func() (int, error)) (*os.File, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := open()
	if err != nil {
		return nil, err
	}
	writer := os.NewFile(uintptr(fd), "demo")
	defer writer.Close()
	if _, err := writer.Write(elf); err != nil {
		return nil, err
	}
	return os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
}
