package demangle

var builtin = [256]string{
	'a': "signed char", 'b': "bool", 'c': "char", 'd': "double", 'e': "long double",
	'f': "float", 'g': "__float128", 'h': "unsigned char", 'i': "int",
	'j': "unsigned int", 'l': "long", 'm': "unsigned long", 'n': "__int128",
	'o': "unsigned __int128", 's': "short", 't': "unsigned short", 'v': "void",
	'w': "wchar_t", 'x': "long long", 'y': "unsigned long long", 'z': "...",
}

// typ reads a type. What it may be referred to by later is remembered.
func (c *cxx) typ() desc {
	b := c.peek()
	if s := builtin[b]; s != "" {
		start := len(c.out)
		c.pos++
		c.write(s)
		return desc{start: start}
	}
	c.enter()
	at, deps := c.pos, c.deps
	var d desc
	switch b {
	case 'P', 'R', 'O':
		c.pos++
		d = c.typ()
		c.pointer(&d, b, c.deps != deps)
	case 'K', 'V', 'r':
		d = c.qualified(deps)
	case 'S':
		d = c.substituted()
		c.leave()
		return d
	case 'T':
		d = c.parameterType(at, deps)
	case 'F':
		d = c.function()
	case 'A':
		d = c.array()
	case 'M':
		d = c.memberPointer()
	case 'C':
		c.pos++
		d = c.typ()
		c.around(&d, " _Complex")
		d.top = b
	case 'D':
		var known bool
		if d, known = c.dType(); known {
			c.leave()
			return d
		}
	case 'U':
		d.start = len(c.out)
		c.unnamed()
		c.leave()
		return d
	case 'u':
		c.pos++
		d.start = len(c.out)
		c.source()
		if c.peek() == 'I' {
			giveUp()
		}
	default:
		d = c.named(at, deps)
		c.leave()
		return d
	}
	c.remember(d, at, deps)
	c.leave()
	return d
}

// named reads the name of a class or the like.
func (c *cxx) named(at, deps int) desc {
	if b := c.peek(); b != 'N' && b != 'Z' && b != 'S' && !isDigit(b) {
		giveUp()
	}
	d := desc{start: len(c.out)}
	var n nameInfo
	c.name(&n)
	if n.quals != 0 || n.ref != 0 {
		giveUp()
	}
	c.remember(d, at, deps)
	c.subs[len(c.subs)-1].name = n.last
	return d
}

// pointer writes *, & or &&. A reference to a reference is one, where a T_ makes
// it so: else no compiler writes it.
func (c *cxx) pointer(d *desc, b byte, depends bool) {
	if b != 'P' && (d.top == 'R' || d.top == 'O') {
		if !depends {
			giveUp()
		}
		if b == 'R' && d.top == 'O' {
			if d.form != plain {
				giveUp()
			}
			c.out = c.out[:len(c.out)-1]
			d.top = 'R'
			for i := len(c.subs) - 1; i >= 0 && int(c.subs[i].a.end) == len(c.out)+1; i-- {
				c.subs[i].ctx = -1 // is to be read again
			}
		}
		return
	}
	switch b {
	case 'P':
		c.around(d, "*")
	case 'R':
		c.around(d, "&")
	case 'O':
		c.around(d, "&&")
	}
	d.top = b
}

// qualified reads a type after const and the like.
func (c *cxx) qualified(deps int) desc {
	q := c.qualifiers()
	switch c.peek() {
	case 'K', 'V', 'r': // in no compiler's order
		giveUp()
	case 'F': // of a method: not a type of its own without
		d := c.function()
		c.write(qualText[q])
		d.top = 'Q'
		return d
	}
	d := c.typ()
	switch {
	case d.top == 'K' && q == constant && c.deps != deps:
		return d
	case d.top == 'K' || d.top == 'Q' || d.form == function || d.form == list:
		giveUp()
	case d.form == array:
		c.insert(d.hole, qualText[q])
		d.hole += len(qualText[q])
	default:
		c.around(&d, qualText[q])
	}
	d.top = 'Q'
	if q == constant {
		d.top = 'K'
	}
	return d
}

