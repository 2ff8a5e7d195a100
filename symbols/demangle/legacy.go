package demangle

import (
	"math/bits"
	"strings"
)

// isLegacy tells Rust's names before v0, which look like C++: _ZN, names with
// their lengths, 17h and a hash of 16 hex digits, E, and perhaps a suffix that
// begins with a dot and is not shown.
func isLegacy(name string) bool {
	if !strings.HasPrefix(name, "_ZN") {
		return false
	}
	if strings.IndexByte(name, '.') >= 0 {
		name = withoutSuffix(name)
	}
	n := len(name)
	return n > 23 && name[n-1] == 'E' && name[n-20:n-17] == "17h"
}

func withoutSuffix(name string) string {
	if i := strings.LastIndex(name, "E."); i > 0 {
		return name[:i+1]
	}
	return name
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case isDigit(c):
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	}
	return 0, false
}

// isHash asks for 5 different digits: a C++ name that only looks so has fewer.
func isHash(s string) bool {
	seen := uint16(0)
	for i := 0; i < len(s); i++ {
		d, ok := hexDigit(s[i])
		if !ok {
			return false
		}
		seen |= 1 << d
	}
	return bits.OnesCount16(seen) >= 5
}

func appendLegacy(dst []byte, name string) ([]byte, bool) {
	name = withoutSuffix(name)[len("_ZN"):]
	n := len(name)
	if !isHash(name[n-17 : n-1]) {
		return dst, false
	}
	for i := 0; i < n-20; {
		length, digits := 0, i
		for ; i < n-20 && isDigit(name[i]) && length < maxInput; i++ {
			length = length*10 + int(name[i]-'0')
		}
		if i == digits || length == 0 {
			return dst, false
		}
		if i < n-20 && name[i] == '_' {
			i++
			length--
		}
		if length > n-20-i {
			return dst, false
		}
		if digits > 0 {
			dst = append(dst, "::"...)
		}
		dst = appendEscaped(dst, name[i:i+length])
		i += length
	}
	return dst, true
}

// appendEscaped writes one part of a legacy name: $LT$ for <, .. for ::. From
// an escape on that it does not know it leaves the part as it is.
func appendEscaped(dst []byte, id string) []byte {
	if strings.HasPrefix(id, "_$") {
		id = id[1:]
	}
	for len(id) > 0 {
		switch {
		case strings.HasPrefix(id, ".."):
			dst = append(dst, "::"...)
			id = id[2:]
		case id[0] == '$':
			c, n := escaped(id)
			if n == 0 {
				return append(dst, id...)
			}
			dst = append(dst, c)
			id = id[n:]
		default:
			dst = append(dst, id[0])
			id = id[1:]
		}
	}
	return dst
}

// escaped is the character that id's first n bytes stand for; n is 0 for none.
func escaped(id string) (c byte, n int) {
	switch {
	case strings.HasPrefix(id, "$C$"):
		return ',', 3
	case len(id) > 4 && id[1] == 'u' && id[4] == '$':
		high, ok1 := hexDigit(id[2])
		low, ok2 := hexDigit(id[3])
		if !ok1 || !ok2 || high > 7 || high < 2 {
			return 0, 0
		}
		return high<<4 | low, 5
	case len(id) > 3 && id[3] == '$':
		switch id[1:3] {
		case "SP":
			return '@', 4
		case "BP":
			return '*', 4
		case "RF":
			return '&', 4
		case "LT":
			return '<', 4
		case "GT":
			return '>', 4
		case "LP":
			return '(', 4
		case "RP":
			return ')', 4
		}
	}
	return 0, 0
}
