package probes

import (
	"fmt"
	"path/filepath"
	"strings"

	"uprobetop/symbols"
)

// language is one whose functions are in no file.
type language struct {
	name  string
	does  string // what is done with its functions at run time
	where string // by what the runtime is probed if the file only loads it; empty: it is the file itself
}

// languages are known by a function that their runtimes export, or that programs import
// which load them.
var languages = map[string]language{
	"JNI_CreateJavaVM":         {"Java", "compiled", ""},
	"JLI_Launch":               {"Java", "compiled", "libjvm"},
	"_ZN4node5StartEiPPc":      {"JavaScript", "compiled", ""},
	"_PyEval_EvalFrameDefault": {"Python", "interpreted", ""},
	"Py_BytesMain":             {"Python", "interpreted", "libpython"},
	"ruby_init":                {"Ruby", "interpreted", "libruby"},
	"perl_run":                 {"Perl", "interpreted", "libperl"},
	"php_execute_script":       {"PHP", "interpreted", ""},
	"coreclr_initialize":       {".NET", "compiled", ""},
	"luaJIT_setmode":           {"Lua", "compiled", "libluajit-5.1"},
	"erl_start":                {"Erlang", "compiled", ""},
}

// Runtime says, in a clause, that functions which a person may look for in these files
// are in none, because they are made at run time, and what can be probed instead; it is
// empty where there are no such functions.
func Runtime(files []*symbols.File) string {
	var found language
	for _, f := range files {
		name, own := f.Dynamic(func(name string) bool { _, ok := languages[name]; return ok })
		if name == "" {
			continue
		}
		l := languages[name]
		if own || l.where == "" {
			l.where, _, _ = strings.Cut(symbols.Printable(filepath.Base(f.Path)), ".so")
		}
		if found.name == "" || own { // rather the runtime than a program that loads it
			found = l
		}
		if own {
			break
		}
	}
	if found.name == "" {
		return ""
	}
	return fmt.Sprintf("your own %s functions are %s at run time and are in no file; %s and libc can be probed", found.name, found.does, found.where)
}
