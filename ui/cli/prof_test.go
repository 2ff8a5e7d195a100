package cli
import ("testing";"os";"io";"runtime/pprof")
func TestProf(t *testing.T) {
	path := os.Getenv("PROF")
	if path == "" { t.Skip() }
	f, _ := os.Create("/tmp/list.prof")
	pprof.StartCPUProfile(f)
	for range 8 { Run([]string{"list", path}, Streams{os.Stdin, io.Discard, os.Stderr}) }
	pprof.StopCPUProfile()
}
