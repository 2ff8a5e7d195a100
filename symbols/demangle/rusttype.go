package demangle

import "strconv"

var rustBasic = [256]string{
	'a': "i8", 'b': "bool", 'c': "char", 'd': "f64", 'e': "str", 'f': "f32",
	'h': "u8", 'i': "isize", 'j': "usize", 'l': "i32", 'm': "u32", 'n': "i128",
	'o': "u128", 'p': "_", 's': "i16", 't': "u16", 'u': "()", 'v': "...",
	'x': "i64", 'y': "u64", 'z': "!",
}

func (r *rust) typ() {
	c := r.peek()
	if s := rustBasic[c]; s != "" {
		r.pos++
		r.write(s)
		return
	}
	switch c {
	case 'C', 'M', 'X', 'Y', 'N', 'I':
		r.path(false)
		return
	}
	r.enter()
	switch r.next() {
	case 'A':
		r.writeByte('[')
		r.typ()
		r.write("; ")
		r.constant()
		r.writeByte(']')
	case 'S':
		r.writeByte('[')
		r.typ()
		r.writeByte(']')
	case 'T':
		r.tuple()
	case 'R', 'Q':
		r.reference(c == 'Q')
	case 'P':
		r.write("*const ")
		r.typ()
	case 'O':
		r.write("*mut ")
		r.typ()
	case 'F':
		r.function()
	case 'D':
		r.dyn()
	case 'B':
		if back, ok := r.backref(); ok {
			r.typ()
			r.comeBack(back)
		}
	default:
		giveUp()
	}
	r.leave()
}

func (r *rust) tuple() {
	r.writeByte('(')
	n := 0
	for ; !r.accept('E'); n++ {
		if n > 0 {
			r.write(", ")
		}
		r.typ()
	}
	if n == 1 {
		r.writeByte(',')
	}
	r.writeByte(')')
}

func (r *rust) reference(mut bool) {
	r.writeByte('&')
	if r.accept('L') {
		if n := r.count(); n > 0 {
			r.lifetime(n)
			r.writeByte(' ')
		}
	}
	if mut {
		r.write("mut ")
	}
	r.typ()
}

func (r *rust) function() {
	hold := r.lifetimes
	r.binder()
	if r.accept('U') {
		r.write("unsafe ")
	}
	if r.accept('K') {
		r.write(`extern "`)
		if r.accept('C') {
			r.writeByte('C')
		} else {
			id := r.plainIdentifier()
			for i := 0; i < len(id); i++ {
				if id[i] == '_' {
					r.writeByte('-')
				} else {
					r.writeByte(id[i])
				}
			}
		}
		r.write(`" `)
	}
	r.write("fn(")
	for first := true; !r.accept('E'); first = false {
		if !first {
			r.write(", ")
		}
		r.typ()
	}
	r.writeByte(')')
	if !r.accept('u') {
		r.write(" -> ")
		r.typ()
	}
	r.lifetimes = hold
}

func (r *rust) dyn() {
	hold := r.lifetimes
	r.write("dyn ")
	r.binder()
	for first := true; !r.accept('E'); first = false {
		if !first {
			r.write(" + ")
		}
		r.trait()
	}
	r.lifetimes = hold
	if !r.accept('L') {
		giveUp()
	}
	if n := r.count(); n > 0 {
		if len(r.out) > 0 && r.out[len(r.out)-1] != ' ' {
			r.writeByte(' ')
		}
		r.write("+ ")
		r.lifetime(n)
	}
}

// trait reads a path with the types of its associated names: Iterator<Item = T>.
func (r *rust) trait() {
	open := r.openPath()
	for r.accept('p') {
		if open {
			r.write(", ")
		} else {
			r.writeByte('<')
			open = true
		}
		r.write(r.plainIdentifier())
		r.write(" = ")
		r.typ()
	}
	if open {
		r.writeByte('>')
	}
}

// openPath reads a path, and says whether it wrote a < that is not closed yet.
func (r *rust) openPath() (open bool) {
	r.enter()
	switch r.peek() {
	case 'I':
		r.pos++
		r.path(false)
		r.writeByte('<')
		r.genericArgs()
		open = true
	case 'B':
		r.pos++
		if back, ok := r.backref(); ok {
			open = r.openPath()
			r.comeBack(back)
		}
	default:
		r.path(false)
	}
	r.leave()
	return open
}

// binder names lifetimes: for<'a, 'b>.
func (r *rust) binder() {
	if !r.accept('G') {
		return
	}
	n := r.count() + 1
	if n >= int64(r.end-r.pos)-r.lifetimes {
		giveUp()
	}
	r.write("for<")
	for i := range n {
		if i > 0 {
			r.write(", ")
		}
		r.lifetimes++
		r.lifetime(1)
	}
	r.write("> ")
}

// lifetime writes the nth bound lifetime, counted from the innermost; 0 is the
// one without a name.
func (r *rust) lifetime(n int64) {
	r.writeByte('\'')
	if n == 0 {
		r.writeByte('_')
		return
	}
	depth := r.lifetimes - n
	switch {
	case depth < 0:
		giveUp()
	case depth < 26:
		r.writeByte('a' + byte(depth))
	default:
		r.writeByte('z')
		r.writeInt(depth - 26 + 1)
	}
}

func (r *rust) constant() {
	r.enter()
	defer r.leave()
	switch c := r.next(); c {
	case 'B':
		if back, ok := r.backref(); ok {
			r.constant()
			r.comeBack(back)
		}
	case 'p':
		r.writeByte('_')
	case 'a', 's', 'l', 'x', 'n', 'i':
		if r.accept('n') {
			r.writeByte('-')
		}
		r.integer()
	case 'h', 't', 'm', 'y', 'o', 'j':
		r.integer()
	case 'b':
		switch digits, val := r.hex(); {
		case len(digits) > 1 || val > 1:
			giveUp()
		case val == 1:
			r.write("true")
		default:
			r.write("false")
		}
	case 'c':
		r.character()
	default:
		giveUp()
	}
}

func (r *rust) integer() {
	digits, val := r.hex()
	switch {
	case len(digits) > 16:
		r.write("0x")
		r.write(digits)
	case !r.skip:
		r.out = strconv.AppendUint(r.out, val, 10)
	}
}

// hex reads hex digits up to a _; val is right for up to 16 of them.
func (r *rust) hex() (digits string, val uint64) {
	first := r.pos
	for {
		c := r.next()
		if c == '_' {
			break
		}
		d, ok := hexDigit(c)
		if !ok || val == 0 && c == '0' && r.peek() != '_' {
			giveUp()
		}
		val = val<<4 | uint64(d)
	}
	digits = r.in[first : r.pos-1]
	if digits == "" {
		giveUp()
	}
	return digits, val
}

func (r *rust) character() {
	digits, val := r.hex()
	if len(digits) > 6 {
		giveUp()
	}
	r.writeByte('\'')
	switch {
	case val == '\t':
		r.write(`\t`)
	case val == '\r':
		r.write(`\r`)
	case val == '\n':
		r.write(`\n`)
	case val == '\\' || val == '\'':
		r.writeByte('\\')
		r.writeByte(byte(val))
	case ' ' <= val && val <= '~':
		r.writeByte(byte(val))
	case !r.skip:
		r.out = append(r.out, `\u{`...)
		r.out = strconv.AppendUint(r.out, val, 16)
		r.out = append(r.out, '}')
	}
	r.writeByte('\'')
}
