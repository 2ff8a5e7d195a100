package demangle

// arguments reads I, the arguments of a template, E. They are added to c.args.
func (c *cxx) arguments() {
	c.expect('I')
	if c.last() == '<' { // of operator<
		c.writeByte(' ')
	}
	c.writeByte('<')
	for first := true; !c.accept('E'); {
		start, subs := len(c.out), len(c.subs)
		if !first {
			c.write(", ")
		}
		from := len(c.out)
		t := c.argument()
		if len(c.out) == from {
			c.hide(start, subs)
			t.a = span{}
		} else {
			first = false
		}
		c.args = append(c.args, t)
	}
	if c.last() == '>' {
		c.writeByte(' ')
	}
	c.writeByte('>')
}

// argument reads one argument. That of a pack has its elements in name, as
// indexes into c.elems.
func (c *cxx) argument() text {
	args, elems := len(c.args), len(c.elems)
	start := len(c.out)
	switch c.peek() {
	case 'L':
		c.literalValue()
		return text{a: c.since(start), at: -1}
	case 'X':
		c.pos++
		c.expression()
		c.expect('E')
		return text{a: c.since(start), at: -1}
	case 'J', 'I':
		return c.packArgument()
	}
	d := c.typ()
	c.args, c.elems = c.args[:args], c.elems[:elems]
	var t text
	c.written(d, &t)
	return t
}

func (c *cxx) packArgument() text {
	c.pos++
	start, first := len(c.out), len(c.elems)
	for n := 0; !c.accept('E'); n++ {
		if n > 0 {
			c.write(", ")
		}
		if c.peek() == 'J' || c.peek() == 'I' {
			giveUp()
		}
		from := len(c.out)
		t := c.argument()
		if len(c.out) == from && (n > 0 || c.peek() != 'E') {
			giveUp()
		}
		c.elems = append(c.elems, t)
	}
	return text{a: c.since(start), name: span{int32(first), int32(len(c.elems))}, at: -1, form: list}
}

// parameterIndex reads T_, T0_ and so on.
func (c *cxx) parameterIndex() int {
	c.pos++
	if b := c.peek(); b != '_' && !isDigit(b) {
		giveUp()
	}
	return c.ordinal()
}

// parameter reads T_ and writes what it stands for.
func (c *cxx) parameter() desc {
	c.steps++
	c.deps++
	n := c.parameterIndex()
	if c.cast || c.tmpl == nil && c.lambdas == 0 || c.tmpl != nil && (c.lambdas > 0 || c.nested > 1) {
		giveUp()
	}
	if c.tmpl == nil {
		d := desc{start: len(c.out)}
		c.autos++
		c.write("auto:")
		c.writeInt(n + 1)
		return d
	}
	if n >= len(c.tmpl) {
		giveUp()
	}
	t := &c.tmpl[n]
	if t.form != list || !c.packed {
		return c.emit(t)
	}
	if c.pack >= 0 && c.pack != n {
		giveUp()
	}
	c.pack = n
	elems := c.elems[t.name.start:t.name.end]
	if len(elems) == 0 {
		return desc{start: len(c.out)}
	}
	return c.emit(&elems[c.elem])
}

// parameterType reads a type that begins with T_.
func (c *cxx) parameterType(at, deps int) desc {
	d := c.parameter()
	if c.peek() != 'I' {
		return d
	}
	if d.form != plain {
		giveUp()
	}
	c.remember(d, at, deps)
	args, elems := len(c.args), len(c.elems)
	c.arguments()
	c.args, c.elems = c.args[:args], c.elems[:elems]
	return desc{start: d.start}
}

// expansion reads Dp and a pattern, which it writes for each element of the pack
// that is in it.
func (c *cxx) expansion() desc {
	c.pos += 2
	packed, pack, elem, ctx := c.packed, c.pack, c.elem, c.ctx
	start, subs, at, autos := len(c.out), len(c.subs), c.pos, c.autos
	c.packed, c.pack, c.elem = true, -1, 0
	c.newContext()
	if d := c.typ(); c.lambdas > 0 && d.form != plain {
		giveUp()
	}
	end, known := c.pos, len(c.subs)
	switch {
	case c.pack >= 0:
		t := c.tmpl[c.pack]
		n := int(t.name.end - t.name.start)
		if n == 0 {
			c.hide(start, subs)
		}
		for i := 1; i < n; i++ {
			c.write(", ")
			c.pos, c.elem = at, i
			c.newContext()
			c.typ()
			c.subs = c.subs[:known]
		}
	case c.autos != autos:
		c.insert(start, "(")
		c.write(")...")
	default:
		giveUp()
	}
	c.pos = end
	c.packed, c.pack, c.elem, c.ctx = packed, pack, elem, ctx
	return desc{start: start, form: list}
}
