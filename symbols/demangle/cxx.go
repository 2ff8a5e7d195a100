package demangle

import "sync"

// A cxx reads one C++ name. It writes as it reads; what it wrote is referred to
// by where it is, in out or, what must not show or shows elsewhere, in side.
type cxx struct {
	in      string
	pos     int
	out     []byte
	side    []byte
	returns span // in side; goes before out

	subs  []text // what S_ and so on stand for
	args  []text // arguments of the templates that are being read
	elems []text // elements of the packs among them

	marks  []mark // between the parts of the outermost name
	marked []byte // in up to the last of them, and the byte after it
	resume bool   // the last mark holds for this name too

	scope
	lastCtx int32
	autos   int // T_ of lambdas written so far
	depth   int
	steps   int
}

// scope is what T_ and the like mean at a place.
type scope struct {
	tmpl    []text // what T_ and so on stand for; nil outside of a function's types
	nested  int    // functions with tmpl around here
	lambdas int    // lambdas around here whose T_ is auto
	cast    bool   // in the type of a conversion, where T_ may come later
	ctx     int32  // changes wherever T_ changes its meaning
	deps    int    // T_ written so far: what has one in it means something else elsewhere

	packed bool // in a pattern of a pack expansion:
	pack   int  // which parameter is the pack, -1 not known yet
	elem   int  // which of its elements is meant
}

// inSide is added to positions in side.
const inSide = 1 << 24

// form is how the text of a type takes what comes around it.
type form uint8

const (
	plain    form = iota // what comes is appended
	function             // void ()        -> void (*)()
	array                // char [2]       -> char (*) [2]
	declared             // void (*)()     -> void (**)()
	list                 // elements of a pack: takes nothing
)

// text is a type or name that was written: all of it is in a, or the part left
// of the place for a declarator in a, and that right of it in b.
type text struct {
	a, b span
	name span  // of the last part of a name, without arguments, for a constructor
	at   int32 // where it begins in the mangled name if it can be read again, else -1
	ctx  int32 // if it depends on T_, what T_ meant; else 0
	form form
	top  byte // its outermost modifier: P R O K, Q for other qualifiers
}

type span struct{ start, end int32 }

// desc is a type just written at the end of out, from start on.
type desc struct {
	start, hole int // hole is where a declarator goes, if form is not plain
	form        form
	top         byte
}

var pool = sync.Pool{New: func() any { return new(cxx) }}

func appendCXX(dst []byte, name string, params bool) ([]byte, bool) {
	c := pool.Get().(*cxx)
	c.reset(name[len("_Z"):])
	ok := c.read(params)
	if ok {
		if c.returns.end > c.returns.start {
			dst = append(append(dst, c.bytes(c.returns)...), ' ')
		}
		dst = append(dst, c.out...)
	}
	c.in, c.tmpl = "", nil // name may be of a file that is unmapped soon
	pool.Put(c)
	return dst, ok
}

func (c *cxx) reset(name string) {
	c.in, c.pos, c.returns = name, 0, span{}
	c.args, c.elems = c.args[:0], c.elems[:0]
	c.scope = scope{ctx: 1}
	c.lastCtx, c.autos, c.depth, c.steps = 1, 0, 0, 0
	c.goBack()
}

func (c *cxx) read(params bool) (ok bool) {
	ok = true
	defer recovered(&ok)
	if !params {
		c.bareName()
		return
	}
	c.encoding(whole)
	for c.peek() == '.' {
		c.clone()
	}
	return c.pos == len(c.in)
}

// clone reads what a compiler adds to a copy of a function: .part.0, .cold.
func (c *cxx) clone() {
	i := c.pos + 1
	word := func(b byte) bool { return isLower(b) || isDigit(b) || b == '_' }
	if i >= len(c.in) || !word(c.in[i]) {
		giveUp()
	}
	for i < len(c.in) && word(c.in[i]) {
		i++
	}
	for i+1 < len(c.in) && c.in[i] == '.' && isDigit(c.in[i+1]) {
		for i++; i < len(c.in) && isDigit(c.in[i]); i++ {
		}
	}
	c.write(" [clone ")
	c.write(c.in[c.pos:i])
	c.write("]")
	c.pos = i
}

func (c *cxx) peek() byte {
	if c.pos < len(c.in) {
		return c.in[c.pos]
	}
	return 0
}

func (c *cxx) peekAt(n int) byte {
	if c.pos+n < len(c.in) {
		return c.in[c.pos+n]
	}
	return 0
}

func (c *cxx) accept(b byte) bool {
	if c.pos < len(c.in) && c.in[c.pos] == b {
		c.pos++
		return true
	}
	return false
}

func (c *cxx) expect(b byte) {
	if !c.accept(b) {
		giveUp()
	}
}

func (c *cxx) write(s string)   { c.out = append(c.out, s...) }
func (c *cxx) writeByte(b byte) { c.out = append(c.out, b) }

func (c *cxx) last() byte {
	if len(c.out) == 0 {
		return 0
	}
	return c.out[len(c.out)-1]
}

func (c *cxx) writeInt(n int) {
	var digits [20]byte
	i := len(digits)
	for {
		i--
		digits[i] = '0' + byte(n%10)
		if n /= 10; n == 0 {
			break
		}
	}
	c.out = append(c.out, digits[i:]...)
}

// enter bounds depth, work and output; leave goes with it.
func (c *cxx) enter() {
	c.depth++
	c.steps++
	if c.depth > maxDepth || c.steps > maxSteps || len(c.out)+len(c.side) > 2*maxOutput {
		giveUp()
	}
}

func (c *cxx) leave() { c.depth-- }

// number reads decimal digits, at least one.
func (c *cxx) number() int {
	n, i := 0, c.pos
	for ; i < len(c.in) && isDigit(c.in[i]); i++ {
		if n = n*10 + int(c.in[i]-'0'); n > 1<<24 {
			giveUp()
		}
	}
	if i == c.pos {
		giveUp()
	}
	c.pos = i
	return n
}

// ordinal reads _ for 0, 0_ for 1, and so on.
func (c *cxx) ordinal() int {
	if c.accept('_') {
		return 0
	}
	n := c.number()
	c.expect('_')
	return n + 1
}
