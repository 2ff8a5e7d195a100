package symbols

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/ulikunitz/xz"
	"github.com/ulikunitz/xz/lzma"
)

// Bounds on what .gnu_debugdata may unfold to. A few kilobytes can claim to be
// gigabytes; the largest known libraries have some 20 MB.
const (
	maxUnfolded   = 64 << 20  // bytes
	maxDictionary = 256 << 20 // bytes, of all blocks together: xz -9 takes 64 MB for one
)

// compressed reads MiniDebugInfo: an ELF file that has nothing but a symbol table,
// compressed, in a section of the file itself.
func (s *search) compressed() bool {
	sec, ok := s.im.sectionNamed(".gnu_debugdata")
	if !ok {
		return false
	}
	b, err := s.im.unfold(sec)
	var t *Twin
	if err == nil {
		t, err = readTwin(bytes.NewReader(b), uint64(len(b)))
	}
	if err == nil && t.BuildID != "" {
		err = t.of(s.f.BuildID)
	}
	if err != nil {
		return s.note("MiniDebugInfo", err)
	}
	return s.take(t, "MiniDebugInfo", "MiniDebugInfo")
}

func (im *image) unfold(sec section) ([]byte, error) {
	if sec.size > maxUnfolded {
		return nil, fmt.Errorf("it has %d MB, more than is read", sec.size>>20)
	}
	b, err := im.bytes(sec.off, sec.size, "MiniDebugInfo")
	if err != nil {
		return nil, err
	}
	size, err := unfoldedSize(b)
	if err != nil {
		return nil, err
	}
	r, err := xz.ReaderConfig{DictCap: lzma.MinDictCap, SingleStream: true}.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, errDamaged
	}
	out := make([]byte, size)
	if _, err := io.ReadFull(r, out); err != nil {
		return nil, errDamaged
	}
	if _, err := io.ReadFull(r, make([]byte, 1)); !errors.Is(err, io.EOF) { // the checksums come with the end
		return nil, errDamaged
	}
	return out, nil
}

var errDamaged = errors.New("it is damaged")

// unfoldedSize is what a stream of xz says that it unfolds to. It is known before
// anything is unfolded, from the index at the stream's end, which also leads to the
// header of each block, where the memory is said that its reader takes
// (https://tukaani.org/xz/xz-file-format.txt).
func unfoldedSize(b []byte) (size uint64, err error) {
	const frame = 12 // bytes of a stream's header, and of its footer
	for bytes.HasSuffix(b, []byte{0, 0, 0, 0}) {
		b = b[:len(b)-4] // padding
	}
	if len(b) < 2*frame || !bytes.HasSuffix(b, []byte("YZ")) {
		return 0, errDamaged
	}
	footer := b[len(b)-frame:]
	length := (uint64(order.Uint32(footer[4:])) + 1) * 4
	if length > uint64(len(b)-2*frame) {
		return 0, errDamaged
	}
	blocks, index := b[frame:uint64(len(b)-frame)-length], b[uint64(len(b)-frame)-length:len(b)-frame]
	n := multibytes{b: index[1:]}
	dictionaries := uint64(0)
	for count := n.next(); count > 0 && !n.bad; count-- {
		packed, unfolded := roundUp(n.next(), 4), n.next()
		if n.bad || packed == 0 || packed > uint64(len(blocks)) {
			return 0, errDamaged
		}
		dictionary, err := dictionarySize(blocks)
		if err != nil {
			return 0, err
		}
		size, dictionaries, blocks = size+unfolded, dictionaries+dictionary, blocks[packed:]
		if size > maxUnfolded || dictionaries > maxDictionary {
			return 0, errors.New("it would unfold to more than is read")
		}
	}
	if n.bad || len(blocks) > 0 {
		return 0, errDamaged
	}
	return size, nil
}

// dictionarySize is the memory that the reader of a block takes, in bytes.
func dictionarySize(block []byte) (uint64, error) {
	const lzma2 = 0x21 // the only filter of MiniDebugInfo
	length := (int(block[0]) + 1) * 4
	if length > len(block) || length < 8 {
		return 0, errDamaged
	}
	flags := block[1]
	n := multibytes{b: block[2:length]}
	for _, sized := range []byte{0x40, 0x80} { // packed and unfolded size
		if flags&sized != 0 {
			n.next()
		}
	}
	filter, properties := n.next(), n.next()
	if n.bad || flags&3 != 0 || filter != lzma2 || properties != 1 || len(n.b) == 0 {
		return 0, errors.New("it is compressed in a way that is not read")
	}
	size, err := lzma.DecodeDictCap(n.b[0])
	if err != nil {
		return 0, errDamaged
	}
	return uint64(size), nil
}

// multibytes reads the numbers of xz: seven bits a byte, the lowest first.
type multibytes struct {
	b   []byte
	bad bool
}

func (m *multibytes) next() (n uint64) {
	for i := range m.b {
		if i == 9 {
			break
		}
		n |= uint64(m.b[i]&0x7f) << (7 * i)
		if m.b[i]&0x80 == 0 {
			m.b = m.b[i+1:]
			return n
		}
	}
	m.bad = true
	return 0
}

// signed is next for a number with a sign, which is that of LEB128.
func (m *multibytes) signed() (n int64) {
	for i := range m.b {
		if i == 9 {
			break
		}
		n |= int64(m.b[i]&0x7f) << (7 * i)
		if m.b[i]&0x80 == 0 {
			if m.b[i]&0x40 != 0 {
				n |= -1 << (7 * (i + 1))
			}
			m.b = m.b[i+1:]
			return n
		}
	}
	m.bad = true
	return 0
}

func (m *multibytes) byte() byte {
	if len(m.b) == 0 {
		m.bad = true
		return 0
	}
	b := m.b[0]
	m.b = m.b[1:]
	return b
}

func (m *multibytes) skip(n uint64) {
	if n > uint64(len(m.b)) {
		m.bad = true
		return
	}
	m.b = m.b[n:]
}
