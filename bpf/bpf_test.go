package bpf

import (
	"errors"
	"github.com/cilium/ebpf"
	"testing"
)

func TestLoad(t *testing.T) {
	for _, m := range []Method{UprobeMulti, PerfEvent} {
		o := DefaultOptions(2)
		o.Method = m
		o.Filtered, o.Follow = true, true
		l, err := Load(o)
		if err != nil {
			var ve *ebpf.VerifierError
			if errors.As(err, &ve) {
				t.Fatalf("%s: %+v", m, ve)
			}
			t.Fatal(err)
		}
		f, err := l.Flush(0, 1024, 1e6)
		t.Log(f, err)
		l.Close()
	}
}
