package symbols

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"unsafe"
)

// Bounds on what one file may make us hold, whatever its size says: a sparse
// file can claim terabytes. They are several times what the largest known
// browsers and databases need.
const (
	maxStrings  = 1 << 30   // bytes of a string table
	maxSymbols  = 16 << 20  // symbols of a table
	maxHeaders  = 64 << 10  // bytes of program headers: the kernel's own limit
	maxSections = 1 << 16   // section headers of a linked file
	maxNotes    = 1 << 20   // bytes of one note segment or section
	maxDynamic  = 1 << 20   // bytes of the dynamic section
	chunk       = 256 << 10 // bytes read at a time from a hash table
)

// image is the skeleton of an ELF file: its headers, checked against its size.
type image struct {
	r        io.ReaderAt
	size     uint64
	is64     bool
	machine  elf.Machine
	segments []segment
	sections []section

	nameTable uint32 // the section that holds the names of sections
	nameText  string // what that has; empty before it is first read

	budget *budget // of the process whose file it is; nil: none
	took   uint64  // of that
}

type segment struct {
	typ               elf.ProgType
	flags             elf.ProgFlag
	off, addr, filesz uint64
	memsz, align      uint64
}

func (s *segment) isLoaded() bool { return s.typ == elf.PT_LOAD }
func (s *segment) isCode() bool   { return s.isLoaded() && s.flags&elf.PF_X != 0 }

type section struct {
	name            uint32
	typ             elf.SectionType
	flags           elf.SectionFlag
	addr, off, size uint64
	link            uint32
	align           uint64
}

// within says whether n bytes at off lie inside a total of size bytes.
func within(off, n, size uint64) bool { return off <= size && n <= size-off }

// bytes reads n bytes at off. What names the part in an error.
func (im *image) bytes(off, n uint64, what string) ([]byte, error) {
	if !within(off, n, im.size) {
		return nil, behindEnd(what)
	}
	b := make([]byte, n)
	return b, im.fill(b, off, what)
}

// fill reads as many bytes at off as b has.
func (im *image) fill(b []byte, off uint64, what string) error {
	if !within(off, uint64(len(b)), im.size) {
		return behindEnd(what)
	}
	if _, err := im.r.ReadAt(b, int64(off)); err != nil {
		return fmt.Errorf("cannot be read: %w", cause(err))
	}
	return nil
}

// text reads a string table into one string, of which all names are parts. It is a
// copy: a file that is mapped instead and becomes shorter ends the process that
// looks at it.
func (im *image) text(off, n uint64, what string) (string, error) {
	if !within(off, n, im.size) {
		return "", behindEnd(what)
	}
	if n > maxStrings || n > im.most() {
		return "", fmt.Errorf("has %s of %d MB, more than is read", what, n>>20)
	}
	if err := im.budget.take(n); err != nil {
		return "", err
	}
	im.took += n
	const each = 1 << 20 // bytes
	b := make([]byte, n)
	errs := make([]error, (n+each-1)/each)
	inParallel(len(errs), func() func(i int) {
		return func(i int) {
			from := uint64(i) * each
			errs[i] = im.fill(b[from:min(from+each, n)], off+from, what)
		}
	})
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return "", errs[i]
	}
	return unsafe.String(unsafe.SliceData(b), len(b)), nil
}

func behindEnd(what string) error {
	return fmt.Errorf("is damaged or cut short: its %s would lie behind its end; get a whole copy", what)
}

var (
	order     = binary.LittleEndian
	errNotELF = errors.New("is not an ELF file; name an executable or a shared library")
)

