package assets

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"syscall"
)

// EmptyProcess is a running program of functions that do nothing, whose names begin
// with "empty_": see empty/empty.c. The file to probe is /proc/PID/exe, which nobody
// else maps. Its methods are for one goroutine.
type EmptyProcess struct {
	cmd *exec.Cmd
	in  io.WriteCloser // its end ends the program
	out io.Reader
}

// StartEmpty starts the program. It runs until Stop, the end of ctx or the end of this
// process, whatever ends it, and it leaves no file.
func StartEmpty(ctx context.Context) (*EmptyProcess, error) {
	if len(emptyELF) == 0 {
		return nil, fmt.Errorf("there is no program of empty functions for %s, only for amd64 and arm64", runtime.GOARCH)
	}
	program, err := namelessProgram("empty", []byte(emptyELF))
	if err != nil {
		return nil, err
	}
	defer program.Close()
	p := &EmptyProcess{cmd: exec.CommandContext(ctx, "/proc/self/fd/3")}
	p.cmd.Args, p.cmd.Env, p.cmd.Dir = []string{"empty"}, []string{}, "/"
	p.cmd.ExtraFiles = append(p.cmd.ExtraFiles, program)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for uprobetop
	if p.in, err = p.cmd.StdinPipe(); err == nil {
		p.out, err = p.cmd.StdoutPipe()
	}
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("this host does not let the program of empty functions run: %w", err)
	}
	return p, nil
}

// PID is the process id of the program.
func (p *EmptyProcess) PID() int { return p.cmd.Process.Pid }

// Call has the program call the function at this address so many times, and returns when
// it has.
func (p *EmptyProcess) Call(address, calls uint64) error {
	asked := binary.NativeEndian.AppendUint64(nil, address)
	_, err := p.in.Write(binary.NativeEndian.AppendUint64(asked, calls))
	if err == nil {
		_, err = io.ReadFull(p.out, make([]byte, 1))
	}
	if err != nil {
		return fmt.Errorf("the program of empty functions has ended: %w", err)
	}
	return nil
}

// Stop ends the program and waits for its end.
func (p *EmptyProcess) Stop() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}
