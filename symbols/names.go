package symbols

import (
	"fmt"
	"iter"
	"runtime"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/ianlancetaylor/demangle"
)

// maxDemangled ends a demangled name after 2^14 bytes: nobody reads further, and
// a hostile one could unfold without end.
const maxDemangled = 14

// Printable makes s fit for a terminal: what is not a visible character or a
// space, invalid UTF-8 included, is written as an escape such as \x1b or
// \u202e. A string that is fit already comes back as it is.
func Printable(s string) string {
	clean := true
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] >= 0x7f {
			clean = false
			break
		}
	}
	if clean {
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

func mangled(name string) bool {
	return strings.HasPrefix(name, "_Z") || strings.HasPrefix(name, "_R") ||
		strings.HasPrefix(name, "___Z") || strings.HasPrefix(name, "_GLOBAL_")
}

// demangled is the name demangled, or the name. The demangler reads what a file
// says: should it ever trip over it, the name is shown as it stands.
func demangled(name string, options ...demangle.Option) (s string) {
	if !mangled(name) || len(name) > maxName {
		return name
	}
	defer func() {
		if recover() != nil {
			s = name
		}
	}()
	return demangle.Filter(name, append(options, demangle.MaxLength(maxDemangled))...)
}

// entry is one name of one function, as people read it.
type entry struct {
	name  string // printable
	lower string // the same in lower case, of ASCII letters; byte for byte as long
	fn    int32  // index into File.Functions
	alias int32  // index into its Aliases, or -1
}

// nameCache holds what is made of all the names at the first need.
type nameCache struct {
	once    sync.Once
	entries []entry

	rawOnce sync.Once
	raw     map[string][]int32 // functions by raw name without version, best first
}

// entries are the names of all functions, without those that read like another
// name of the same function.
func (f *File) entries() []entry {
	f.names.once.Do(func() { f.names.entries = f.demangleAll() })
	return f.names.entries
}

// demangleAll works on all CPUs: half a second for a large program is felt.
func (f *File) demangleAll() []entry {
	workers := min(runtime.GOMAXPROCS(0), 1+len(f.Functions)/1024)
	parts := make([][]entry, workers)
	budget := f.nameBudget() / workers
	var wg sync.WaitGroup
	for w := range workers {
		from, to := len(f.Functions)*w/workers, len(f.Functions)*(w+1)/workers
		wg.Go(func() { parts[w] = f.demangleSome(from, to, budget) })
	}
	wg.Wait()
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	all := make([]entry, 0, n)
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
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
// overlap and unfold, and be far longer than the file. Beyond it they are cut.
func (f *File) nameBudget() int { return 64<<20 + 8*int(min(f.size, maxStrings)) }

func (f *File) demangleSome(from, to, budget int) []entry {
	es := make([]entry, 0, to-from)
	// The names in lower case lie side by side: a search reads all of them.
	var lower strings.Builder
	for i := from; i < to; i++ {
		first := len(es)
		fn := &f.Functions[i]
		for a, s := range fn.symbols() {
			if budget <= 0 {
				s.Name = s.Name[:min(len(s.Name), 128)]
			}
			name := s.demangled()
			if len(es)-first < 16 && has(es[first:], name) {
				continue
			}
			budget -= len(s.Name) + 2*len(name)
			writeLower(&lower, name)
			es = append(es, entry{name: name, fn: int32(i), alias: int32(a)})
		}
	}
	all := lower.String()
	for i := range es {
		n := len(es[i].name)
		es[i].lower, all = all[:n], all[n:]
	}
	return es
}

func has(es []entry, name string) bool {
	for i := range es {
		if es[i].name == name {
			return true
		}
	}
	return false
}

// writeLower keeps every byte in its place, which strings.ToLower does not.
func writeLower(b *strings.Builder, s string) {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		b.WriteByte(c)
	}
}

func lowerASCII(s string) string {
	var b strings.Builder
	writeLower(&b, s)
	return b.String()
}
