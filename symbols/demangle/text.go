package demangle

// since is the span of out from p on.
func (c *cxx) since(p int) span { return span{int32(p), int32(len(c.out))} }

func (c *cxx) bytes(s span) []byte {
	if s.start >= inSide {
		return c.side[s.start-inSide : s.end-inSide]
	}
	return c.out[s.start:s.end]
}

// written sets t to d, as it stands at the end of out now.
func (c *cxx) written(d desc, t *text) {
	t.a, t.at, t.form, t.top = c.since(d.start), -1, d.form, d.top
	if d.form != plain && d.form != list {
		t.a.end = int32(d.hole)
		t.b = c.since(d.hole)
	}
}

// emit writes t once more.
func (c *cxx) emit(t *text) desc {
	d := desc{start: len(c.out), form: t.form, top: t.top}
	c.out = append(c.out, c.bytes(t.a)...)
	d.hole = len(c.out)
	if t.b.end > t.b.start {
		c.out = append(c.out, c.bytes(t.b)...)
	}
	return d
}

// remember makes d a candidate for substitution. It began at in[at]; deps is
// what c.deps was then.
func (c *cxx) remember(d desc, at, deps int) {
	t := c.newSub()
	c.written(d, t)
	t.at = int32(at)
	if c.deps != deps {
		t.ctx = c.ctx
	}
}

// newSub is an empty candidate for substitution.
func (c *cxx) newSub() *text {
	n := len(c.subs)
	if n == maxSubs {
		giveUp()
	}
	if n < cap(c.subs) {
		c.subs = c.subs[:n+1]
		c.subs[n] = text{}
	} else {
		c.subs = append(c.subs, text{})
	}
	return &c.subs[n]
}

// around puts a declarator around the type d: after it or, where the type goes
// on at its right, in its middle.
func (c *cxx) around(d *desc, declarator string) {
	switch d.form {
	case plain:
		c.write(declarator)
	case declared:
		c.insert(d.hole, declarator)
		d.hole += len(declarator)
	case function:
		c.insert(d.hole, "()")
		c.insert(d.hole+1, declarator)
		d.hole += 1 + len(declarator)
		d.form = declared
	case array:
		c.insert(d.hole, " ()")
		c.insert(d.hole+2, declarator)
		d.hole += 2 + len(declarator)
		d.form = declared
	default:
		giveUp()
	}
}

// insert puts s into out at p, and moves all that is known to be behind.
func (c *cxx) insert(p int, s string) {
	c.open(p, len(s))
	copy(c.out[p:], s)
}

// open makes n bytes of room in out at p.
func (c *cxx) open(p, n int) {
	for range n {
		c.out = append(c.out, 0)
	}
	copy(c.out[p+n:], c.out[p:len(c.out)-n])
	c.moved(0, p, inSide, n)
}

// moved says of all subs from first on that text between from and to is by
// places further on now. A span that ends at from stays.
func (c *cxx) moved(first, from, to, by int) {
	f, t, n := int32(from), int32(to), int32(by)
	for i := first; i < len(c.subs); i++ {
		s := &c.subs[i]
		for _, sp := range [...]*span{&s.a, &s.b, &s.name} {
			if sp.start >= f && sp.start < t {
				sp.start += n
				sp.end += n
			} else if sp.end > f && sp.end < t {
				sp.end += n
			}
		}
	}
}

// hide moves what out holds from p on to side: it does not show, or not here.
// firstSub is how many subs there were when it was begun.
func (c *cxx) hide(p, firstSub int) span {
	s := span{start: int32(inSide + len(c.side))}
	c.side = append(c.side, c.out[p:]...)
	s.end = int32(inSide + len(c.side))
	c.out = c.out[:p]
	c.moved(firstSub, p, inSide, int(s.start)-p)
	return s
}
