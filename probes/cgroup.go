package probes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"uprobetop/symbols"
)

// CgroupRoot is where cgroup v2 is mounted: /sys/fs/cgroup on most hosts, another
// place where v1 has that.
func CgroupRoot() (string, error) {
	mounts, err := procfs.GetMounts()
	if err != nil {
		return "", fmt.Errorf("the mounts of this host cannot be read: %w", err)
	}
	for _, m := range mounts {
		if m.FSType == "cgroup2" {
			return octal.Replace(m.MountPoint), nil
		}
	}
	return "", errors.New("cgroup v2 is not mounted here: mount -t cgroup2 none DIRECTORY does it, and -p names processes without")
}

// octal is how the kernel writes spaces and the like in the names of mounts.
var octal = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// Cgroup is the directory of a cgroup that a user names by its path, or by that
// below root, as /proc/PID/cgroup has it.
func Cgroup(root, path string) (string, error) {
	dir := filepath.Join(root, path)
	if real, err := filepath.EvalSymlinks(path); err == nil && filepath.IsAbs(path) {
		path = real
	}
	if rel, err := filepath.Rel(root, path); filepath.IsAbs(path) && err == nil && filepath.IsLocal(rel) {
		dir = filepath.Clean(path)
	}
	var st unix.Statfs_t
	err := unix.Statfs(dir, &st)
	if _, e := os.Stat(filepath.Join(dir, "cgroup.procs")); err == nil && e == nil && st.Type == unix.CGROUP2_SUPER_MAGIC {
		return dir, nil
	}
	return "", fmt.Errorf("there is no cgroup %s below %s, where cgroup v2 is mounted", symbols.Printable(path), root)
}

// Unit is the cgroup of a systemd unit: NAME, or NAME.service.
func Unit(root, name string) (string, error) {
	found, others := cgroups(root, func(base string) bool { return base == name || base == name+".service" })
	var near []string
	if len(found) == 0 {
		near = nearest(name, others)
	}
	return only(root, found, near, "unit "+symbols.Printable(name), "name one with --cgroup")
}

// nearest is the directories whose names are near to that of a unit.
func nearest(unit string, dirs []string) (near []string) {
	const most = 6
	bare := func(name string) string { return strings.TrimSuffix(filepath.Base(name), ".service") }
	names := make([]string, len(dirs))
	for i, dir := range dirs {
		names[i] = bare(dir)
	}
	for _, name := range symbols.Nearest(bare(unit), names, most) {
		for i, dir := range dirs {
			if names[i] == name {
				near = append(near, dir)
			}
		}
	}
	return near
}

// Container is the cgroup of a container or pod, by the first letters of its id:
// docker-ID.scope, cri-containerd-ID.scope, libpod-ID.scope, ID, or
// kubepods…-podUID.slice with _ for the - of a UID.
func Container(root, id string) (string, error) {
	id = strings.ToLower(id)
	found, _ := cgroups(root, func(base string) bool {
		if strings.Contains(base, "conmon") { // what looks after a container of podman
			return false
		}
		return hasID(base, id) || hasID(base, strings.ReplaceAll(id, "-", "_"))
	})
	return only(root, found, nil, "container or pod "+id, "give more of its id")
}

// hasID tells whether an id begins in a directory's name so.
func hasID(base, id string) bool {
	for _, before := range []string{"-", "pod"} {
		if strings.Contains(base, before+id) {
			return true
		}
	}
	return strings.HasPrefix(base, id)
}

// cgroups finds directories by their names, and the others; what is below one that
// fits belongs to it.
func cgroups(root string, fits func(base string) bool) (found, others []string) {
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !d.IsDir(): // it was removed while we looked
		case path == root:
		case fits(d.Name()):
			found = append(found, path)
			return fs.SkipDir
		default:
			others = append(others, path)
		}
		return nil
	})
	return found, others
}

// only is the one cgroup that was found, or an error with the candidates.
func only(root string, found, near []string, what, way string) (string, error) {
	list := func(paths []string) string {
		const most = 5
		var names []string
		for _, p := range paths[:min(most, len(paths))] {
			names = append(names, symbols.Printable(strings.TrimPrefix(p, root)))
		}
		if len(paths) > most {
			names = append(names, "…")
		}
		return strings.Join(names, ", ")
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return "", fmt.Errorf("%s could be %s: %s", what, list(found), way)
	case len(near) > 0:
		is := "is"
		if len(near) > 1 {
			is = "are"
		}
		return "", fmt.Errorf("there is no %s below %s: near to it %s %s", what, root, is, list(near))
	}
	return "", fmt.Errorf("there is no %s below %s: one has a cgroup there while it runs", what, root)
}

// cgroupPIDs is the processes in a cgroup and below it. Those of other PID
// namespaces, which have no number here, are left out.
func cgroupPIDs(dir string) (pids []int) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil
		}
		text, _ := os.ReadFile(filepath.Join(path, "cgroup.procs")) // it may be gone
		for field := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
		return nil
	})
	return pids
}
