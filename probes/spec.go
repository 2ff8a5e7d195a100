package probes

import (
	"fmt"
	"strings"
)

// Spec is what a user typed for one or more functions:
//
//	malloc                   a function of the default target
//	libc:malloc              of a library of the process, or of a file
//	uretprobe:libc:malloc    bpftrace's form: with its kind
//
// The function's name may itself hold colons: Foo::bar.
type Spec struct {
	Kind     Kind   // Entry unless the text says uretprobe
	Target   string // as typed; empty: the default
	Function string
}

// ParseSpec reads a spec. An error says what is missing in one sentence.
func ParseSpec(text string) (Spec, error) {
	var s Spec
	rest := text
	for _, k := range []Kind{Entry, Return} {
		if after, ok := strings.CutPrefix(rest, k.String()+":"); ok && !strings.HasPrefix(after, ":") {
			s.Kind, rest = k, after
			break
		}
	}
	if i := singleColon(rest); i >= 0 {
		s.Target, rest = rest[:i], rest[i+1:]
		if strings.HasPrefix(s.Target+":", ":") {
			return Spec{}, fmt.Errorf("%q names no target before the colon: write libc:malloc, or malloc alone", text)
		}
	}
	if s.Function = rest; rest == "" {
		return Spec{}, fmt.Errorf("%q names no function", text)
	}
	return s, nil
}

// singleColon finds the first colon that is not part of a "::".
func singleColon(s string) int {
	for i := 0; i < len(s); i++ {
		if s[i] != ':' {
			continue
		}
		if i+1 < len(s) && s[i+1] == ':' {
			i++
			continue
		}
		return i
	}
	return -1
}

// String is a text that ParseSpec reads as this spec.
func (s Spec) String() string {
	switch {
	case s.Target != "":
		return fmt.Sprintf("%s:%s:%s", s.Kind, s.Target, s.Function)
	case s.Kind == Return:
		return fmt.Sprintf("%s:%s", s.Kind, s.Function)
	}
	return s.Function
}
