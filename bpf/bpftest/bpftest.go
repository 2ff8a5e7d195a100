// Package bpftest is what the tests share that put real probes on real
// programs.
package bpftest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Main runs the tests of a package one at a time with those of every other
// package that calls it: they share two CPUs and one kernel. Call it in TestMain
// and exit with its result.
func Main(m *testing.M) int {
	if os.Getenv("UPROBETOP_TEST_CHILD") == "1" || slices.Contains(os.Args, "-test.fuzzworker") {
		return m.Run() // the test that started us holds the lock
	}
	lock, err := os.OpenFile(filepath.Join(os.TempDir(), "uprobetop-test.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		defer lock.Close()
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "tests run beside those of other packages: %v\n", err)
	}
	if made.dir, err = os.MkdirTemp("", "uprobetop-test"); err != nil {
		fmt.Fprintf(os.Stderr, "tests compile every program anew: %v\n", err)
	} else {
		defer os.RemoveAll(made.dir)
	}
	return m.Run()
}

// Require skips the test where this process may not load BPF or the kernel
// cannot, which is what err (of loading or attaching) says. With
// UPROBETOP_REQUIRE_BPF=1 that is a failure, as is every other error always.
func Require(t testing.TB, err error) {
	t.Helper()
	cannot := errors.Is(err, os.ErrPermission) || errors.Is(err, ebpf.ErrNotSupported)
	switch {
	case err == nil:
	case cannot && os.Getenv("UPROBETOP_REQUIRE_BPF") != "1":
		t.Skipf("BPF is not to be had here: %v", err)
	default:
		var rejected *ebpf.VerifierError
		if errors.As(err, &rejected) {
			log := rejected.Log
			t.Log(strings.Join(log[max(0, len(log)-60):], "\n"))
		}
		t.Fatal(err)
	}
}

// Long skips the test unless UPROBETOP_LONG=1.
func Long(t testing.TB) {
	t.Helper()
	if os.Getenv("UPROBETOP_LONG") != "1" {
		t.Skip("takes long: runs with UPROBETOP_LONG=1")
	}
}

// Emulated tells that this machine is emulated, as .ci/init says: all takes some ten
// times as long, so that a tenth of the hits is preempted as often.
func Emulated() bool { return os.Getenv("UPROBETOP_EMULATED") == "1" }

// Object compiles the BPF programs with a fault and returns the object; with
// UPROBETOP_TARGETS set to a directory it is taken from there instead. The faults
// are those of hit.h, by the name that FAULT has: PLAIN_ADDS, LOSE_POP=7.
func Object(t testing.TB, fault string) []byte {
	t.Helper()
	path := filepath.Join(os.Getenv("UPROBETOP_TARGETS"), fault+".o")
	if os.Getenv("UPROBETOP_TARGETS") == "" {
		clang, err := exec.LookPath("clang-19")
		if err != nil {
			t.Skip("there is no clang-19")
		}
		arch, triplet := "x86", "x86_64-linux-gnu"
		if runtime.GOARCH == "arm64" {
			arch, triplet = "arm64", "aarch64-linux-gnu"
		}
		_, here, _, _ := runtime.Caller(0)
		path = filepath.Join(t.TempDir(), "fault.o")
		msg, err := exec.Command(clang, "-O2", "-g", "-target", "bpf", "-mcpu=v1", "-D__TARGET_ARCH_"+arch, "-D"+fault,
			"-I/usr/include/"+triplet, "-c", filepath.Join(filepath.Dir(here), "..", "uprobetop.bpf.c"), "-o", path).CombinedOutput()
		if err != nil {
			t.Fatalf("clang: %v\n%s", err, msg)
		}
	}
	object, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// Start starts a command with pipes to its input and from its output. It is waited
// for at the end of the test, once its input has ended.
func Start(t testing.TB, cmd *exec.Cmd) (in io.WriteCloser, out *bufio.Reader) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	return in, bufio.NewReader(pipe)
}
