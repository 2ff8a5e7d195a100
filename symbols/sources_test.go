package symbols

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"
	"github.com/ulikunitz/xz/lzma"
)

// parts is a program, its debug file, and what is left of it without.
type parts struct {
	dir                    string
	whole, debug, stripped string
	file                   *File // the whole
}

func split(t testing.TB, args ...string) parts {
	t.Helper()
	p := parts{dir: t.TempDir()}
	p.whole = build(t, "gcc", "plain.c", append([]string{"-rdynamic", "-g", "-Wl,--build-id"}, args...)...)
	p.debug, p.stripped = filepath.Join(p.dir, "plain.debug"), filepath.Join(p.dir, "plain")
	run(t, "objcopy", "--only-keep-debug", p.whole, p.debug)
	run(t, "strip", "-o", p.stripped, p.whole)
	p.file = mustOpen(t, p.whole)
	return p
}

func copyTo(t testing.TB, to, from string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, readFile(t, from), 0o644); err != nil {
		t.Fatal(err)
	}
}

// link makes the stripped program name its debug file.
func (p *parts) link(t testing.TB) {
	t.Helper()
	run(t, "objcopy", "--add-gnu-debuglink="+p.debug, p.stripped)
}

// byID is where a debug file is by the build id of the program.
func (p *parts) byID(root string) string {
	return filepath.Join(root, debugDir, ".build-id", p.file.BuildID[:2], p.file.BuildID[2:]+".debug")
}

