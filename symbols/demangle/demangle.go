// Package demangle reads the mangled names that files are full of, fast: in one
// pass, into the caller's buffer, without an allocation. What is rare it leaves
// to a whole demangler. Where it answers, it answers to the byte what
// github.com/ianlancetaylor/demangle does; its tests hold the two together.
//
// Sources: the Itanium C++ ABI, chapter 5.1, and Rust's RFC 2603.
package demangle

import "strings"

// A name is a file's word, and can be written to unfold without end. What goes
// beyond these is "not mine".
const (
	maxOutput = 1 << 14 // bytes of one demangled name
	maxInput  = 1 << 14 // bytes of one mangled name
	maxDepth  = 96      // of types and names in one another
	maxSteps  = 1 << 14 // types and names read, those read again included
	maxSubs   = 1 << 10 // candidates for substitution
)

// Append appends the demangled form of name to dst. Where it says false, name is
// not mangled, is broken, or is of a form that is not handled here; dst is then
// as it was.
func Append(dst []byte, name string) ([]byte, bool) { return appendTo(dst, name, true) }

// AppendName is Append without the parameters of a C++ function, what it returns
// and what a compiler added to the name of a copy.
func AppendName(dst []byte, name string) ([]byte, bool) { return appendTo(dst, name, false) }

func appendTo(dst []byte, name string, params bool) (out []byte, ok bool) {
	if len(name) > maxInput {
		return dst, false
	}
	switch {
	case strings.HasPrefix(name, "_R"):
		out, ok = appendRust(dst, name)
	case strings.HasPrefix(name, "_Z"):
		if isLegacy(name) {
			out, ok = appendLegacy(dst, name)
		}
		if !ok {
			out, ok = appendCXX(dst, name, params)
		}
	}
	if !ok || len(out)-len(dst) > maxOutput {
		return dst, false
	}
	return out, true
}

// notMine is what the readers panic with, from however deep, when a name is
// broken or not handled here.
type notMine struct{}

func giveUp() { panic(notMine{}) }

// strict lets tests see a mistake in here, which otherwise makes a name not mine.
var strict bool

// recovered is deferred: it turns a panic into ok = false.
func recovered(ok *bool) {
	r := recover()
	if r == nil {
		return
	}
	if r != (notMine{}) && strict {
		panic(r)
	}
	*ok = false
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