// readImage reads and checks the headers.
func readImage(r io.ReaderAt, size uint64) (*image, elf.Type, error) {
	im := &image{r: r, size: size}
	if size < elf.EI_NIDENT {
		return nil, 0, errNotELF
	}
	ident, err := im.bytes(0, elf.EI_NIDENT, "header")
	if err != nil {
		return nil, 0, err
	}
	if !bytes.HasPrefix(ident, []byte(elf.ELFMAG)) {
		return nil, 0, errNotELF
	}
	switch elf.Class(ident[elf.EI_CLASS]) {
	case elf.ELFCLASS64:
		im.is64 = true
	case elf.ELFCLASS32:
	default:
		return nil, 0, errors.New("is damaged: its header says neither 32 nor 64 bits; get a whole copy")
	}
	n := uint64(52)
	if im.is64 {
		n = 64
	}
	h, err := im.bytes(0, n, "header")
	if err != nil {
		return nil, 0, err
	}
	if err := im.checkMachine(h, runtime.GOARCH); err != nil {
		return nil, 0, err
	}
	if err := im.readHeaders(h); err != nil {
		return nil, 0, err
	}
	return im, elf.Type(order.Uint16(h[16:])), nil
}

// machines lists what the kernel of a host runs, its own machine first.
var machines = map[string][]elf.Machine{
	"386":     {elf.EM_386},
	"amd64":   {elf.EM_X86_64, elf.EM_386},
	"arm64":   {elf.EM_AARCH64},
	"loong64": {elf.EM_LOONGARCH},
	"riscv64": {elf.EM_RISCV},
	"ppc64le": {elf.EM_PPC64},
}

var machineNames = map[elf.Machine]string{
	elf.EM_386: "32-bit x86", elf.EM_X86_64: "x86-64", elf.EM_ARM: "32-bit ARM", elf.EM_AARCH64: "ARM64",
	elf.EM_RISCV: "RISC-V", elf.EM_PPC64: "PowerPC64", elf.EM_S390: "s390x", elf.EM_LOONGARCH: "LoongArch",
	elf.EM_MIPS: "MIPS", elf.EM_BPF: "BPF",
}

func machineName(m elf.Machine) string {
	if s, ok := machineNames[m]; ok {
		return s
	}
	return fmt.Sprintf("machine number %d", uint16(m))
}

func (im *image) checkMachine(h []byte, goarch string) error {
	var endian binary.ByteOrder = binary.LittleEndian
	big := elf.Data(h[elf.EI_DATA]) == elf.ELFDATA2MSB
	if big {
		endian = binary.BigEndian
	}
	im.machine = elf.Machine(endian.Uint16(h[18:]))
	host := machines[goarch]
	for _, m := range host {
		if m == im.machine && !big {
			return nil
		}
	}
	here := goarch
	if len(host) > 0 {
		here = machineName(host[0])
	}
	there := machineName(im.machine)
	if big {
		there = "big-endian " + there
	}
	return fmt.Errorf("is made for %s and this host is %s; it cannot run here", there, here)
}

// readHeaders reads the tables of segments and sections.
func (im *image) readHeaders(h []byte) error {
	var phoff, shoff uint64
	var counts []byte // from e_phentsize on
	if im.is64 {
		phoff, shoff, counts = order.Uint64(h[32:]), order.Uint64(h[40:]), h[54:]
	} else {
		phoff, shoff, counts = uint64(order.Uint32(h[28:])), uint64(order.Uint32(h[32:])), h[42:]
	}
	phentsize, phnum := uint64(order.Uint16(counts)), uint64(order.Uint16(counts[2:]))
	shentsize, shnum := uint64(order.Uint16(counts[4:])), uint64(order.Uint16(counts[6:]))
	if err := im.readSegments(phoff, phentsize, phnum); err != nil {
		return err
	}
	if err := im.readSections(shoff, shentsize, shnum); err != nil {
		return err
	}
	im.nameTable = uint32(order.Uint16(counts[8:]))
	if elf.SectionIndex(im.nameTable) == elf.SHN_XINDEX && len(im.sections) > 0 {
		im.nameTable = im.sections[0].link
	}
	return nil
}

