package demangle

// operators are the names of functions that are no words, by their two letters.
var operators = map[string]string{
	"aN": "&=", "aS": "=", "aa": "&&", "ad": "&", "an": "&", "cl": "()", "cm": ",",
	"co": "~", "dV": "/=", "da": " delete[]", "de": "*", "dl": " delete", "dv": "/",
	"eO": "^=", "eo": "^", "eq": "==", "ge": ">=", "gt": ">", "ix": "[]", "lS": "<<=",
	"le": "<=", "ls": "<<", "lt": "<", "mI": "-=", "mL": "*=", "mi": "-", "ml": "*",
	"mm": "--", "na": " new[]", "ne": "!=", "ng": "-", "nt": "!", "nw": " new",
	"oR": "|=", "oo": "||", "or": "|", "pL": "+=", "pl": "+", "pm": "->*", "pp": "++",
	"ps": "+", "pt": "->", "rM": "%=", "rS": ">>=", "rm": "%", "rs": ">>", "ss": "<=>",
}

// operator reads the name of an operator, and says whether it is a conversion.
func (c *cxx) operator() (conversion bool) {
	if c.pos+2 > len(c.in) {
		giveUp()
	}
	code := c.in[c.pos : c.pos+2]
	c.pos += 2
	switch code {
	case "cv":
		c.write("operator ")
		hold := c.cast
		c.cast = true
		c.typ()
		c.cast = hold
		return true
	case "li":
		c.write(`operator"" `)
		c.source()
		return false
	}
	s, ok := operators[code]
	if !ok {
		giveUp()
	}
	c.write("operator")
	c.write(s)
	return false
}

// expression reads those that are frequent as template arguments.
func (c *cxx) expression() {
	switch c.peek() {
	case 'L':
		c.literalValue()
	case 'T':
		c.parameter()
	case 'a':
		if len(c.in)-c.pos < 5 || c.in[c.pos:c.pos+5] != "adL_Z" {
			giveUp()
		}
		c.pos += 5
		c.writeByte('&')
		c.encoding(address)
		c.expect('E')
	default:
		giveUp()
	}
}

// suffix of a number of this type, which then shows without its type.
var suffix = [256]string{'i': " ", 'j': "u", 'l': "l", 'm': "ul", 'x': "ll", 'y': "ull"}

// literalValue reads L, a type, a value, E, or a function or variable.
func (c *cxx) literalValue() {
	c.pos++
	b := c.peek()
	switch {
	case b == '_' && c.peekAt(1) == 'Z':
		c.pos += 2
		c.encoding(whole)
		c.expect('E')
		return
	case suffix[b] != "":
		c.pos++
		c.value()
		if b != 'i' {
			c.write(suffix[b])
		}
		return
	case b == 'b' && c.peekAt(2) == 'E' && c.peekAt(1) == '0':
		c.pos += 3
		c.write("false")
		return
	case b == 'b' && c.peekAt(2) == 'E' && c.peekAt(1) == '1':
		c.pos += 3
		c.write("true")
		return
	case b == 'D' && c.peekAt(1) == 'n':
		c.pos += 2
		c.write("decltype(nullptr)")
		c.accept('0')
		c.expect('E')
		return
	}
	deps := c.deps
	c.writeByte('(')
	if c.typ(); c.deps != deps {
		giveUp()
	}
	c.writeByte(')')
	float := b == 'd' || b == 'e' || b == 'f' || b == 'g'
	if float {
		c.writeByte('[')
	}
	c.value()
	if float {
		c.writeByte(']')
	}
}

// value reads a number of any kind up to E.
func (c *cxx) value() {
	if c.accept('n') {
		c.writeByte('-')
	}
	first := c.pos
	for c.pos < len(c.in) && c.in[c.pos] != 'E' {
		c.pos++
	}
	if c.pos == first {
		giveUp()
	}
	c.write(c.in[first:c.pos])
	c.expect('E')
}
