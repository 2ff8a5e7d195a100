package symbols

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// CopyIn is the path of another file that a process has mapped as code where f could be
// expected: one of the same name but for its version. It is empty if there is none, and
// own tells that f itself is mapped.
func (f *File) CopyIn(pid int) (path string, own bool) {
	r, err := os.Open("/proc/" + strconv.Itoa(pid) + "/maps")
	if err != nil {
		return "", false // it has ended, or is not ours to see
	}
	defer r.Close()
	ms, err := readMaps(r)
	if err != nil {
		return "", false
	}
	names := []string{unversioned(f.Path)}
	if real, err := os.Readlink(f.Open); err == nil { // the path that the kernel knows
		names = append(names, unversioned(real))
	}
	for _, m := range ms {
		switch at := strings.TrimSuffix(m.Path, deletedMark); {
		case !slices.Contains(names, unversioned(at)):
		case f.isMapped(m):
			return "", true
		default:
			path = at
		}
	}
	return path, false
}

// unversioned is libc.so of /lib/libc.so.6, and of any other file its name.
func unversioned(path string) string {
	name := filepath.Base(strings.TrimSuffix(path, deletedMark))
	if stem, _, library := strings.Cut(name, ".so"); library {
		return stem + ".so"
	}
	return name
}
