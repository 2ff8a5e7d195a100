package demangle

import "strings"

// nameInfo is what a function's types need to know of its name.
type nameInfo struct {
	quals    quals
	ref      byte // & or A for &&, as a qualifier of a method; else 0
	template bool // ends in template arguments, which are c.args[args:]
	special  bool // constructor, destructor or conversion: returns no type
	local    bool // is within a function
	compound bool // has a ::
	simple   bool // is one identifier
	keep     bool // is asked to have its template arguments in c.args
	args     int
	last     span // the last part without arguments

	conversion bool // there was one among its parts
}

// name reads any name.
func (c *cxx) name(n *nameInfo) {
	c.enter()
	n.args = len(c.args)
	start, deps := len(c.out), c.deps
	switch c.peek() {
	case 'N':
		c.nestedName(n)
		c.leave()
		return
	case 'Z':
		c.localName(n)
		c.leave()
		return
	case 'S':
		if c.peekAt(1) != 't' {
			if d := c.substitution(n); d.form != plain || c.peek() != 'I' {
				giveUp()
			}
			break
		}
		c.pos += 2
		c.write("std::")
		n.compound = true
		fallthrough
	default:
		if c.unqualified(n); c.peek() == 'I' {
			c.rememberName(start, deps, n.last)
		}
	}
	if c.peek() == 'I' {
		c.arguments(n.keep)
		n.template = true
	}
	c.leave()
}

func (c *cxx) rememberName(start, deps int, last span) {
	t := c.newSub()
	t.a, t.name, t.at = c.since(start), last, -1
	if c.deps != deps {
		t.ctx = c.ctx
	}
}

// nestedName reads N, qualifiers, the parts of a name, E.
func (c *cxx) nestedName(n *nameInfo) {
	outermost, parts := c.pos == 0, 0
	start, deps := len(c.out), c.deps
	if outermost && c.resume {
		start, parts = 0, c.resumeAt(n)
	} else {
		c.pos++
		c.methodQualifiers(n)
	}
	for {
		b := c.peek()
		switch {
		case b == 'E':
			if parts == 0 {
				giveUp()
			}
			c.pos++
			return
		case b == 'I':
			if parts == 0 || n.template {
				giveUp()
			}
			c.args = c.args[:n.args]
			c.arguments(n.keep)
			n.template = true
		case b == 'S':
			if parts > 0 {
				giveUp()
			}
			c.substitution(n)
			if parts++; c.peek() == 'E' {
				giveUp()
			}
			continue
		case b == 'M' && parts > 0:
			c.pos++
			continue
		default:
			c.part(n, parts)
			parts++
		}
		if c.peek() != 'E' {
			c.rememberName(start, deps, n.last)
			if outermost && c.pos < len(c.in) {
				c.mark(n, parts)
			}
		}
	}
}

func (c *cxx) methodQualifiers(n *nameInfo) {
	switch c.peek() {
	case 'K', 'V', 'r', 'R', 'O':
		n.quals = c.qualifiers()
		if c.accept('R') {
			n.ref = '&'
		} else if c.accept('O') {
			n.ref = 'A'
		}
	}
}

// part reads one part of a nested name that is not in all of them possible.
func (c *cxx) part(n *nameInfo, parts int) {
	if parts > 0 {
		c.write("::")
		n.compound = true
	}
	if n.conversion { // nothing is within one
		giveUp()
	}
	n.template, n.special = false, false
	switch b := c.peek(); {
	case b == 'T':
		if parts > 0 {
			giveUp()
		}
		d := c.parameter()
		if d.form != plain {
			giveUp()
		}
		n.last = span{}
	case b == 'C' || b == 'D':
		c.structor(n, b == 'D')
	default:
		c.unqualified(n)
	}
}

func (c *cxx) structor(n *nameInfo, destructor bool) {
	kind := c.peekAt(1)
	if n.last.end == n.last.start {
		giveUp()
	}
	if destructor {
		if kind != '0' && kind != '1' && kind != '2' && kind != '4' && kind != '5' {
			giveUp()
		}
		c.writeByte('~')
	} else if kind < '1' || kind > '5' {
		giveUp()
	}
	c.pos += 2
	c.out = append(c.out, c.bytes(n.last)...)
	n.special, n.last = true, span{}
	if c.peek() == 'B' {
		giveUp()
	}
}

