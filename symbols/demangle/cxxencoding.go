package demangle

// use is what a function's name and types are read for.
type use uint8

const (
	whole     use = iota // all of it shows
	enclosing            // a name within it follows: what it returns does not show
	address              // & is before it: its types do not show
)

// encoding reads a function with its types, a variable, or a special name.
func (c *cxx) encoding(u use) {
	c.enter()
	hold := c.scope
	args, elems := len(c.args), len(c.elems)
	start := len(c.out)
	if c.pos == 0 {
		start = 0 // what is in out may be kept from the last name
	}
	c.packed = false
	if b := c.peek(); b == 'G' || b == 'T' {
		if u == address {
			giveUp()
		}
		c.special()
	} else {
		n := nameInfo{keep: true}
		c.name(&n)
		if c.pos < len(c.in) && c.peek() != 'E' {
			c.functionTypes(&n, start, u)
		} else {
			c.writeQualifiers(&n)
		}
		if u == address {
			c.parenthesize(&n, start)
		}
	}
	// T_ is resolved within: what has this in it does not depend on any.
	c.scope, c.args, c.elems = hold, c.args[:args], c.elems[:elems]
	c.leave()
}

// bareName reads a function's name and leaves its types.
func (c *cxx) bareName() {
	if b := c.peek(); b == 'G' || b == 'T' {
		c.special()
		return
	}
	c.name(&nameInfo{})
}

// functionTypes reads the types of the function whose name begins at start.
func (c *cxx) functionTypes(n *nameInfo, start int, u use) {
	if n.template {
		c.tmpl = c.args[n.args:]
		c.nested++
		c.lambdas = 0
		c.newContext()
	}
	from, subs := len(c.out), len(c.subs)
	var returns span
	if n.template && !n.special {
		if d := c.typ(); d.form != plain {
			giveUp()
		}
		returns = c.hide(from, subs)
	}
	c.writeByte('(')
	c.parameters(false)
	c.writeByte(')')
	c.writeQualifiers(n)
	switch {
	case u == address:
		if n.quals != 0 || n.ref != 0 {
			giveUp()
		}
		c.hide(from, subs)
	case u == whole && start == 0:
		c.returns = returns
	case u == whole && returns.end > returns.start:
		c.open(start, int(returns.end-returns.start)+1)
		i := start + copy(c.out[start:], c.bytes(returns))
		c.out[i] = ' '
	}
}

// parenthesize is for the operand of &, unless that is a simple name.
func (c *cxx) parenthesize(n *nameInfo, start int) {
	if !n.template && !n.local && (n.compound || n.simple) {
		return
	}
	c.insert(start, "(")
	c.writeByte(')')
}

// special reads what a compiler makes: tables, thunks, guards.
func (c *cxx) special() {
	kind := [2]byte{c.peek(), c.peekAt(1)}
	c.pos += 2
	switch kind {
	case [2]byte{'T', 'V'}:
		c.write("vtable for ")
		c.typ()
	case [2]byte{'T', 'T'}:
		c.write("VTT for ")
		c.typ()
	case [2]byte{'T', 'I'}:
		c.write("typeinfo for ")
		c.typ()
	case [2]byte{'T', 'S'}:
		c.write("typeinfo name for ")
		c.typ()
	case [2]byte{'T', 'C'}:
		c.constructionTable()
	case [2]byte{'T', 'h'}:
		c.write("non-virtual thunk to ")
		c.offset('h')
		c.encoding(whole)
	case [2]byte{'T', 'v'}:
		c.write("virtual thunk to ")
		c.offset('v')
		c.encoding(whole)
	case [2]byte{'T', 'c'}:
		c.write("covariant return thunk to ")
		c.offset(c.peekOffset())
		c.offset(c.peekOffset())
		c.encoding(whole)
	case [2]byte{'T', 'H'}:
		c.specialName("TLS init function for ")
	case [2]byte{'T', 'W'}:
		c.specialName("TLS wrapper function for ")
	case [2]byte{'G', 'V'}:
		c.specialName("guard variable for ")
	case [2]byte{'G', 'T'}:
		if !c.accept('t') {
			giveUp()
		}
		c.write("transaction clone for ")
		c.encoding(whole)
	default:
		giveUp()
	}
}

func (c *cxx) specialName(prefix string) {
	c.write(prefix)
	var n nameInfo
	c.name(&n)
	c.writeQualifiers(&n)
}

// constructionTable reads a class, an offset and the base within it.
func (c *cxx) constructionTable() {
	c.write("construction vtable for ")
	start, subs := len(c.out), len(c.subs)
	c.typ()
	derived := c.hide(start, subs)
	c.number()
	c.expect('_')
	c.typ()
	c.write("-in-")
	c.out = append(c.out, c.bytes(derived)...)
}

func (c *cxx) peekOffset() byte {
	c.pos++
	return c.in[min(c.pos, len(c.in))-1]
}

// offset reads the numbers of a thunk; they are not shown.
func (c *cxx) offset(kind byte) {
	c.accept('n')
	c.number()
	c.expect('_')
	switch kind {
	case 'h':
	case 'v':
		c.accept('n')
		c.number()
		c.expect('_')
	default:
		giveUp()
	}
}
