package probes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// HeldArg is the first argument with which uprobetop is run as a shim; main hands
// such a run to RunHeld.
const HeldArg = "__held"

// heldFD is the pipe on which a shim waits.
const heldFD = 3

// Command is a program that is started once the probes stand. Until then it is
// a shim, uprobetop run again, with the process id that the program will have:
// so the filter knows it before its first instruction.
type Command struct {
	cmd    *exec.Cmd
	gate   *os.File // nil once released
	ended  context.Context
	status int
}

// Hold starts the shim for a command line. An error says that the program is not
// there (fs.ErrNotExist) or may not be run (fs.ErrPermission).
func Hold(argv []string, stdin io.Reader, stdout, stderr io.Writer) (*Command, error) {
	path, err := exec.LookPath(argv[0])
	if errors.Is(err, exec.ErrDot) {
		err = fs.ErrNotExist
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, &sentence{fmt.Sprintf("%s may not be run: it is not executable", argv[0]), err}
	case err != nil:
		return nil, &sentence{fmt.Sprintf("there is no program %s", argv[0]), errors.Join(err, fs.ErrNotExist)}
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("cannot make a pipe: %w", err)
	}
	defer r.Close()
	cmd := exec.Command("/proc/self/exe", append([]string{HeldArg, path}, argv...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	cmd.ExtraFiles = []*os.File{r}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot start %s: %w", argv[0], err), w.Close())
	}
	ended, end := context.WithCancel(context.Background())
	c := &Command{cmd: cmd, gate: w, ended: ended}
	go func() {
		defer end()
		c.wait()
	}()
	return c, nil
}

// wait waits for the program's end and keeps its status.
func (c *Command) wait() {
	_ = c.cmd.Wait() // an error here repeats the status, or says that a pipe broke
	state := c.cmd.ProcessState
	if state == nil {
		c.status = 1
		return
	}
	c.status = state.ExitCode()
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		c.status = 128 + int(ws.Signal())
	}
}

// PID is the process id of the shim, and then of the program.
func (c *Command) PID() int { return c.cmd.Process.Pid }

// Ended is done when the program has ended.
func (c *Command) Ended() context.Context { return c.ended }

// Status is how the program ended, as shells say it: its exit code, or 128 and
// the number of the signal that ended it. It is 0 while the program runs.
func (c *Command) Status() int {
	if c.ended.Err() == nil {
		return 0
	}
	return c.status
}

// Release lets the program begin.
func (c *Command) Release() error {
	_, err := c.gate.Write([]byte{1})
	err = errors.Join(err, c.gate.Close())
	c.gate = nil
	return err
}

// Cancel ends the shim without running the program, if it was not released.
func (c *Command) Cancel() {
	if c.gate == nil {
		return
	}
	_ = c.gate.Close() // the shim reads its end and exits
	<-c.ended.Done()
}

// Signal sends the program a signal.
func (c *Command) Signal(s os.Signal) error { return c.cmd.Process.Signal(s) }

// RunHeld is the shim: it waits for the gate, then becomes the program. args are
// the program's path and its argv. It returns only if that cannot be: with 127,
// or, after a word on stderr, 126.
func RunHeld(args []string) int {
	gate := os.NewFile(heldFD, "gate")
	unix.CloseOnExec(heldFD)
	var b [1]byte
	if n, _ := gate.Read(b[:]); n != 1 {
		return 127 // uprobetop ended, or nothing could be probed
	}
	err := unix.Exec(args[0], args[1:], os.Environ())
	if errors.Is(err, unix.ENOEXEC) { // a script without #!, as execvp runs it
		err = unix.Exec("/bin/sh", append([]string{"sh", args[0]}, args[2:]...), os.Environ())
	}
	fmt.Fprintf(os.Stderr, "uprobetop: %s cannot be run: %v\n", args[1], err)
	return 126
}
