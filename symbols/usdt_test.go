package symbols

import (
	"bytes"
	"debug/elf"
	"strings"
	"testing"
)

// markers is a program with usdt probes.
func markers(t testing.TB, args ...string) string {
	t.Helper()
	return build(t, "gcc", "../../probes/testdata/markers.c", append([]string{"-O2"}, args...)...)
}

// Sites of one name are one row with a point each, of whatever kind the file is.
func TestMarkers(t *testing.T) {
	for _, args := range [][]string{nil, {"-no-pie"}, {"-static"}, {"-m32", "-DBARE", "-nostdlib", "-shared"}} {
		path := markers(t, args...)
		f := mustOpen(t, path)
		var names []string
		for _, fn := range f.Markers() {
			names = append(names, fn.Name)
			if fn.Place != Marker || len(f.Lookup(fn.Name)) != 1 {
				t.Errorf("%s is %+v", fn.Name, fn)
			}
		}
		if got := strings.Join(names, " "); !strings.HasPrefix(got, "demo:guarded demo:plain demo:two ") || !strings.Contains(got, "other:plain") {
			t.Errorf("%v has %s", args, got)
		}
		content := readFile(t, path)
		for name, sites := range map[string]int{"demo:guarded": 2, "demo:plain": 1, "demo:two": 2, "other:plain": 1} {
			points := f.Points(one(t, f, name))
			if n, why := f.Unmarked(one(t, f, name)); len(points) != sites || n > 0 {
				t.Errorf("%v: %s has %d sites, and %d without breakpoint: %s", args, name, len(points), n, why)
			}
			for _, p := range points {
				if content[p.Offset] != 0x90 && f.Machine != elf.EM_AARCH64 {
					t.Errorf("%v: at %#x of %s is %#x", args, p.Offset, name, content[p.Offset])
				}
				if (p.Semaphore != 0) != (name == "demo:guarded") {
					t.Errorf("%v: a site of %s has the semaphore %#x", args, name, p.Semaphore)
				}
			}
		}
		if args := f.Points(one(t, f, "demo:plain"))[0].Arguments; !strings.HasPrefix(args, "-4@") {
			t.Errorf("arguments %q", args)
		}
	}
}

