package recording

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Reader reads a recording frame by frame.
type Reader struct {
	zip    *zstd.Decoder
	in     *bufio.Reader
	buf    []byte
	meta   int
	sample Sample
}

// NewReader looks at the first line. Close ends the reader.
func NewReader(r io.Reader) (*Reader, error) {
	first := make([]byte, len(magic))
	n, err := io.ReadFull(r, first)
	if err != nil && !cut(err) {
		return nil, fmt.Errorf("the recording cannot be read: %w", err)
	}
	name, _, _ := strings.Cut(magic, " 1")
	switch {
	case string(first[:n]) == magic:
	case strings.HasPrefix(string(first[:n]), name+" "):
		return nil, errors.New("the recording has a format that this uprobetop does not know: replay it with the version that made it")
	default:
		return nil, errors.New("this is no recording: uprobetop did not write it")
	}
	zip, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, damaged(err)
	}
	return &Reader{zip: zip, in: bufio.NewReader(zip)}, nil
}

// Close frees what the reader holds. It does not close what it reads from.
func (r *Reader) Close() { r.zip.Close() }

func damaged(err error) error { return fmt.Errorf("the recording is damaged: %w", err) }

// cut tells whether a stream just ends: its writer was killed, or is still at it.
func cut(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// Next returns the next frame: a *Header, *File, *Function, *Probe, *Sample or
// *Tick. A sample is overwritten by the next one. At the end it is io.EOF,
// also where the file ends in the middle of a frame.
func (r *Reader) Next() (any, error) {
	for {
		kind, b, err := r.frame()
		if cut(err) {
			return nil, io.EOF
		}
		if err != nil {
			return nil, damaged(err)
		}
		var v any
		switch kind {
		case kindHeader:
			v = new(Header)
		case kindFile:
			v = new(File)
		case kindFunction:
			v = new(Function)
		case kindProbe:
			v = new(Probe)
		case kindTick:
			v = new(Tick)
		case kindSample:
			if len(b) == 0 {
				return nil, damaged(errors.New("it has an empty sample"))
			}
			r.sample = Sample{b[0], b[1:]}
			return &r.sample, nil
		default:
			continue
		}
		if kind != kindTick {
			if r.meta += len(b); r.meta > maxMeta {
				return nil, damaged(fmt.Errorf("it describes more than %d MiB of probes", maxMeta>>20))
			}
		}
		if err := json.Unmarshal(b, v); err != nil {
			return nil, damaged(fmt.Errorf("a frame of kind %q has another form: %w", kind, err))
		}
		return v, nil
	}
}

func (r *Reader) frame() (kind byte, b []byte, err error) {
	if kind, err = r.in.ReadByte(); err != nil {
		return 0, nil, err
	}
	n, err := binary.ReadUvarint(r.in)
	if err != nil {
		return 0, nil, err
	}
	if n > maxFrame {
		return 0, nil, fmt.Errorf("it has a frame of %d bytes, more than %d", n, maxFrame)
	}
	if uint64(cap(r.buf)) < n {
		r.buf = make([]byte, n)
	}
	b = r.buf[:n]
	_, err = io.ReadFull(r.in, b)
	return kind, b, err
}
