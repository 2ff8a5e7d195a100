package probes

import "uprobetop/symbols"

const mostStartup = 20 // bytes of the largest in startupCode

// startupCode is what the object files of the compiler and of the C library add to
// every program (crti.o, crtbegin.o), with the most bytes that it has there: most have
// no size in the symbol table. A function of the program's own may have the same name.
var startupCode = map[string]uint64{
	"_init":                   0,
	"_fini":                   0,
	"deregister_tm_clones":    0,
	"register_tm_clones":      0,
	"__do_global_ctors_aux":   0,
	"__do_global_dtors_aux":   0,
	"frame_dummy":             0,
	"_dl_relocate_static_pie": 8,           // ret; in a static PIE a function that works
	"call_weak_fn":            mostStartup, // arm64
}

func startup(fn *symbols.Function) bool {
	if fn.Size > mostStartup { // nearly all: their names need not be looked up
		return false
	}
	most, known := startupCode[fn.Name]
	return known && fn.Size <= most && fn.Into == 0
}