// A name means all probes that have it, with its provider one.
func TestMarkersNamed(t *testing.T) {
	f := mustOpen(t, markers(t))
	for text, want := range map[string]string{
		"plain": "demo:plain other:plain", "demo:plain": "demo:plain", "two": "demo:two", "main": "", "": "", "demo:": "", "demo:main": "",
	} {
		if got := join(f.MarkersNamed(text)); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	for pattern, want := range map[string]string{
		"*": "demo:guarded demo:plain demo:two other:plain", "p*": "demo:plain other:plain", "*:plain": "demo:plain other:plain",
		"d*:*": "demo:guarded demo:plain demo:two", "demo*": "", "[dx]emo:[!p]*": "demo:guarded demo:two", "m*": "",
	} {
		if got := join(f.MarkersLike(pattern)); got != want {
			t.Errorf("%q matches %q, want %q", pattern, got, want)
		}
	}
}

func join(fns []*Function) string {
	var names []string
	for _, fn := range fns {
		names = append(names, fn.Name)
	}
	return strings.Join(names, " ")
}

// noteOf finds the note of a site in a file, from its first address on.
func noteOf(t testing.TB, content []byte, name string) []byte {
	t.Helper()
	at := bytes.Index(content, []byte(strings.ReplaceAll(name, ":", "\x00")))
	if at < 0 {
		t.Fatalf("no note of %s", name)
	}
	return content[at-24:]
}

// What a note says is held against the file: a site that cannot be probed is left out,
// with the reason, and never another place taken for it.
func TestMarkersLeftOut(t *testing.T) {
	whole := readFile(t, markers(t))
	start := uint64(one(t, mustOpen(t, writeFile(t, whole)), "main").Addr)
	for _, c := range []struct {
		name   string
		damage func(note []byte)
		why    string
	}{
		{"demo:plain", func(n []byte) { order.PutUint64(n, start) }, "not that of the nop"},
		{"demo:plain", func(n []byte) { order.PutUint64(n, 1<<40) }, "outside the code"},
		{"demo:plain", func(n []byte) { order.PutUint64(n[8:], order.Uint64(n[8:])-(start-order.Uint64(n))) }, "not that of the nop"},
		{"demo:plain", func(n []byte) { order.PutUint64(n[16:], 1) }, "semaphore"},
		{"demo:guarded", func(n []byte) { order.PutUint64(n[16:], order.Uint64(n)) }, "semaphore"},
		{"demo:guarded", func(n []byte) { order.PutUint64(n[16:], order.Uint64(n[16:])+1) }, "semaphore"},
		{"demo:guarded", func(n []byte) { order.PutUint64(n[16:], 1<<63) }, "semaphore"},
	} {
		b := bytes.Clone(whole)
		c.damage(noteOf(t, b, c.name))
		f, err := survive(t, b)
		if err != nil {
			t.Fatal(err)
		}
		before := len(mustOpen(t, writeFile(t, whole)).Points(one(t, f, c.name)))
		fn := one(t, f, c.name)
		if n, why := f.Unmarked(fn); n != 1 || !strings.Contains(why, c.why) || len(f.Points(fn)) != before-1 {
			t.Errorf("%s: %d sites left out of %d, %d remain, because %s", c.name, n, before, len(f.Points(fn)), why)
		}
	}
}

// A file that prelink moved has notes of where it was: the base tells by how much.
func TestMarkersMoved(t *testing.T) {
	whole := readFile(t, markers(t))
	want := mustOpen(t, writeFile(t, whole))
	moved := bytes.Clone(whole)
	for rest := moved; ; {
		at := bytes.Index(rest, []byte("stapsdt\x00"))
		if at < 0 || at+8+24 > len(rest) {
			break
		}
		rest = rest[at+8:]
		if !bytes.HasPrefix(rest[24:], []byte("demo\x00")) && !bytes.HasPrefix(rest[24:], []byte("other\x00")) {
			continue
		}
		for i := range 3 {
			if n := order.Uint64(rest[8*i:]); n != 0 {
				order.PutUint64(rest[8*i:], n-0x41000000)
			}
		}
	}
	f := mustOpen(t, writeFile(t, moved))
	for _, fn := range want.Markers() {
		was, is := want.Points(&fn), f.Points(one(t, f, fn.Name))
		if len(is) != len(was) || is[0] != was[0] {
			t.Errorf("%s is at %+v, want %+v", fn.Name, is, was)
		}
	}
}

// Notes that say anything at all end in no panic, and not in the loss of the functions.
func TestMarkersHostile(t *testing.T) {
	whole := readFile(t, markers(t))
	file, err := elf.NewFile(bytes.NewReader(whole))
	if err != nil {
		t.Fatal(err)
	}
	notes := file.Section(".note.stapsdt")
	for at := notes.Offset; at < notes.Offset+notes.Size; at++ {
		for _, v := range []byte{0, 1, 0x3a, 0x7f, 0xff} {
			b := bytes.Clone(whole)
			b[at] = v
			if f, err := survive(t, b); err != nil || len(f.Lookup("main")) != 1 {
				t.Fatalf("byte %d as %d: %v", at, v, err)
			}
		}
	}
}

// Where the sections were taken away, a segment of notes can still have them.
func TestMarkersBySegment(t *testing.T) {
	b := readFile(t, markers(t))
	want := mustOpen(t, writeFile(t, b)).Markers()
	file, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	section := file.Section(".note.stapsdt")
	for i, p := range file.Progs {
		if p.Type == elf.PT_NOTE {
			header := b[order.Uint64(b[32:])+uint64(i)*56:]
			order.PutUint64(header[8:], section.Offset)
			order.PutUint64(header[32:], section.Size)
			order.PutUint64(header[48:], 4)
		}
	}
	order.PutUint64(b[40:], 0) // e_shoff
	order.PutUint32(b[60:], 0) // e_shnum, e_shstrndx
	got := mustOpen(t, writeFile(t, b)).Markers()
	if len(got) != len(want) {
		t.Fatalf("%d usdt probes, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i].Name != want[i].Name || got[i].Offset != want[i].Offset {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
}

// Any number of sections can be of the same notes, or of nearly the same.
func TestMarkersRepeated(t *testing.T) {
	const n = 4096
	b := make([]byte, n+maxMarkers)
	copy(b, "\x00.note.stapsdt\x00")
	over := func(step uint64) *image {
		im := &image{r: bytes.NewReader(b), size: uint64(len(b)), is64: true, sections: []section{{typ: elf.SHT_STRTAB, size: n}}}
		for i := range uint64(n) {
			im.sections = append(im.sections, section{name: 1, typ: elf.SHT_NOTE, off: n - i*step, size: 1 << 20, align: 4})
		}
		return im
	}
	if got := allocatedBy(func() {
		if _, err := over(0).sites(); err != nil {
			t.Error(err)
		}
	}); got > 4<<20 {
		t.Errorf("the same notes take %d MB", got>>20)
	}
	if got := allocatedBy(func() {
		if _, err := over(1).sites(); err == nil {
			t.Error("all are read")
		}
	}); got > 2*maxMarkers {
		t.Errorf("different notes take %d MB", got>>20)
	}
}
