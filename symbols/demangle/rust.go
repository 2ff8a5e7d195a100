package demangle

import (
	"strconv"
	"strings"
)

// rust reads one v0 name. A back reference is read again where it points.
type rust struct {
	in        string // without _R and suffix
	pos, end  int    // what is left is in[pos:end]
	out       []byte
	skip      bool  // read, write nothing
	lifetimes int64 // bound around here
	depth     int
	steps     int
	limit     int // of the length of out
}

func appendRust(dst []byte, name string) (out []byte, ok bool) {
	if i := strings.IndexByte(name, '.'); i >= 0 {
		name = name[:i]
	}
	if !isWord(name) {
		return dst, false
	}
	ok = true
	defer recovered(&ok)
	r := rust{in: name[2:], end: len(name) - 2, out: dst, limit: len(dst) + maxOutput}
	r.path(true)
	if r.pos < r.end { // the crate that it was made for
		r.skip = true
		r.path(false)
	}
	return r.out, r.pos == r.end
}

func (r *rust) peek() byte {
	if r.pos < r.end {
		return r.in[r.pos]
	}
	return 0
}

func (r *rust) next() byte {
	if r.pos >= r.end {
		giveUp()
	}
	r.pos++
	return r.in[r.pos-1]
}

// accept reads c if it comes next.
func (r *rust) accept(c byte) bool {
	if r.peek() == c && r.pos < r.end {
		r.pos++
		return true
	}
	return false
}

func (r *rust) write(s string) {
	if !r.skip {
		r.out = append(r.out, s...)
	}
}

func (r *rust) writeByte(c byte) {
	if !r.skip {
		r.out = append(r.out, c)
	}
}

func (r *rust) writeInt(n int64) {
	if !r.skip {
		r.out = strconv.AppendInt(r.out, n, 10)
	}
}

// enter bounds depth, work and output; leave goes with it.
func (r *rust) enter() {
	r.depth++
	r.steps++
	if r.depth > maxDepth || r.steps > maxSteps || len(r.out) > r.limit {
		giveUp()
	}
}

func (r *rust) leave() { r.depth-- }

// path reads a path. In an expression its generic arguments follow a ::, in a
// type they do not.
func (r *rust) path(inValue bool) {
	r.enter()
	switch c := r.next(); c {
	case 'C':
		_, id := r.identifier()
		r.write(id)
	case 'M', 'X':
		r.implPath()
		r.writeByte('<')
		r.typ()
		if c == 'X' {
			r.write(" as ")
			r.path(false)
		}
		r.writeByte('>')
	case 'Y':
		r.writeByte('<')
		r.typ()
		r.write(" as ")
		r.path(false)
		r.writeByte('>')
	case 'N':
		r.nested(inValue)
	case 'I':
		r.path(inValue)
		if inValue {
			r.write("::")
		}
		r.writeByte('<')
		r.genericArgs()
		r.writeByte('>')
	case 'B':
		if back, ok := r.backref(); ok {
			r.path(inValue)
			r.comeBack(back)
		}
	default:
		giveUp()
	}
	r.leave()
}

func (r *rust) nested(inValue bool) {
	space := r.next()
	if !isLower(space) && !isUpper(space) {
		giveUp()
	}
	r.path(inValue)
	number, id := r.identifier()
	if isLower(space) {
		r.write("::")
		r.write(id)
		return
	}
	r.write("::{")
	switch space {
	case 'C':
		r.write("closure")
	case 'S':
		r.write("shim")
	default:
		r.writeByte(space)
	}
	if id != "" {
		r.writeByte(':')
		r.write(id)
	}
	r.writeByte('#')
	r.writeInt(number)
	r.writeByte('}')
}

// implPath is where an impl stands; it is not shown.
func (r *rust) implPath() {
	hold := r.skip
	r.skip = true
	r.disambiguator()
	r.path(false)
	r.skip = hold
}

func (r *rust) identifier() (number int64, id string) {
	number = r.disambiguator()
	return number, r.plainIdentifier()
}

func (r *rust) disambiguator() int64 {
	if !r.accept('s') {
		return 0
	}
	return r.base62() + 1
}

// plainIdentifier leaves names that are not ASCII, in punycode, to others. Empty
// names, 0, follow one another where closures nest: 00 is read as one of them,
// and the next has no digits left. Only 0 and another number would be misread.
func (r *rust) plainIdentifier() string {
	rest := r.in[r.pos:r.end]
	if rest == "" || rest[0] == 'u' {
		giveUp()
	}
	n, i := 0, 0
	for ; i < len(rest) && isDigit(rest[i]); i++ {
		if n = n*10 + int(rest[i]-'0'); n > maxInput {
			giveUp()
		}
	}
	if n > 0 && rest[0] == '0' {
		giveUp()
	}
	if i < len(rest) && rest[i] == '_' {
		i++
	}
	if n > len(rest)-i {
		giveUp()
	}
	r.pos += i + n
	return rest[i : i+n]
}

// isWord asks for ASCII letters, digits and underscores: all that a v0 name has.
func isWord(s string) bool {
	other := uint8(0)
	for i := range len(s) {
		other |= base62Digit[s[i]]
	}
	return other < 128
}

func (r *rust) genericArgs() {
	for first := true; !r.accept('E'); first = false {
		if !first {
			r.write(", ")
		}
		switch {
		case r.accept('L'):
			r.lifetime(r.count())
		case r.accept('K'):
			r.constant()
		default:
			r.typ()
		}
	}
}

// count is a base62 number of what a name of this length can hold.
func (r *rust) count() int64 {
	n := r.base62()
	if n < 0 || n > maxInput {
		giveUp()
	}
	return n
}

// base62 reads a number. Hashes of crates are as long as its 64 bits, or a bit
// more, which wraps.
func (r *rust) base62() int64 {
	if r.accept('_') {
		return 0
	}
	n := int64(0)
	for i, rest := 0, r.in[r.pos:r.end]; i < len(rest); i++ {
		d := base62Digit[rest[i]]
		if d >= 62 {
			if rest[i] != '_' {
				break
			}
			r.pos += i + 1
			return n + 1
		}
		n = n*62 + int64(d)
	}
	giveUp()
	return 0
}

var base62Digit = func() (t [256]uint8) {
	for c := range t {
		switch b := byte(c); {
		case isDigit(b):
			t[c] = b - '0'
		case isLower(b):
			t[c] = b - 'a' + 10
		case isUpper(b):
			t[c] = b - 'A' + 36
		default:
			t[c] = 255
		}
	}
	t['_'] = 64
	return t
}()

// place is a stretch of the name that is still to be read.
type place struct{ pos, end int }

// backref follows a reference; its B is read already. What is not written need
// not be followed. The caller reads what is there, then comes back.
func (r *rust) backref() (back place, follow bool) {
	b := r.pos - 1
	at := r.base62()
	if r.skip {
		return place{}, false
	}
	if at < 0 || at >= int64(b) {
		giveUp()
	}
	back = place{r.pos, r.end}
	r.pos, r.end = int(at), b
	return back, true
}

func (r *rust) comeBack(p place) { r.pos, r.end = p.pos, p.end }
