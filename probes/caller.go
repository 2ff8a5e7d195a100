package probes

import (
	"slices"
	"strings"

	"uprobetop/symbols"
)

// A return probe puts an address of the kernel's in the place of the return address.
// What follows is about functions for which that is wrong: where there is none, or
// where the function reads it.

const (
	count = "count entries, without -r"
	orYes = "a yes places it (-y), or count its entries alone"
)

// checkCaller finds what speaks against a return probe in how a function is called.
func checkCaller(r Request) Finding {
	caller := r.File.Caller(r.Function)
	switch {
	case caller == symbols.CallerPiece:
		return Finding{Verdict: Refuses, Reason: "it is a piece of a function that is jumped to, so that a return probe would overwrite what is on the stack", Way: count}
	case caller == symbols.CallerAbsent, caller != symbols.CallerThere && anyName(r.Function, uncalled):
		return Finding{Verdict: Refuses, Reason: "it is jumped to or begun by the system: what is then on top of the stack is no return address, and a return probe would overwrite it", Way: count}
	case anyName(r.Function, looksBack):
		return Finding{Verdict: Refuses, Reason: "it looks at its return address to learn who called it, which with a return probe is the kernel's", Way: count}
	case caller == symbols.CallerUnknown:
		return Finding{Verdict: Asks, Reason: "no unwind entry tells where its return address is: if it is not on top of the stack, a return probe overwrites what is", Way: orYes}
	}
	return Finding{}
}

func anyName(fn *symbols.Function, is func(name string) bool) bool {
	return is(fn.Name) || slices.ContainsFunc(fn.Aliases, func(s symbols.Symbol) bool { return is(s.Name) })
}

// twice says whether a function returns more than once for one call: the kernel
// knows of the first return, and the next ends the process.
func twice(name string) bool {
	switch name {
	case "setjmp", "_setjmp", "sigsetjmp", "__sigsetjmp", "getcontext", "swapcontext", "vfork", "__vfork":
		return true
	}
	return false
}

// uncalled tells the code of the C library that the kernel, a signal or a jump begins.
func uncalled(name string) bool {
	switch name {
	case "_start", "_dl_start_user", "__restore_rt", "__restore":
		return true
	}
	return strings.HasPrefix(name, "_dl_runtime_") || strings.HasPrefix(name, "_dl_tlsdesc")
}

// looksBack tells what reads the return address, its own or those before it: the loader
// to know which library asks, which decides what RTLD_NEXT, $ORIGIN and namespaces
// mean; the unwinder and the profiler to follow the stack.
func looksBack(name string) bool {
	switch name {
	case "dlsym", "dlvsym", "dlopen", "dlmopen", "__dlsym", "__dlvsym", "__dlopen", "__dlmopen", "__libc_dlopen_mode",
		"_Unwind_RaiseException", "_Unwind_ForcedUnwind", "_Unwind_Resume", "_Unwind_Resume_or_Rethrow", "_Unwind_Backtrace",
		"backtrace", "__backtrace", "mcount", "_mcount", "__fentry__":
		return true
	}
	return false
}
