package symbols

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// loaderCache is where glibc's ldconfig lists the libraries of a host.
const loaderCache = "/etc/ld.so.cache"

// usualDirs is where libraries are on hosts without a list of them, such as those
// with musl.
var usualDirs = []string{"/lib64", "/usr/lib64", "/lib", "/usr/local/lib", "/usr/lib"}

// Libraries is the paths of the libraries of this host that a short name means, as
// Find reads it: those of the first directory given that has any, else those in the
// loader's list, else in the usual directories. Several versions of a library, or
// variants for other CPUs, are several paths; several names of one file are one.
func Libraries(name string, dirs ...string) []string {
	if name == "" || strings.Contains(name, "/") {
		return nil
	}
	for _, dir := range dirs {
		if found := inDir(dir, name); len(found) > 0 {
			return found
		}
	}
	if found := oneEach(findNamed(listed(loaderCache, runtime.GOARCH), itself, name)); len(found) > 0 {
		return found
	}
	for _, dir := range usualDirs {
		if found := inDir(dir, name); len(found) > 0 {
			return found
		}
	}
	return nil
}

func itself(path string) string { return path }

// inDir is the libraries of a directory that a short name means.
func inDir(dir, name string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var libraries []string
	for _, e := range entries {
		if strings.Contains(e.Name(), ".so") {
			libraries = append(libraries, filepath.Join(dir, e.Name()))
		}
	}
	return oneEach(findNamed(libraries, itself, name))
}

// oneEach leaves out what is no regular file, and further names of one file: the
// longest, libc.so.6 rather than libc.so, stays, since that is what processes have
// mapped.
func oneEach(paths []string) []string {
	slices.SortStableFunc(paths, func(a, b string) int { return len(filepath.Base(b)) - len(filepath.Base(a)) })
	var kept []string
	var files []os.FileInfo
	for _, path := range paths {
		st, err := os.Stat(path)
		if err != nil || !st.Mode().IsRegular() ||
			slices.ContainsFunc(files, func(f os.FileInfo) bool { return os.SameFile(f, st) }) {
			continue
		}
		files, kept = append(files, st), append(kept, path)
	}
	return kept
}

// listed is the paths in a list of ldconfig that programs of this host's machine
// load.
func listed(path, goarch string) []string {
	file, st, err := openRegular(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	const most = 64 << 20 // bytes; known lists have some 100 kB
	b := make([]byte, min(st.Size, most))
	n, _ := file.ReadAt(b, 0)
	return parseCache(b[:n], goarch)
}

// cacheFlags is how the list marks libraries for glibc on a machine
// (sysdeps/generic/ldconfig.h).
var cacheFlags = map[string]uint32{"386": 0x0003, "amd64": 0x0303, "arm64": 0x0a03}

// parseCache reads what ldconfig writes (elf/cache.c of glibc 2.32 and later): a
// header, entries of a fixed size, and the strings that they point to, relative to
// the header. Before it there may be a list of the old kind.
func parseCache(b []byte, goarch string) []string {
	const (
		oldMagic, newMagic     = "ld.so-1.7.0\x00", "glibc-ld.so.cache1.1"
		oldEntry, entry, start = 12, 24, 48
	)
	if bytes.HasPrefix(b, []byte(oldMagic)) && len(b) >= len(oldMagic)+4 {
		n := uint64(order.Uint32(b[len(oldMagic):]))
		old := roundUp(uint64(len(oldMagic)+4)+n*oldEntry, 8)
		b = b[min(old, uint64(len(b))):]
	}
	if !bytes.HasPrefix(b, []byte(newMagic)) || len(b) < start {
		return nil
	}
	n := uint64(order.Uint32(b[len(newMagic):]))
	n = min(n, uint64(len(b)-start)/entry)
	var paths []string
	room := len(b) // entries of a damaged list can all point to one text
	for e := b[start : start+n*entry]; len(e) > 0; e = e[entry:] {
		at := order.Uint32(e[8:])
		if order.Uint32(e) != cacheFlags[goarch] || uint64(at) >= uint64(len(b)) {
			continue
		}
		path := b[at:]
		end := bytes.IndexByte(path[:min(len(path), maxName)], 0)
		if end > 0 && path[0] == '/' && end <= room {
			room -= end
			paths = append(paths, string(path[:end]))
		}
	}
	return paths
}

// LibraryDirs is where the loader looks for the libraries of a program before those
// of the host: what the program itself says, and LD_LIBRARY_PATH (ld.so(8)).
func (f *File) LibraryDirs(ldLibraryPath string) []string {
	env := filepath.SplitList(ldLibraryPath)
	im, _, err := readImage(f.r, f.size)
	if err != nil {
		return env
	}
	o, err := newObject(f.Path, im)
	if err != nil {
		return env
	}
	return o.dirs(env)
}
