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
)

// Append appends the demangled form of name to dst. Where it says false, name is
// not mangled, is broken, or is of a form that is not handled here; dst is then
// as it was.
func Append(dst []byte, name string) ([]byte, bool) {
	if len(name) > maxInput {
		return dst, false
	}
	var out []byte
	var ok bool
	switch {
	case strings.HasPrefix(name, "_R"):
		out, ok = appendRust(dst, name)
	case strings.HasPrefix(name, "_ZN") && isLegacy(name):
		out, ok = appendLegacy(dst, name)
	}
	if !ok && strings.HasPrefix(name, "_Z") {
		out, ok = appendCXX(dst, name, true)
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

// recovered is deferred: it turns giveUp into ok = false.
func recovered(ok *bool) {
	switch r := recover().(type) {
	case nil:
	case notMine:
		*ok = false
	default:
		panic(r)
	}
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