func (im *image) readSegments(off, entsize, n uint64) error {
	if n == 0 {
		return nil
	}
	want := uint64(32)
	if im.is64 {
		want = 56
	}
	if entsize != want || n*entsize > maxHeaders {
		return errors.New("is damaged: its program headers have a size that no kernel loads; get a whole copy")
	}
	b, err := im.bytes(off, n*entsize, "program headers")
	if err != nil {
		return err
	}
	for ; len(b) > 0; b = b[entsize:] {
		s := segment{typ: elf.ProgType(order.Uint32(b))}
		if im.is64 {
			s.flags = elf.ProgFlag(order.Uint32(b[4:]))
			s.off, s.addr = order.Uint64(b[8:]), order.Uint64(b[16:])
			s.filesz, s.memsz, s.align = order.Uint64(b[32:]), order.Uint64(b[40:]), order.Uint64(b[48:])
		} else {
			s.off, s.addr = uint64(order.Uint32(b[4:])), uint64(order.Uint32(b[8:]))
			s.filesz, s.flags = uint64(order.Uint32(b[16:])), elf.ProgFlag(order.Uint32(b[24:]))
			s.memsz, s.align = uint64(order.Uint32(b[20:])), uint64(order.Uint32(b[28:]))
		}
		im.segments = append(im.segments, s)
	}
	return nil
}

// readSections reads the section headers; a file may have none, and the kernel
// never looks at them.
func (im *image) readSections(off, entsize, n uint64) error {
	if off == 0 {
		return nil
	}
	want := uint64(40)
	if im.is64 {
		want = 64
	}
	if n == 0 {
		// More than 65,279 sections: the count stands in the first one's size.
		b, err := im.bytes(off, want, "section headers")
		if err != nil {
			return err
		}
		if n = im.section(b).size; n == 0 {
			return nil
		}
	}
	if entsize != want || n > maxSections {
		return errors.New("is damaged: its section headers have a wrong size; get a whole copy")
	}
	b, err := im.bytes(off, n*entsize, "section headers")
	if err != nil {
		return err
	}
	im.sections = make([]section, 0, n)
	for ; len(b) > 0; b = b[entsize:] {
		im.sections = append(im.sections, im.section(b))
	}
	return nil
}

func (im *image) section(b []byte) section {
	s := section{name: order.Uint32(b), typ: elf.SectionType(order.Uint32(b[4:]))}
	if im.is64 {
		s.flags = elf.SectionFlag(order.Uint64(b[8:]))
		s.addr, s.off, s.size = order.Uint64(b[16:]), order.Uint64(b[24:]), order.Uint64(b[32:])
		s.link, s.align = order.Uint32(b[40:]), order.Uint64(b[48:])
		return s
	}
	s.flags = elf.SectionFlag(order.Uint32(b[8:]))
	s.addr, s.off, s.size = uint64(order.Uint32(b[12:])), uint64(order.Uint32(b[16:])), uint64(order.Uint32(b[20:]))
	s.link, s.align = order.Uint32(b[24:]), uint64(order.Uint32(b[32:]))
	return s
}

// fileOffset is where the file holds addr, within a loaded segment that has
// all of the flags. Bytes that are only in memory have no offset.
func (im *image) fileOffset(addr uint64, flags elf.ProgFlag) (uint64, bool) {
	for i := range im.segments {
		s := &im.segments[i]
		if s.typ == elf.PT_LOAD && s.flags&flags == flags && addr >= s.addr && addr-s.addr < s.filesz {
			return s.off + (addr - s.addr), true
		}
	}
	return 0, false
}

// overlaps tells whether two segments claim the same memory. The kernel lets the last
// one have it, pages whole: what an address means is then not what the first one says.
// Linkers do no such thing; a page that both have of one place in the file is the same.
func (im *image) overlaps() bool {
	const page = 4096
	var loads []segment
	for _, s := range im.segments {
		if s.typ != elf.PT_LOAD || s.memsz == 0 {
			continue
		}
		for _, o := range loads {
			inPage := s.addr/page <= (o.addr+o.memsz-1)/page && o.addr/page <= (s.addr+s.memsz-1)/page
			inside := s.addr <= o.addr+o.memsz-1 && o.addr <= s.addr+s.memsz-1
			if inside || inPage && s.off-s.addr != o.off-o.addr {
				return true
			}
		}
		loads = append(loads, s)
	}
	return false
}
