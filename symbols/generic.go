package symbols

import "strings"

// lookupGo finds the instances of a generic function or of a method of a generic type by
// the name without type arguments, or with [...] for them, as Go's own traces have it:
// main.Sum, main.(*List[...]).Push.
func (f *File) lookupGo(name string) (fns []*Function) {
	name = strings.ReplaceAll(name, "[...]", "")
	if !f.Go || name == "" || strings.Contains(name, "[") {
		return nil
	}
	for i := range f.Functions {
		fn := &f.Functions[i]
		if strings.Contains(fn.Name, "[") && withoutTypeArguments(fn.Name) == name {
			fns = append(fns, fn)
		}
	}
	return fns
}

func withoutTypeArguments(name string) string {
	var b strings.Builder
	depth := 0
	for i := 0; i < len(name); i++ {
		switch {
		case name[i] == '[':
			depth++
		case name[i] == ']':
			depth--
		case depth == 0:
			b.WriteByte(name[i])
		}
	}
	return b.String()
}
