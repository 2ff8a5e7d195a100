package symbols

import (
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/ianlancetaylor/demangle"

	fast "uprobetop/symbols/demangle"
)

// maxDemangled ends a demangled name after 2^14 bytes: nobody reads further, and
// a hostile one could unfold without end.
const maxDemangled = 14

// Printable makes s fit for a terminal: what is not a visible character or a
// space, invalid UTF-8 included, is written as an escape such as \x1b or
// \u202e. A string that is fit already comes back as it is.
func Printable(s string) string {
	if clean(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}

// Demangled is the name as a person reads it, fit for a terminal: C++ and Rust
// demangled and without a hash, else as it stands in the table. A version that
// is not the default stays, as name@version: without it two functions would
// read alike. It is computed at each call, in some microseconds.
func (f *Function) Demangled() string { return f.Symbol.demangled() }

// Demangled is Function.Demangled of one name.
func (s Symbol) Demangled() string { return s.demangled() }

func (s Symbol) demangled() string {
	name := Printable(demangled(s.Name))
	if s.old() {
		name += "@" + Printable(s.Version)
	}
	return name
}

// appendDemangled appends what demangled returns.
func (s Symbol) appendDemangled(to []byte) []byte {
	from := len(to)
	to = appendDemangled(to, s.Name)
	if !clean(to[from:]) {
		to = append(to[:from], Printable(string(to[from:]))...)
	}
	if s.old() {
		to = append(append(to, '@'), Printable(s.Version)...)
	}
	return to
}

// clean says that a text has nothing but visible ASCII and spaces.
func clean[T string | []byte](s T) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

func mangled(name string) bool {
	return strings.HasPrefix(name, "_Z") || strings.HasPrefix(name, "_R") ||
		strings.HasPrefix(name, "___Z") || strings.HasPrefix(name, "_GLOBAL_")
}

// demangled is the name demangled, or the name; the only option is NoParams.
func demangled(name string, options ...demangle.Option) string {
	var buf [512]byte
	return string(appendDemangled(buf[:0], name, options...))
}

// appendDemangled appends what demangled returns. What is rare the fast demangler
// leaves to the library. The demangler reads what a file says: should it ever trip
// over it, the name is shown as it stands.
func appendDemangled(to []byte, name string, options ...demangle.Option) (out []byte) {
	defer func() {
		if recover() != nil {
			out = append(to, name...)
		}
	}()
	if !mangled(name) || len(name) > maxName {
		return append(to, name...)
	}
	quick := fast.Append
	if len(options) > 0 { // it is NoParams
		quick = fast.AppendName
	}
	if out, ok := quick(to, name); ok {
		return out
	}
	return append(to, demangle.Filter(name, append(options, demangle.MaxLength(maxDemangled))...)...)
}

// entry is one name of one function, as people read it: a part of its block's text.
type entry struct {
	from, to uint32
	fn       int32 // index into File.Functions
	alias    int32 // index into its Aliases, or -1
}

// block is the names of some functions that stand side by side, without those
// that read like another name of the same function. The text is one piece of
// memory, which a search reads from its beginning to its end.
type block struct {
	text    string // printable
	entries []entry
	marks   marks // of each entry; made for the first search
}

func (b *block) name(e entry) string { return b.text[e.from:e.to] }

// nameCache holds what is made of all the names at the first need.
type nameCache struct {
	once   sync.Once
	blocks []block

	markOnce sync.Once

	rawOnce sync.Once
	raw     rawIndex // without versions
}

// blockFunctions is how many functions have their names in one block.
const blockFunctions = 2048

// blocks is the names of all functions, in their order.
func (f *File) blocks() []block {
	f.names.once.Do(func() {
		n := len(f.Functions)
		bs := make([]block, (n+blockFunctions-1)/blockFunctions)
		var spent atomic.Int64
		inParallel(len(bs), func() func(i int) {
			w := demangling{f: f, spent: &spent}
			return func(i int) {
				bs[i] = w.block(i*blockFunctions, min((i+1)*blockFunctions, n))
			}
		})
		f.names.blocks = bs
	})
	return f.names.blocks
}

// inParallel does something for each i below n on all CPUs: half a second for a
// large program is felt. Each worker is made by a call of its own.
func inParallel(n int, worker func() func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	work := func() {
		do := worker()
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			do(i)
		}
	}
	for range min(runtime.GOMAXPROCS(0), n) - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
}

// symbols is the names of a function as they stand in the table, the best first,
// each with its index in Aliases; that of the best is -1.
func (f *Function) symbols() iter.Seq2[int, Symbol] {
	return func(yield func(int, Symbol) bool) {
		if !yield(-1, f.Symbol) {
			return
		}
		for i, a := range f.Aliases {
			if !yield(i, a) {
				return
			}
		}
	}
}

// nameBudget bounds the bytes of all names together: those of a hostile file can
// overlap and unfold, and be far longer than the file. Beyond it a function has one
// name, which is cut. It also keeps the text of a block below 4 GB.
func (f *File) nameBudget() int64 { return 64<<20 + 8*int64(min(f.size, 256<<20)) }

// demangling makes blocks, with room that is used again.
type demangling struct {
	f       *File
	spent   *atomic.Int64 // bytes, by all that demangle for the file
	text    []byte
	entries []entry
}

// block is the names of the functions from…to.
func (d *demangling) block(from, to int) block {
	d.text, d.entries = d.text[:0], d.entries[:0]
	budget := d.f.nameBudget()
	for i := from; i < to; i++ {
		fn := &d.f.Functions[i]
		first, begin := len(d.entries), len(d.text)
		if d.spent.Load() >= budget {
			s := fn.Symbol
			s.Name = s.Name[:min(len(s.Name), 128)]
			d.add(s, i, -1, first)
			continue
		}
		d.add(fn.Symbol, i, -1, first)
		for a := 0; a < len(fn.Aliases) && int64(len(d.text)-begin) < budget; a++ {
			d.add(fn.Aliases[a], i, a, first)
		}
		d.spent.Add(int64(len(d.text) - begin))
	}
	return block{text: string(d.text), entries: slices.Clone(d.entries)}
}

// add appends a name of the function i, whose names begin with the entry first.
func (d *demangling) add(s Symbol, i, alias, first int) {
	from := len(d.text)
	d.text = s.appendDemangled(d.text)
	name := d.text[from:]
	if len(d.entries)-first < 16 {
		for _, e := range d.entries[first:] {
			if string(d.text[e.from:e.to]) == string(name) {
				d.text = d.text[:from]
				return
			}
		}
	}
	d.entries = append(d.entries, entry{from: uint32(from), to: uint32(len(d.text)), fn: int32(i), alias: int32(alias)})
}

// lowerASCII keeps every byte in its place, which strings.ToLower does not.
func lowerASCII(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for i := range len(s) {
		b.WriteByte(lowerByte(s[i]))
	}
	return b.String()
}

func lowerByte(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}