// function reads F, what it returns, its parameters, E.
func (c *cxx) function() desc {
	c.pos++
	c.accept('Y')
	d := c.typ()
	if d.form != plain {
		giveUp()
	}
	c.writeByte(' ')
	d.hole, d.form, d.top = len(c.out), function, 0
	c.writeByte('(')
	c.parameters(false)
	c.writeByte(')')
	if c.peek() != 'E' { // a qualifier
		giveUp()
	}
	c.pos++
	return d
}

// array reads A, how many, _, of what.
func (c *cxx) array() desc {
	c.pos++
	first := c.pos
	for isDigit(c.peek()) {
		c.pos++
	}
	size := c.in[first:c.pos]
	c.expect('_')
	d := c.typ()
	top := byte(0)
	if d.top == 'K' || d.top == 'Q' {
		top = d.top
	}
	switch d.form {
	case plain:
		d.hole = len(c.out)
		c.write(" [")
		c.write(size)
		c.writeByte(']')
		d.form = array
	default:
		giveUp()
	}
	d.top = top
	return d
}

// memberPointer reads M, the class, the type of the member.
func (c *cxx) memberPointer() desc {
	c.pos++
	start, subs, autos := len(c.out), len(c.subs), c.autos
	if class := c.typ(); class.form != plain {
		giveUp()
	}
	class := string(c.bytes(c.hide(start, subs)))
	d := c.typ()
	if c.autos != autos {
		giveUp()
	}
	if d.form == plain || d.form == declared {
		c.around(&d, " "+class+"::*")
	} else {
		c.around(&d, class+"::*")
	}
	d.top = 'M'
	return d
}

var dTypes = [256]string{
	'a': "auto", 'c': "decltype(auto)", 'h': "half", 'i': "char32_t",
	'n': "decltype(nullptr)", 's': "char16_t", 'u': "char8_t",
}

// dType reads a type that begins with D. Those that are known need not be
// remembered.
func (c *cxx) dType() (d desc, known bool) {
	d.start = len(c.out)
	b := c.peekAt(1)
	switch b {
	case 'p':
		return c.expansion(), false
	case 'v':
		return c.vector(), false
	case 'o':
		c.pos += 2
		if c.peek() != 'F' {
			giveUp()
		}
		d = c.function()
		c.write(" noexcept")
		d.top = 'Q'
		return d, false
	}
	s := dTypes[b]
	if s == "" {
		giveUp()
	}
	c.pos += 2
	c.write(s)
	return d, true
}

// vector reads Dv, how many, _, of what.
func (c *cxx) vector() desc {
	c.pos += 2
	size := c.number()
	c.expect('_')
	d := c.typ()
	if d.form != plain {
		giveUp()
	}
	c.write(" __vector(")
	c.writeInt(size)
	c.writeByte(')')
	d.top = 0
	return d
}

// parameters reads the types of parameters, up to an end that is not read, and
// says whether one of them was an expansion of nothing.
//
// In a lambda, the library lets the declarator of a function or array take in
// what is around the lambda: nothing to imitate.
func (c *cxx) parameters(inLambda bool) (empty bool) {
	if c.peek() == 'v' {
		c.pos++
		if c.parametersEnd() {
			return false
		}
		c.pos--
	}
	n := 0
	for first := true; !c.parametersEnd(); n++ {
		start, subs := len(c.out), len(c.subs)
		if !first {
			c.write(", ")
		}
		from := len(c.out)
		d := c.typ()
		if inLambda && d.form != plain && d.form != list {
			giveUp()
		}
		if len(c.out) == from {
			c.hide(start, subs)
			empty = true
			continue
		}
		first = false
	}
	if n == 0 {
		giveUp()
	}
	return empty
}

func (c *cxx) parametersEnd() bool {
	switch c.peek() {
	case 'E', '.':
		return true
	case 'R', 'O':
		return c.peekAt(1) == 'E'
	}
	return c.pos >= len(c.in)
}
