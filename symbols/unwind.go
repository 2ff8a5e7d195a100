package symbols

import "strings"

// A file uses the unwinder, so that an exception may cross its frames and leave
// calls without a return, if it does one of these:
//
//   - it imports a function of the unwinder that leaves frames, or a throw of
//     the C++ runtime: C++ and Rust programs, libstdc++, and C libraries with
//     cleanups;
//   - it defines __cxa_throw or the start of a Rust panic: statically linked
//     C++ and Rust programs, libstdc++.
//
// It does not count that a file defines the unwinder (every static C program
// contains libgcc's), that it walks the stack for a backtrace, or that it has
// exception tables (the C library has, for cancelled threads, whose unwinder it
// loads by name when a thread is cancelled). A statically linked C++ program
// without its symbols cannot be told from a C one.

func importsUnwinder(name string) bool {
	switch name {
	case "_Unwind_RaiseException", "_Unwind_Resume", "_Unwind_Resume_or_Rethrow", "_Unwind_ForcedUnwind",
		"_Unwind_SjLj_RaiseException", "_Unwind_SjLj_Resume":
		return true
	}
	return throws(name)
}

func definesThrow(name string) bool { return throws(name) }

func throws(name string) bool {
	switch name {
	case "__cxa_throw", "__cxa_rethrow":
		return true
	}
	// Older compilers leave the name as it is, newer ones mangle it.
	return strings.HasSuffix(name, "__rust_start_panic")
}

// A file switches stacks, so that a call may end on another stack than it began
// on, if it imports the C library's functions for that, or defines those of
// Boost.Context or of brpc's bthreads. That the C library itself defines the
// former says nothing. A statically linked user of them is not recognised.

func importsContexts(name string) bool { return name == "makecontext" || name == "swapcontext" }

func definesCoroutines(name string) bool {
	return name == "jump_fcontext" || name == "bthread_start_background" || name == "bthread_start_urgent"
}
