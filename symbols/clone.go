package symbols

import "strings"

// Compilers add these to the name of a function for what they make of it, each with a
// number behind it or without (gcc, clone_function_name; LLVM, HotColdSplitting and
// basic block sections). Of Go, dots are parts of names.
var cloneMarks = map[string]bool{
	"part": true, "cold": true, "isra": true, "constprop": true, "lto_priv": true, "local": true,
	"localalias": true, "ipa-pta": true, "simdclone": true, "specialized": true, "warm": true, "__part": true,
}

// CloneOf is the raw name of the function of which the compiler made this one, or a
// part of it: foo of foo.isra.0.cold. It is empty for all others.
func (f *File) CloneOf(fn *Function) string {
	of, _, _ := strings.Cut(fn.Name, ".")
	if f.Go || of == "" || len(of) == len(fn.Name) || fn.Into > 0 {
		return ""
	}
	for mark := range strings.SplitSeq(fn.Name[len(of)+1:], ".") {
		if !cloneMarks[mark] && strings.Trim(mark, "0123456789") != "" {
			return ""
		}
	}
	return of
}

// CloneOf is the same as people read it.
func (l *Listed) CloneOf(f *File) string {
	raw := f.CloneOf(l.Function)
	if raw == "" {
		return ""
	}
	// To demangle takes long, and mostly the name is there already: of C++ with what was
	// added behind it, of Rust without.
	if name, _, ok := strings.Cut(l.Shown, " [clone ."); ok {
		return name
	}
	if strings.HasPrefix(raw, "_R") && !strings.HasPrefix(l.Shown, "_R") && !l.Old() {
		return l.Shown
	}
	return Symbol{Name: raw}.Demangled()
}

// fragment tells, where the file does not, whether by its names fn is only a piece of a
// function, which that jumps to: gcc's foo.cold, LLVM's parts and BOLT's.
func (f *File) fragment(fn *Function) bool {
	for _, s := range fn.symbols() {
		whole := strings.TrimRight(s.Name, ".0123456789")
		if !f.Go && (strings.HasSuffix(whole, ".cold") || strings.HasSuffix(whole, ".__part")) {
			return true
		}
	}
	return false
}

// Clones is what the compiler made of a function that can be called in its place:
// foo.isra.0 and foo.constprop.0 of foo, but not foo.cold, to which foo jumps.
func (f *File) Clones(of *Function) (all []*Function) {
	code := f.code()
	for i := range code {
		fn := &code[i]
		if strings.HasPrefix(fn.Name, of.Name+".") && f.CloneOf(fn) == of.Name && !f.fragment(fn) {
			all = append(all, fn)
		}
	}
	return all
}
