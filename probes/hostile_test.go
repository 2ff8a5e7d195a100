package probes

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"uprobetop/bpf"
)

// A writer that was killed leaves all ticks that were whole, wherever its file
// ends.
func TestReplayOfACutFile(t *testing.T) {
	b := invent(t, 5)
	most := 0
	for n := range len(b) {
		r, err := NewReplay(bytes.NewReader(b[:n]))
		if err != nil {
			if strings.Contains(err.Error(), "\n") || most > 0 {
				t.Errorf("%d bytes: %v", n, err)
			}
			continue
		}
		ticks := 0
		for ; err == nil; ticks++ {
			_, err = r.Next()
		}
		ticks--
		if err != io.EOF || ticks < most {
			t.Errorf("%d bytes have %d ticks, fewer had %d: %v", n, ticks, most, err)
		}
		most = ticks
		r.Close()
	}
	if most != 5 {
		t.Errorf("the last byte but one holds back a tick: %d of 5", most)
	}
}

// unpack takes the frames out of a recording, and pack puts some into one.
func unpack(t testing.TB, b []byte) []byte {
	t.Helper()
	r, err := zstd.NewReader(bytes.NewReader(b[bytes.IndexByte(b, '\n')+1:]))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	frames, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return frames
}

// packer is one for all: a new one takes megabytes.
var packer = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<16))
})

func pack(t testing.TB, frames []byte) []byte {
	t.Helper()
	w, err := packer()
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(frames, []byte("uprobetop recording 1\n"))
}

func TestReplayRefuses(t *testing.T) {
	b := invent(t, 2)
	frames := string(unpack(t, b))
	// with replaces something by text of the same length.
	with := func(old, text string) []byte {
		if len(old) != len(text) || !strings.Contains(frames, old) {
			t.Fatalf("%q cannot be %q", old, text)
		}
		return pack(t, []byte(strings.ReplaceAll(frames, old, text)))
	}
	for name, c := range map[string]struct {
		b    []byte
		says string
	}{
		"empty":          {nil, "no recording"},
		"another file":   {[]byte("\x7fELF\x02\x01\x01\x00 and all that follows in such a file"), "no recording"},
		"a later format": {bytes.Replace(b, []byte("recording 1"), []byte("recording 2"), 1), "format"},
		"only its line":  {pack(t, nil), "no beginning"},
		"no ticks":       {invent(t, 0), "empty"},
		"no zstd":        {append(b[:22:22], "not compressed at all"...), "damaged"},
		"no JSON":        {pack(t, []byte("H\x02{]")), "damaged"},
		"a huge frame":   {pack(t, []byte("H\xff\xff\xff\xff\xff\xff\xff\xff\x01")), "damaged"},
		"no header":      {pack(t, []byte("T\x02{}")), "no beginning"},
		"byte order":     {with(`"order":"little"`, `"order":"middle"`), "byte order"},
		"CPUs":           {with(`"possible":4`, `"possible":1`), "CPUs"},
		"an online CPU":  {with(`"online":[0,1]`, `"online":[0,7]`), "CPUs"},
		"a file":         {with(`"file":0`, `"file":7`), "without a file"},
		"a function":     {with(`"function":1`, `"function":9`), "makes no sense"},
		"a state":        {with(`"state":3`, `"state":9`), "makes no sense"},
		"a kind":         {with(`"kind":0`, `"kind":9`), "makes no sense"},
		"time backwards": {with(`"interval_ns":2`, `"interval_ns":-`), "time makes no sense"},
	} {
		_, err := NewReplay(bytes.NewReader(c.b))
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A record of a CPU that the host cannot have shows only when it is decoded.
	r := replay(t, pack(t, []byte(strings.ReplaceAll(frames, string(raw(bpf.Record{Kind: bpf.RecordCell, Index: 1})[:8]), string(raw(bpf.Record{Kind: bpf.RecordCell, Index: 4})[:8])))))
	if _, err := r.Next(); err == nil || !strings.Contains(err.Error(), "CPU 4, of 4") {
		t.Errorf("a record of a CPU too many: %v", err)
	}
}

// Whatever stands in a file: one sentence or snapshots, and no panic. packed
// files are fuzzed as their frames, which zstd would hide.
func FuzzReplay(f *testing.F) {
	b := invent(f, 2)
	f.Add(b, false)
	f.Add(unpack(f, b), true)
	f.Fuzz(func(t *testing.T, b []byte, packed bool) {
		if packed {
			b = pack(t, b)
		}
		r, err := NewReplay(bytes.NewReader(b))
		for n := 0; err == nil && n < 100; n++ {
			var s *Snapshot
			if s, err = r.Next(); err != nil {
				break
			}
			for i := range s.Probes {
				p := &s.Probes[i]
				_ = p.Kind.String() + p.State.String() + p.Function.Demangled() + p.File.Path
				if p.Latency != nil {
					_ = p.Latency.Quantile(0.99)
				}
			}
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("not one sentence: %q", err)
		}
		if r != nil {
			r.Close()
		}
	})
}