func openWith(t testing.TB, s *Sources, path string) *File {
	t.Helper()
	f, err := s.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// asWhole holds a stripped file against the one before: its functions have the same
// names, addresses, offsets and sizes.
func (p *parts) asWhole(t testing.TB, f *File, source string) {
	t.Helper()
	if f.Source != source || f.Stripped || len(f.Notes) > 0 {
		t.Errorf("names come from %q, want %q; stripped: %v; notes: %q", f.Source, source, f.Stripped, f.Notes)
	}
	if !reflect.DeepEqual(f.Functions, p.file.Functions) {
		t.Errorf("other functions than in the whole program:\n%v\nwant\n%v", f.Functions, p.file.Functions)
	}
	one(t, f, "only_here")
}

func TestDebugFiles(t *testing.T) {
	for _, args := range [][]string{nil, {"-no-pie"}, {"-Wl,-z,noseparate-code"}, {"-Wl,--build-id=none"}} {
		root := t.TempDir()
		p := split(t, args...)
		s := &Sources{Root: root}
		if f := openWith(t, s, p.stripped); !f.Stripped || f.Source != "" || len(f.Notes) > 0 || len(f.Lookup("only_here")) > 0 {
			t.Errorf("%q: without anything, from %q, notes %q", args, f.Source, f.Notes)
		}
		if p.file.BuildID != "" {
			copyTo(t, p.byID(root), p.debug)
			p.asWhole(t, openWith(t, s, p.stripped), "debug file "+p.byID(root))
			if err := os.Remove(p.byID(root)); err != nil {
				t.Fatal(err)
			}
		}
		p.link(t)
		real, err := filepath.EvalSymlinks(p.dir)
		if err != nil {
			t.Fatal(err)
		}
		kept := filepath.Join(root, "kept")
		if err := os.Rename(p.debug, kept); err != nil {
			t.Fatal(err)
		}
		for _, at := range []string{real, filepath.Join(real, ".debug"), filepath.Join(root, debugDir, real)} {
			path := filepath.Join(at, "plain.debug")
			copyTo(t, path, kept)
			p.asWhole(t, openWith(t, s, p.stripped), "debug file "+path)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A link may name a file as the program itself is called, which then is another one.
func TestLinkOfTheSameName(t *testing.T) {
	p := split(t)
	debug := filepath.Join(p.dir, ".debug", "plain")
	copyTo(t, debug, p.debug)
	run(t, "objcopy", "--add-gnu-debuglink="+debug, p.stripped)
	p.asWhole(t, openWith(t, &Sources{Root: t.TempDir()}, p.stripped), "debug file "+debug)
}

// Of a process in a container the container's own files come first, then those of
// the host that have the same build id.
func TestDebugFilesInContainer(t *testing.T) {
	p := split(t)
	p.link(t)
	inside, host := t.TempDir(), t.TempDir()
	s := (&Sources{Root: host}).in(inside)
	app := filepath.Join(inside, "opt", "plain")
	copyTo(t, app, p.stripped)
	open := func() *File {
		f, err := s.OpenAs("/opt/plain", app)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	linked := filepath.Join(inside, debugDir, "opt", "plain.debug")
	for _, path := range []string{linked, p.byID(host), p.byID(inside)} { // each comes before those so far
		copyTo(t, path, p.debug)
		p.asWhole(t, open(), "debug file "+path)
	}
}

// The code of a twin may be elsewhere as a whole, and not in any other way.
func TestShift(t *testing.T) {
	at := func(addrs ...uint64) *image {
		im := &image{machine: elf.EM_X86_64, is64: true}
		for i, a := range addrs {
			im.segments = append(im.segments, segment{typ: elf.PT_LOAD, flags: elf.PF_R, addr: uint64(i)},
				segment{typ: elf.PT_LOAD, flags: elf.PF_R | elf.PF_X, addr: a, memsz: 64})
		}
		return im
	}
	smaller := at(0x1000, 0x3000)
	smaller.segments[3].memsz = 63
	foreign := at(0x1000, 0x3000)
	foreign.machine = elf.EM_386
	file := at(0x5000, 0x7000)
	for _, c := range []struct {
		twin  *image
		shift uint64
		fits  bool
	}{
		{file, 0, true},
		{at(0x1000, 0x3000), 0x4000, true},
		{at(0x6000, 0x8000), ^uint64(0xfff), true},
		{at(0x1000, 0x3008), 0, false},
		{at(0x1000), 0, false},
		{smaller, 0, false},
		{foreign, 0, false},
	} {
		shift, err := (&Twin{im: c.twin}).shift(file)
		if (err == nil) != c.fits || shift != c.shift {
			t.Errorf("%+v: %#x, %v; want %#x", c.twin.segments, shift, err, c.shift)
		}
	}
}

// What is not the twin of a file is refused with a note, and what comes after it is
// tried.
func TestWrongDebugFile(t *testing.T) {
	root := t.TempDir()
	p, other := split(t), split(t, "-O2", "-Dwork_alias=another_name")
	if p.file.BuildID == other.file.BuildID {
		t.Fatal("two builds have one id")
	}
	p.link(t)
	refused := func(what, note string) {
		t.Helper()
		f := openWith(t, &Sources{Root: root}, p.stripped)
		if !f.Stripped || f.Source != "" || len(f.Lookup("only_here")) > 0 {
			t.Errorf("%s is taken, as %q", what, f.Source)
		}
		if len(f.Notes) != 1 || !strings.Contains(f.Notes[0], note) || f.Notes[0] != Printable(f.Notes[0]) {
			t.Errorf("%s: notes %q, want %q", what, f.Notes, note)
		}
	}
	good := readFile(t, p.debug)
	copyTo(t, p.debug, other.debug)
	refused("another build", "is of another build: its build id is "+other.file.BuildID+", and that of the file "+p.file.BuildID)
	if err := os.WriteFile(p.debug, append(slices.Clone(good), 0), 0o644); err != nil {
		t.Fatal(err)
	}
	refused("one byte more", "its checksum is not the one in .gnu_debuglink")
	if err := os.WriteFile(p.debug, []byte("no ELF file"), 0o644); err != nil {
		t.Fatal(err)
	}
	refused("a text", "plain.debug is not used for the names of")

	copyTo(t, p.byID(root), other.debug)
	if err := os.WriteFile(p.debug, good, 0o644); err != nil {
		t.Fatal(err)
	}
	f := openWith(t, &Sources{Root: root}, p.stripped)
	if f.Source != "debug file "+p.debug || len(f.Notes) != 1 {
		t.Errorf("after a wrong one names come from %q, notes %q", f.Source, f.Notes)
	}
}

// A build without ids is told by its segments.
func TestTwinByHand(t *testing.T) {
	p, other := split(t), split(t, "-O2", "-Dwork_alias=another_name")
	none, larger := split(t, "-Wl,--build-id=none"), split(t, "-Wl,--build-id=none", "-static")
	s := &Sources{Root: t.TempDir()}
	for _, path := range []string{other.whole, p.debug, none.whole} {
		twin, err := OpenTwin(path)
		if err != nil {
			t.Fatal(err)
		}
		defer twin.Close()
		s.Twins = append(s.Twins, twin)
	}
	p.asWhole(t, openWith(t, s, p.stripped), "--symbols "+p.debug)
	none.asWhole(t, openWith(t, s, none.stripped), "--symbols "+none.whole)
	if f := openWith(t, s, larger.stripped); !f.Stripped {
		t.Errorf("a program of other segments has its names from %q", f.Source)
	}
	s.IDsOnly = true
	if f := openWith(t, s, none.stripped); !f.Stripped {
		t.Errorf("of several files, one without an id has its names from %q", f.Source)
	}
	for path, want := range map[string]string{p.stripped: "has no symbol table", filepath.Join(p.dir, "nothing"): "does not exist"} {
		if _, err := OpenTwin(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s as a twin: %v", path, err)
		}
	}
}

// prelinked moves a program as prelink does: all of its segments by one step.
func prelinked(t testing.TB, path string, by uint64) string {
	t.Helper()
	b := readFile(t, path)
	f, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for i := range f.Progs {
		h := b[binary.LittleEndian.Uint64(b[32:])+uint64(i)*56:]
		binary.LittleEndian.PutUint64(h[16:], f.Progs[i].Vaddr+by)
	}
	return writeFile(t, b)
}

func TestPrelinked(t *testing.T) {
	const by = 0x3000
	p := split(t, "-static", "-no-pie")
	twin, err := OpenTwin(p.debug)
	if err != nil {
		t.Fatal(err)
	}
	defer twin.Close()
	f := openWith(t, &Sources{Root: t.TempDir(), Twins: []*Twin{twin}}, prelinked(t, p.stripped, by))
	for _, name := range []string{"only_here", "work", "main", "malloc"} {
		got, want := one(t, f, name), one(t, p.file, name)
		if got.Addr != want.Addr+by || got.Offset != want.Offset || got.Size != want.Size {
			t.Errorf("%s is %+v, want %+v moved by %#x", name, got, want, by)
		}
	}
}

// packed is b compressed as MiniDebugInfo is.
func packed(t testing.TB, b []byte, dictionary int) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := xz.WriterConfig{DictCap: dictionary}.NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// addMini adds MiniDebugInfo to a stripped program.
func (p *parts) addMini(t testing.TB, data []byte) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "plain")
	run(t, "objcopy", "--add-section", ".gnu_debugdata="+writeFile(t, data), p.stripped, out)
	return out
}

// mini is the ELF file that is compressed.
func (p *parts) mini(t testing.TB) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "mini")
	run(t, "objcopy", "-S", "--remove-section", ".comment", "--keep-symbols="+writeFile(t, []byte("only_here\nlocal_label\n")), p.debug, out)
	return readFile(t, out)
}

func TestMiniDebugInfo(t *testing.T) {
	p := split(t)
	s := &Sources{Root: t.TempDir()}
	mini := p.mini(t)
	f := openWith(t, s, p.addMini(t, packed(t, mini, 1<<20)))
	if got, want := one(t, f, "only_here"), one(t, p.file, "only_here"); f.Source != "MiniDebugInfo" || !reflect.DeepEqual(got, want) {
		t.Errorf("from %q: %+v, want %+v; notes %q", f.Source, got, want, f.Notes)
	}
	one(t, f, "weak_one") // a dynamic symbol

	whole := packed(t, mini, 1<<20)
	other := split(t, "-static")
	for name, c := range map[string]struct {
		data []byte
		note string
	}{
		"cut short":       {whole[:len(whole)/2], "damaged"},
		"nothing":         {make([]byte, 64), "damaged"},
		"a wrong byte":    {flipped(whole, len(whole)/2), "damaged"},
		"no ELF":          {packed(t, []byte("hello"), 1<<20), "not an ELF file"},
		"a bomb":          {claiming(maxUnfolded + 1), "more than is read"},
		"a lie":           {claiming(1 << 20), "damaged"},
		"huge dictionary": {dictionaryOf(t, whole, 1<<30), "more than is read"},
		"another program": {packed(t, other.mini(t), 1<<20), "build"},
	} {
		t.Run(name, func(t *testing.T) {
			path := p.addMini(t, c.data)
			var f *File
			got := allocatedBy(func() { f = openWith(t, s, path) })
			if !f.Stripped || len(f.Notes) != 1 || !strings.Contains(f.Notes[0], c.note) {
				t.Errorf("from %q, notes %q; want %q", f.Source, f.Notes, c.note)
			}
			if got > 32<<20 {
				t.Errorf("took %d MB", got>>20)
			}
		})
	}
}

// claiming is a stream that says it unfolds to n bytes, in one block.
func claiming(n uint64) []byte {
	b := append([]byte("\xfd7zXZ\x00\x00\x01"), 0x69, 0x22, 0xde, 0x36)
	b = append(b, 2, 0, 0x21, 1, 0x16, 0, 0, 0, 0, 0, 0, 0) // LZMA2 with a dictionary of 8 MB
	index := append([]byte{0, 1}, 12)
	index = binary.AppendUvarint(index, n)
	for len(index)%4 != 0 {
		index = append(index, 0)
	}
	index = append(index, 0, 0, 0, 0)
	footer := binary.LittleEndian.AppendUint32([]byte{0, 0, 0, 0}, uint32(len(index)/4-1))
	return append(append(append(b, index...), footer...), 0, 1, 'Y', 'Z')
}

func flipped(b []byte, at int) []byte {
	b = slices.Clone(b)
	b[at] ^= 0xff
	return b
}

// dictionaryOf claims that a stream takes a dictionary of this size.
func dictionaryOf(t testing.TB, b []byte, size int64) []byte {
	t.Helper()
	b = slices.Clone(b)
	i := bytes.Index(b, []byte{0x21, 1}) // the filter of the first block, and its one property
	if i < 0 || i > 40 {
		t.Fatal("the stream has no filter")
	}
	b[i+2] = lzma.EncodeDictCap(size)
	return b
}
