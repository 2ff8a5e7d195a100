package probes

import (
	"fmt"
	"slices"
	"strings"

	"uprobetop/symbols"
)

// Spec is what a user typed for one or more functions:
//
//	malloc                   a function of the default target
//	libc:malloc              of a library of the process, or of a file
//	uretprobe:libc:malloc    bpftrace's form: with its kind
//	usdt:python:function__entry, usdt:libpython:python:function__entry
//
// The function's name may itself hold colons: Foo::bar. A target's path that does
// has a backslash before each.
type Spec struct {
	Kind     Kind   // Entry unless the text says another
	Target   string // as typed; empty: the default
	Function string // a name, a pattern, name+0x10 or an address: see Target.Resolve; of usdt a name or pattern, or two: provider:name
}

// ParseSpec reads a spec. An error says what is missing in one sentence.
func ParseSpec(text string) (Spec, error) {
	var s Spec
	var rest string
	s.Kind, rest = cutKind(text)
	if i := targetEnd(s.Kind, rest); i >= 0 {
		s.Target, rest = unescape.Replace(rest[:i]), rest[i+1:]
		if strings.HasPrefix(s.Target+":", ":") {
			return Spec{}, fmt.Errorf("%q names no target before the colon: write libc:malloc, or malloc alone", text)
		}
	}
	if s.Kind == USDT {
		rest = strings.TrimLeft(rest, ":") // usdt:PATH::NAME is of any provider
	}
	if s.Function = rest; rest == "" {
		return Spec{}, fmt.Errorf("%q names no function", text)
	}
	return s, nil
}

// targetEnd is where a target ends in a spec without its kind, or -1. No name of a usdt
// probe has a "::" in it.
func targetEnd(k Kind, rest string) int {
	if i := strings.Index(rest, "::"); k == USDT && i > 0 && !strings.ContainsAny(rest[:i], `\[:`) {
		return i
	}
	return singleColon(rest)
}

// cutKind takes the kind off that a spec may begin with.
func cutKind(text string) (k Kind, rest string) {
	for _, k := range []Kind{Entry, Return, USDT} {
		if after, ok := strings.CutPrefix(text, k.String()+":"); ok && !strings.HasPrefix(after, ":") {
			return k, after
		}
	}
	return Entry, text
}

var (
	escape   = strings.NewReplacer(`\`, `\\`, ":", `\:`, "[", `\[`)
	unescape = strings.NewReplacer(`\\`, `\`, `\:`, ":", `\[`, "[")
)

// singleColon finds the first colon that is not part of a "::", not between
// brackets, and that no backslash stands before.
func singleColon(s string) int {
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
		case s[i] == '[': // a set, or a tag: foo[abi:cxx11]
			i += max(strings.IndexByte(s[i:], ']'), 0)
		case s[i] != ':':
		case i+1 < len(s) && s[i+1] == ':':
			i++
		default:
			return i
		}
	}
	return -1
}

// String is a text that ParseSpec reads as this spec.
func (s Spec) String() string {
	switch {
	case s.Target != "":
		return fmt.Sprintf("%s:%s:%s", s.Kind, escape.Replace(s.Target), s.Function)
	case s.Kind != Entry:
		return fmt.Sprintf("%s:%s", s.Kind, s.Function)
	}
	return s.Function
}

// SpecOf is a spec that resolves to this request and no other, in a target that
// has its file: by the name in the symbol table if it is the only one, else with
// its version, else by address.
func SpecOf(r Request) Spec {
	s := Spec{Kind: r.Kind, Target: r.File.Path}
	fn := r.Function
	if fn.Place == symbols.Marker {
		return Spec{Kind: USDT, Target: s.Target, Function: fn.Name}
	}
	for _, name := range []string{fn.Name, fn.Name + "@" + fn.Version} {
		s.Function = name
		if found, err := exactly(r.File, s); err == nil && len(found) == 1 && found[0].Offset == fn.Offset {
			return s
		}
	}
	s.Function = fmt.Sprintf("%#x", uint64(fn.Addr))
	return s
}

// exactly finds what a spec means that is no pattern: a function's name, else a
// point inside a function, name+0x10, else an address; or a usdt probe's name. Nothing
// found is no error.
func exactly(f *symbols.File, s Spec) ([]*symbols.Function, error) {
	if s.Kind == USDT {
		return f.MarkersNamed(s.Function), nil
	}
	text := s.Function
	if found := withoutMarkers(f.Lookup(text)); len(found) > 0 {
		return found, nil
	}
	if name, into, ok := offsetIn(text); ok {
		found := f.Lookup(name)
		switch {
		case len(found) == 1:
			return just(f.Inside(found[0], into))
		case len(found) > 1:
			return nil, fmt.Errorf("%d functions of %s are called %s: name a point inside one by its address",
				len(found), symbols.Printable(f.Path), symbols.Printable(name))
		}
	}
	if addr, ok := addressIn(text); ok {
		return just(f.At(addr))
	}
	return nil, nil
}

// withoutMarkers leaves out usdt probes, which only a spec of that kind means.
func withoutMarkers(fns []*symbols.Function) []*symbols.Function {
	return slices.DeleteFunc(fns, func(fn *symbols.Function) bool { return fn.Place == symbols.Marker })
}

func just(fn *symbols.Function, err error) ([]*symbols.Function, error) {
	if err != nil {
		return nil, err
	}
	return []*symbols.Function{fn}, nil
}
