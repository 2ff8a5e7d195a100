package recording

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Writer writes a recording. After an error it writes nothing more and says the
// same error again. It is for one goroutine.
type Writer struct {
	zip  *zstd.Encoder
	head []byte
	err  error
}

// NewWriter begins a recording. Its first frame is to be a Header.
func NewWriter(w io.Writer) (*Writer, error) {
	if _, err := io.WriteString(w, magic); err != nil {
		return nil, written(err)
	}
	zip, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return nil, fmt.Errorf("a recording cannot be compressed: %w", err)
	}
	return &Writer{zip: zip}, nil
}

func written(err error) error { return fmt.Errorf("the recording cannot be written: %w", err) }

// Header, File, Function and Probe each write one frame; Tick and Close tell of errors.
func (w *Writer) Header(h *Header)     { w.json(kindHeader, h) }
func (w *Writer) File(f *File)         { w.json(kindFile, f) }
func (w *Writer) Function(f *Function) { w.json(kindFunction, f) }
func (w *Writer) Probe(p *Probe)       { w.json(kindProbe, p) }

// Sample writes what came from a ring buffer.
func (w *Writer) Sample(stream byte, raw []byte) {
	w.frame(kindSample, []byte{stream}, raw)
}

// Tick ends a snapshot. All until here can be read back from now on, whatever
// becomes of this program.
func (w *Writer) Tick(t *Tick) error {
	w.json(kindTick, t)
	if w.err == nil {
		if err := w.zip.Flush(); err != nil {
			w.err = written(err)
		}
	}
	return w.err
}

// Close ends the recording. It does not close what it is written to.
func (w *Writer) Close() error {
	if err := w.zip.Close(); err != nil && w.err == nil {
		w.err = written(err)
	}
	return w.err
}

func (w *Writer) json(kind byte, v any) {
	if w.err != nil {
		return
	}
	b, err := json.Marshal(v)
	if err != nil {
		w.err = written(err)
		return
	}
	w.frame(kind, b)
}

func (w *Writer) frame(kind byte, parts ...[]byte) {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	if n > maxFrame && w.err == nil {
		w.err = fmt.Errorf("the recording has no room for a frame of %d bytes, only of %d", n, maxFrame)
	}
	w.head = binary.AppendUvarint(append(w.head[:0], kind), uint64(n))
	w.write(w.head)
	for _, p := range parts {
		w.write(p)
	}
}

func (w *Writer) write(b []byte) {
	if w.err != nil {
		return
	}
	if _, err := w.zip.Write(b); err != nil {
		w.err = written(err)
	}
}
