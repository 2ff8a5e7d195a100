package demangle

// arguments reads I, the arguments of a template, E. With keep they are added to
// c.args.
func (c *cxx) arguments(keep bool) {
	c.pos++
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
		d, elems := c.argument(keep)
		if keep {
			c.args = append(c.args, text{})
			t := &c.args[len(c.args)-1]
			c.written(d, t)
			t.name = elems
		}
		if len(c.out) > from {
			first = false
			continue
		}
		c.hide(start, subs)
		if keep {
			c.args[len(c.args)-1].a = span{}
		}
	}
	if c.last() == '>' {
		c.writeByte(' ')
	}
	c.writeByte('>')
}

// noPack is the elements of what is not a pack.
var noPack = span{-1, -1}

// argument reads one argument. That of a pack has elements: indexes into c.elems,
// which they are added to with keep.
func (c *cxx) argument(keep bool) (d desc, elems span) {
	d.start = len(c.out)
	switch c.peek() {
	case 'L':
		c.literalValue()
	case 'X':
		c.pos++
		c.expression()
		c.expect('E')
	case 'J', 'I':
		return c.packArgument(keep)
	default:
		d = c.typ()
	}
	return d, noPack
}

func (c *cxx) packArgument(keep bool) (desc, span) {
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
		d, _ := c.argument(false)
		if len(c.out) == from && (n > 0 || c.peek() != 'E') {
			giveUp()
		}
		if keep {
			c.elems = append(c.elems, text{})
			c.written(d, &c.elems[len(c.elems)-1])
		}
	}
	return desc{start: start, form: list}, span{int32(first), int32(len(c.elems))}
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
	if t.name == noPack || c.pack >= 0 && c.pack != n {
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
	c.arguments(false)
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
