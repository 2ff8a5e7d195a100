package symbols

import (
	"path/filepath"
	"strings"
)

// Find is the files that a name means: a path, else the last part of a path, else
// a library's or program's short name, such as "libc" and "c" for libc.so.6 and
// libc-2.31.so, or "python" for python3.11.
func Find(files []*File, name string) []*File {
	return findNamed(files, func(f *File) string { return f.Path }, name)
}

// findNamed is Find for whatever has a path.
func findNamed[T any](all []T, path func(T) string, name string) []T {
	for _, fits := range []func(path string) bool{
		func(path string) bool { return path == name },
		func(path string) bool { return filepath.Base(path) == name },
		func(path string) bool { return shortFor(name, filepath.Base(path)) },
		func(path string) bool { return shortFor("lib"+name, filepath.Base(path)) },
	} {
		var found []T
		for _, one := range all {
			if fits(path(one)) {
				found = append(found, one)
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// shortFor says whether a file's name is short plus a version: libc → libc.so.6,
// libc-2.31.so; python → python3.11.
func shortFor(short, base string) bool {
	if short == "libc" && (strings.HasPrefix(base, "ld-musl-") || strings.HasPrefix(base, "libc.musl-")) {
		return true // musl's loader and C library are one file
	}
	rest, ok := strings.CutPrefix(base, short)
	if !ok || short == "" || short == "lib" {
		return false
	}
	if strings.HasPrefix(rest, ".so.") || rest == ".so" {
		return true
	}
	version, isLibrary := rest, false
	if i := strings.Index(rest, ".so"); i >= 0 {
		version, isLibrary = rest[:i], true
	}
	if strings.HasPrefix(version, "-") {
		version = version[1:]
	} else if isLibrary {
		return false // libc10.so is another library than libc
	}
	return version != "" && digit(version[0]) &&
		!strings.ContainsFunc(version, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
}
