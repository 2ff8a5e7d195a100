package demangle

// standard are the names that have a letter of their own, and how a constructor
// of theirs calls them.
var standard = [256]struct{ short, full, last string }{
	'a': {"std::allocator", "std::allocator", "allocator"},
	'b': {"std::basic_string", "std::basic_string", "basic_string"},
	's': {"std::string", "std::basic_string<char, std::char_traits<char>, std::allocator<char> >", "basic_string"},
	'i': {"std::istream", "std::basic_istream<char, std::char_traits<char> >", "basic_istream"},
	'o': {"std::ostream", "std::basic_ostream<char, std::char_traits<char> >", "basic_ostream"},
	'd': {"std::iostream", "std::basic_iostream<char, std::char_traits<char> >", "basic_iostream"},
}

// seqID reads S, a number in base 36, _ as an index into subs.
func (c *cxx) seqID() int {
	c.pos++
	if c.accept('_') {
		return 0
	}
	for n := 0; ; {
		b := c.peek()
		switch {
		case b == '_':
			c.pos++
			return n + 1
		case isDigit(b):
			n = n*36 + int(b-'0')
		case isUpper(b):
			n = n*36 + int(b-'A') + 10
		default:
			giveUp()
		}
		if n > maxInput {
			giveUp()
		}
		c.pos++
	}
}

// again writes what S_ and so on stand for. Where that has a T_ in it which
// means something else here, it is read again.
func (c *cxx) again() (d desc, name span) {
	i := c.seqID()
	if i >= len(c.subs) {
		giveUp()
	}
	t := c.subs[i]
	if t.ctx != 0 {
		c.deps++
		if t.ctx != c.ctx {
			return c.readAgain(t)
		}
	}
	d = c.emit(&t)
	if t.name.end > t.name.start {
		// Where the name is in what was just written.
		if by := int32(d.start) - t.a.start; t.name.start >= t.a.start && t.name.end <= t.a.end {
			name = span{t.name.start + by, t.name.end + by}
		} else {
			name = t.name
		}
	}
	return d, name
}

func (c *cxx) readAgain(t text) (desc, span) {
	if t.at < 0 || c.cast {
		giveUp()
	}
	pos, known := c.pos, len(c.subs)
	c.pos = int(t.at)
	d := c.typ()
	c.pos, c.subs = pos, c.subs[:known]
	return d, span{}
}

// substitution reads S_ or Sa as the first part of a name.
func (c *cxx) substitution(n *nameInfo) desc {
	b := c.peekAt(1)
	if b == '_' || isDigit(b) || isUpper(b) {
		d, last := c.again()
		if d.form != plain {
			giveUp()
		}
		n.last = last
		return d
	}
	d := desc{start: len(c.out)}
	if b == 't' {
		c.pos += 2
		c.write("std")
		n.last = span{}
		return d
	}
	s := &standard[b]
	if s.short == "" {
		giveUp()
	}
	c.pos += 2
	text := s.short
	if next := c.peek(); next == 'C' || next == 'D' {
		text = s.full
	} else if next == 'B' {
		giveUp()
	}
	c.write(text)
	n.last = c.since(d.start + len("std::"))
	if len(text) == len(s.full) {
		n.last.end = n.last.start + int32(len(s.last))
	}
	return d
}

// substituted reads a type that begins with S.
func (c *cxx) substituted() (d desc) {
	at, deps := c.pos, c.deps
	b := c.peekAt(1)
	if b == 't' || standard[b].short != "" && c.peekAt(2) == 'I' {
		return c.named(at, deps)
	}
	var n nameInfo
	if b == '_' || isDigit(b) || isUpper(b) {
		d, n.last = c.again()
	} else {
		d.start = len(c.out)
		c.pos += 2
		c.write(standard[b].short)
		if standard[b].short == "" || c.peek() == 'B' {
			giveUp()
		}
		return d
	}
	if c.peek() != 'I' {
		return d
	}
	if d.form != plain {
		giveUp()
	}
	c.arguments(false)
	d = desc{start: d.start}
	c.remember(d, at, deps)
	c.subs[len(c.subs)-1].name = n.last
	return d
}
