package symbols

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// globSigns are the characters that make a pattern of a text.
const globSigns = "*?["

// Glob makes a test for names of a pattern: * stands for any text, with colons
// and slashes, ? for one character, [a-z] and [!a-z] for one of a set. The
// pattern is of the whole name, or of the name without its parameters. An error
// is one sentence.
func Glob(pattern string) (func(name string) bool, error) {
	for rest := pattern; ; {
		open := strings.IndexByte(rest, '[')
		if open < 0 {
			break
		}
		_, after, ok := class(rest[open:])
		if !ok {
			return nil, fmt.Errorf("the pattern %s has a [ without its ]: for a bracket itself write [[]", Printable(pattern))
		}
		rest = after
	}
	return func(name string) bool {
		if glob(pattern, name) {
			return true
		}
		bare := withoutParameters(name)
		return len(bare) < len(name) && glob(pattern, bare)
	}, nil
}

// glob goes back to the last star only: an earlier one has no need to grow.
func glob(pattern, name string) bool {
	var star, from string // behind the last star, and what it was tried on
	starred := false
	for name != "" || pattern != "" {
		if strings.HasPrefix(pattern, "*") {
			pattern, starred = pattern[1:], true
			star, from = pattern, name
			continue
		}
		if p, n, ok := globOne(pattern, name); ok {
			pattern, name = p, n
			continue
		}
		if !starred || from == "" {
			return false
		}
		_, size := utf8.DecodeRuneInString(from)
		from = from[size:]
		pattern, name = star, from
	}
	return true
}

// globOne takes the first part of the pattern, which is no star, and the
// character that it stands for.
func globOne(pattern, name string) (p, n string, ok bool) {
	if pattern == "" || name == "" {
		return "", "", false
	}
	if pattern[0] != '?' && pattern[0] != '[' {
		return pattern[1:], name[1:], pattern[0] == name[0]
	}
	r, size := utf8.DecodeRuneInString(name)
	if pattern[0] == '?' {
		return pattern[1:], name[size:], true
	}
	has, rest, ok := class(pattern)
	return rest, name[size:], ok && has(r)
}

// class reads a set such as [a-z_] or [!0-9]; a ] that comes first is one of it.
func class(pattern string) (has func(r rune) bool, rest string, ok bool) {
	set := pattern[1:]
	negated := strings.HasPrefix(set, "!") || strings.HasPrefix(set, "^")
	if negated {
		set = set[1:]
	}
	end := 1 + strings.IndexByte(set[min(1, len(set)):], ']')
	if end == 0 {
		return nil, "", false
	}
	set, rest = set[:end], set[end+1:]
	return func(r rune) bool { return inSet(set, r) != negated }, rest, true
}

func inSet(set string, r rune) bool {
	for set != "" {
		low, size := utf8.DecodeRuneInString(set)
		set = set[size:]
		high := low
		if len(set) > 1 && set[0] == '-' {
			high, size = utf8.DecodeRuneInString(set[1:])
			set = set[1+size:]
		}
		if low <= r && r <= high {
			return true
		}
	}
	return false
}

// withoutParameters is a demangled name up to the parenthesis that opens the
// parameters of its last part.
func withoutParameters(name string) string {
	_, end := lastPart(name)
	if strings.HasSuffix(name[:end], "operator") && strings.HasPrefix(name[end:], "()(") {
		end += 2
	}
	return name[:end]
}