// unqualified reads one part of a name.
func (c *cxx) unqualified(n *nameInfo) {
	start := len(c.out)
	switch b := c.peek(); {
	case isDigit(b):
		c.source()
		n.simple = true
	case isLower(b):
		n.conversion = c.operator()
		n.special = n.conversion
	case b == 'L':
		c.pos++
		c.source()
		c.discriminator()
	case b == 'U':
		c.unnamed()
	default:
		giveUp()
	}
	n.last = c.since(start)
	for c.accept('B') {
		n.simple = false
		if n.special {
			giveUp()
		}
		c.write("[abi:")
		c.source()
		c.writeByte(']')
	}
}

// source reads an identifier after its length.
func (c *cxx) source() {
	n := c.number()
	if n == 0 || n > len(c.in)-c.pos {
		giveUp()
	}
	id := c.in[c.pos : c.pos+n]
	c.pos += n
	if id[0] == '_' && strings.HasPrefix(id, "_GLOBAL_") && len(id) > 10 &&
		strings.IndexByte("._$", id[8]) >= 0 && id[9] == 'N' {
		id = "(anonymous namespace)"
	}
	c.write(id)
}

// unnamed reads a lambda or a type without a name.
func (c *cxx) unnamed() {
	start := len(c.out)
	switch c.peekAt(1) {
	case 't':
		c.pos += 2
		c.write("{unnamed type#")
		c.writeInt(c.ordinal() + 1)
		c.writeByte('}')
		c.rememberName(start, c.deps, c.since(start))
	case 'l':
		c.lambda()
	default:
		giveUp()
	}
}

func (c *cxx) lambda() {
	c.pos += 2
	if c.peek() == 'T' && !isDigit(c.peekAt(1)) && c.peekAt(1) != '_' {
		giveUp()
	}
	ctx, deps := c.ctx, c.deps
	packed := c.packed
	c.packed = false
	c.newContext()
	c.lambdas++
	c.write("{lambda(")
	if c.parameters(true) {
		giveUp()
	}
	c.expect('E')
	c.write(")#")
	c.writeInt(c.ordinal() + 1)
	c.writeByte('}')
	c.lambdas--
	c.ctx, c.deps, c.packed = ctx, deps, packed
}

func (c *cxx) newContext() {
	c.lastCtx++
	c.ctx = c.lastCtx
}

// localName reads a name within a function.
func (c *cxx) localName(n *nameInfo) {
	c.pos++
	c.encoding(enclosing)
	c.expect('E')
	c.write("::")
	if c.accept('s') {
		start := len(c.out)
		c.write("string literal")
		n.last = c.since(start)
	} else {
		if c.accept('d') {
			c.write("{default arg#")
			c.writeInt(c.ordinal() + 1)
			c.write("}::")
		}
		c.name(n)
	}
	c.discriminator()
	n.local = true
}

// discriminator tells names in one function apart; it is not shown.
func (c *cxx) discriminator() {
	if !c.accept('_') {
		i := c.pos
		for i < len(c.in) && isDigit(c.in[i]) {
			i++
		}
		if i == len(c.in) {
			c.pos = i
		}
		return
	}
	long := c.accept('_')
	if c.number() >= 10 && long {
		c.expect('_')
	}
}

// quals is a set of qualifiers, in the order in which they are mangled.
type quals uint8

const (
	restrict quals = 1 << iota
	volatile
	constant
)

func (c *cxx) qualifiers() (q quals) {
	if c.accept('r') {
		q |= restrict
	}
	if c.accept('V') {
		q |= volatile
	}
	if c.accept('K') {
		q |= constant
	}
	return q
}

var qualText = [8]string{
	"", " restrict", " volatile", " volatile restrict",
	" const", " const restrict", " const volatile", " const volatile restrict",
}

func (c *cxx) writeQualifiers(n *nameInfo) {
	c.write(qualText[n.quals])
	switch n.ref {
	case '&':
		c.write(" &")
	case 'A':
		c.write(" &&")
	}
}
