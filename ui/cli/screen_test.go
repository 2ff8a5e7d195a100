package cli

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// terminal is a pseudo terminal with a program in it and an emulator that
// understands what the program draws.
type terminal struct {
	t    *testing.T
	cmd  *exec.Cmd
	file *os.File

	mu    sync.Mutex   // guards what follows
	emu   *vt.Emulator // but not its answers, which it writes into a pipe
	drawn *sync.Cond
	late  bool
	ended bool
}

// openTerminal runs the program under test in a terminal of this size.
func openTerminal(t *testing.T, width, height int, args ...string) *terminal {
	t.Helper()
	return openTerminalOf(t, width, height, program(args...))
}

// openTerminalOf is openTerminal for a program that is started in another way.
func openTerminalOf(t *testing.T, width, height int, cmd *exec.Cmd) *terminal {
	t.Helper()
	x := &terminal{t: t, cmd: cmd, emu: vt.NewEmulator(width, height)}
	x.drawn = sync.NewCond(&x.mu)
	x.cmd.Env = append(x.cmd.Env, "TERM=xterm-256color", "LANG=C.UTF-8", "LC_ALL=C.UTF-8")
	f, err := pty.StartWithSize(x.cmd, &pty.Winsize{Rows: uint16(height), Cols: uint16(width)})
	if err != nil {
		t.Fatal(err)
	}
	x.file = f
	go func() { _, _ = io.Copy(f, x.emu) }()
	go x.read()
	t.Cleanup(func() {
		x.cmd.Process.Kill()
		x.cmd.Wait()
		f.Close()
	})
	return x
}

func (x *terminal) read() {
	buf := make([]byte, 1<<16)
	for {
		n, err := x.file.Read(buf)
		x.mu.Lock()
		_, _ = x.emu.Write(buf[:n])
		x.ended = err != nil
		x.drawn.Broadcast()
		x.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// wait waits until the screen matches a pattern and returns it.
func (x *terminal) wait(pattern string) string {
	x.t.Helper()
	return x.until(strconv.Quote(pattern), regexp.MustCompile(pattern).MatchString)
}

// until is wait for what no pattern can say.
func (x *terminal) until(what string, there func(screen string) bool) string {
	x.t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.late = false
	timer := time.AfterFunc(20*time.Second, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.late = true
		x.drawn.Broadcast()
	})
	defer timer.Stop()
	for {
		screen := x.emu.String()
		if there(screen) {
			return screen
		}
		if x.late || x.ended {
			x.t.Fatalf("the screen does not show %s:\n%s", what, screen)
		}
		x.drawn.Wait()
	}
}

func (x *terminal) press(keys string) {
	x.t.Helper()
	if _, err := x.file.WriteString(keys); err != nil {
		x.t.Fatal(err)
	}
}

// leave presses q and waits for the end; the terminal has to be as before.
func (x *terminal) leave(before *unix.Termios) {
	x.t.Helper()
	x.press("q")
	stuck := time.AfterFunc(20*time.Second, func() { _ = x.cmd.Process.Kill() })
	err := x.cmd.Wait()
	stuck.Stop()
	if err != nil {
		x.t.Errorf("q: %v", err)
	}
	after, err := unix.IoctlGetTermios(int(x.file.Fd()), unix.TCGETS)
	if err != nil {
		x.t.Fatal(err)
	}
	if before != nil && *after != *before {
		x.t.Errorf("the terminal is left as %+v, it was %+v", after, before)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for !x.ended { // what it drew last may still have to be read
		x.drawn.Wait()
	}
	if x.emu.IsAltScreen() {
		x.t.Error("the alternate screen is still there")
	}
}

func termios(t *testing.T) *unix.Termios {
	t.Helper()
	p, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	defer tty.Close()
	s, err := unix.IoctlGetTermios(int(p.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What the screen says in the end is what the target counted: from the program's
// start through keys to the ledger.
func TestScreenIsExact(t *testing.T) {
	requireBPF(t)
	calls := target(t, "calls")
	x := openTerminal(t, 120, 40, "-r", calls, "work")
	x.wait(`work +ret`)
	made, err := exec.Command(calls, "4", "10000").Output()
	if err != nil || string(made) != "40000\n" {
		t.Fatalf("the target says %q: %v", made, err)
	}
	x.press("4")
	screen := x.wait(`40,000`)
	if !strings.Contains(screen, "the books balance") {
		t.Errorf("the ledger does not say that the books balance:\n%s", screen)
	}
	x.press(" ") // not probed any more
	x.wait(`○ work`)
	x.press(" ") // counted anew
	x.wait(`work +entry`)
	x.leave(termios(t))
}

// The screen follows the terminal's size, below what it needs too.
func TestScreenResize(t *testing.T) {
	requireBPF(t)
	calls := target(t, "calls")
	x := openTerminal(t, 120, 40, calls, "work")
	x.wait(`work +entry`)
	for _, size := range [][2]int{{60, 12}, {44, 9}, {80, 24}, {200, 50}} {
		x.mu.Lock()
		x.emu.Resize(size[0], size[1])
		x.mu.Unlock()
		if err := pty.Setsize(x.file, &pty.Winsize{Cols: uint16(size[0]), Rows: uint16(size[1])}); err != nil {
			t.Fatal(err)
		}
		if size[0] < 60 {
			x.wait(fmt.Sprint(size[0]))
		} else {
			x.wait(`work`)
		}
	}
	x.leave(nil)
}

// A target that is started again can be followed, with what was measured.
func TestScreenFollows(t *testing.T) {
	requireBPF(t)
	slow := target(t, "slow")
	start := func() (cmd *exec.Cmd, goOn func()) {
		cmd = exec.Command(slow, "threads", "2", "500")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := false
		end := func() {
			if !ended {
				ended = true
				in.Close() // it goes on and ends
				_ = cmd.Wait()
			}
		}
		t.Cleanup(end)
		return cmd, end
	}
	first, end := start()
	x := openTerminal(t, 120, 40, "-r", "-p", strconv.Itoa(first.Process.Pid), "slow", "step")
	x.wait(`step +ret`)
	end()
	x.wait(`has ended; its numbers stay`)
	second, end := start()
	x.wait(fmt.Sprintf(`has ended and runs again as %d`, second.Process.Pid))
	x.press("o")
	x.wait(fmt.Sprintf(`slow %d .*1 probe`, second.Process.Pid))
	x.wait(`step +ret`)
	x.press("4") // the ledger
	end()
	x.wait(`1,000`)
	x.leave(nil)
}
