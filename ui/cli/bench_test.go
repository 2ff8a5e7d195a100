package cli

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// program builds uprobetop as users have it.
func buildProgram(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "uprobetop")
	cmd := exec.Command("go", "build", "-o", path, "uprobetop")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return path
}

func needNM(b *testing.B) {
	b.Helper()
	if _, err := exec.LookPath("nm"); err != nil {
		b.Skipf("nothing to compare with: %v", err)
	}
}

// spent is what runs of a program took.
type spent struct {
	wall, cpu time.Duration // of the best run
	sum       time.Duration // wall, of all runs
	memory    int64         // at most resident, in bytes
}

// run runs a command with its output into a file of no size: what either would
// do for a pipe is not measured. A failure is the command's answer, too: nm -D has
// one for a file without dynamic symbols.
func (s *spent) run(b *testing.B, name string, args ...string) {
	b.Helper()
	cmd := exec.Command(name, args...)
	start := time.Now()
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		b.Fatal(err)
	}
	wall := time.Since(start)
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if s.sum == 0 || wall < s.wall {
		s.wall = wall
	}
	if s.sum == 0 || cpu < s.cpu {
		s.cpu = cpu
	}
	s.sum += wall
	if use, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		s.memory = max(s.memory, use.Maxrss<<10)
	}
}

// large are programs and libraries with tens of thousands of functions, those that
// are here of C++, Rust and C++ without exceptions.
func large(b *testing.B) (paths []string) {
	b.Helper()
	for _, pattern := range []string{
		"/usr/bin/node",
		os.Getenv("HOME") + "/.rustup/toolchains/stable-*/lib/librustc_driver-*.so",
		"/usr/lib/jvm/*/lib/server/libjvm.so",
	} {
		found, _ := filepath.Glob(pattern)
		paths = append(paths, found[:min(1, len(found))]...)
	}
	if len(paths) == 0 {
		b.Skip("no large files here")
	}
	return paths
}

// BenchmarkListLarge lists all functions with demangled names, beside nm -C, which
// does it without finding out what can be probed. faster is how many times the time
// of list nm took, each at its best; memory the share of nm's.
func BenchmarkListLarge(b *testing.B) {
	needNM(b)
	uprobetop := buildProgram(b)
	for _, path := range large(b) {
		b.Run(filepath.Base(path), func(b *testing.B) {
			var us, nm spent
			for b.Loop() {
				nm.run(b, "nm", "-C", path)
				us.run(b, uprobetop, "list", path)
			}
			b.ReportMetric(nm.wall.Seconds()/us.wall.Seconds(), "faster")
			b.ReportMetric(nm.cpu.Seconds()/us.cpu.Seconds(), "less-cpu")
			b.ReportMetric(us.wall.Seconds()*1e3, "ms")
			b.ReportMetric(float64(us.memory)/float64(nm.memory), "memory")
			b.ReportMetric(float64(us.memory)/1e6, "MB")
		})
	}
}

// BenchmarkListAll lists each ELF file of the machine by a run of its own, beside nm
// -D and nm. Without UPROBETOP_LONG it is one of every 100.
func BenchmarkListAll(b *testing.B) {
	needNM(b)
	uprobetop, files := buildProgram(b), elfFiles()
	var us, nm spent
	for b.Loop() {
		for _, path := range files {
			nm.run(b, "nm", "-D", path)
			nm.run(b, "nm", path)
			us.run(b, uprobetop, "list", path)
		}
	}
	b.ReportMetric(float64(len(files)), "files")
	b.ReportMetric(nm.sum.Seconds()/us.sum.Seconds(), "faster")
	b.ReportMetric(us.sum.Seconds()*1e3/float64(b.N*max(1, len(files))), "ms/file")
}

func elfFiles() (paths []string) {
	n := 0
	for _, dir := range []string{"/usr/bin", "/usr/sbin", "/usr/lib"} {
		if real, err := filepath.EvalSymlinks(dir); err != nil || real != dir {
			continue // another name of a directory that is looked at
		}
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil
			}
			f, err := os.Open(path)
			if err != nil {
				return nil
			}
			defer f.Close()
			magic := make([]byte, 4)
			if _, err := f.Read(magic); err == nil && bytes.Equal(magic, []byte("\x7fELF")) {
				if n++; n%100 == 0 || os.Getenv("UPROBETOP_LONG") != "" {
					paths = append(paths, path)
				}
			}
			return nil
		})
	}
	return paths
}
