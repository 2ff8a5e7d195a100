package symbols

import (
	"debug/elf"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/cpu"
	"golang.org/x/sys/unix"
)

// Environment is what the loader is told beside the file (ld.so(8)).
type Environment struct {
	LibraryPath string // LD_LIBRARY_PATH
	Preload     string // LD_PRELOAD
}

// Provider finds the function that a program gets for a name that f imports, by
// loading f as glibc does: f itself, what is preloaded, then what each needs, level by
// level. The first that has the name, in the version asked for, provides it. The path
// is empty if none does.
func (f *File) Provider(fn *Function, env Environment) (path string) {
	l, root := newLoader(f, env)
	if l == nil {
		return ""
	}
	defer l.close()
	want := f.Import(fn)
	for o := range l.scope(root, strings.FieldsFunc(env.Preload, func(r rune) bool { return r == ':' || r == ' ' })) {
		if o != root && o.has(fn.Name, want.Version) {
			return o.path
		}
	}
	return ""
}

// Needs is the paths of the libraries that f names, as the loader finds them.
func (f *File) Needs(env Environment) (paths []string) {
	l, root := newLoader(f, env)
	if l == nil {
		return nil
	}
	defer l.close()
	for _, name := range root.needed {
		if o := l.load(name, root); o != nil {
			paths = append(paths, o.path)
		}
	}
	return paths
}

// Needed is the names of the libraries that f needs, as it has them.
func (f *File) Needed() []string {
	l, root := newLoader(f, Environment{})
	if l == nil {
		return nil
	}
	return root.needed
}

// ProviderAmong is Provider for a running process: mapped is its files, the executable
// first, and preload the value of its LD_PRELOAD. Files that nobody needs were loaded
// later, with a scope of their own.
func (f *File) ProviderAmong(fn *Function, mapped []*File, preload string) *File {
	l := &loader{among: true}
	for _, m := range mapped {
		if im, _, err := readImage(m.r, m.size); err == nil {
			if o, err := newObject(m.Path, im); err == nil {
				o.of = m
				l.objects = append(l.objects, o)
			}
		}
	}
	if len(l.objects) == 0 {
		return nil
	}
	want := f.Import(fn)
	first := strings.FieldsFunc(preload, func(r rune) bool { return r == ':' || r == ' ' })
	roots := []*object{l.objects[0]}
	if i := slices.IndexFunc(l.objects, func(o *object) bool { return o.of == f }); i > 0 {
		roots = append(roots, l.objects[i])
	}
	for _, root := range roots {
		for o := range l.scope(root, first) {
			if o.of != f && o.has(fn.Name, want.Version) {
				return o.of
			}
		}
	}
	for _, o := range l.objects {
		if o.of != f && o.has(fn.Name, want.Version) {
			return o.of
		}
	}
	return nil
}

// Stub tells a library that is left only for programs linked long ago: since glibc
// 2.34 what libpthread had is in libc.
func (f *File) Stub() bool {
	placeholders := 0
	for i := range f.code() {
		switch name := f.Functions[i].Name; {
		case strings.HasSuffix(name, "_version_placeholder"):
			placeholders++
		case f.Functions[i].Size > 0: // those of the compiler's start-up code have none
			return false
		}
	}
	return placeholders > 0
}

// object is a file as the loader sees it.
type object struct {
	path    string
	im      *image
	file    *os.File // to close; nil if it is another's
	of      *File    // that it is of, in a process
	needed  []string
	soname  string
	rpath   []string
	runpath []string
	by      *object // that needed it first
}

// newObject reads what the dynamic segment of a file says.
func newObject(path string, im *image) (*object, error) {
	o := &object{path: path, im: im}
	tags, err := im.dynamicTags()
	if err != nil || tags[elf.DT_STRTAB] == 0 {
		return o, err
	}
	off, ok := im.fileOffset(tags[elf.DT_STRTAB], 0)
	if !ok {
		return o, nil
	}
	names, err := im.text(off, tags[elf.DT_STRSZ], "dynamic string table")
	if err != nil {
		return nil, err
	}
	t := table{strings: names}
	origin := path
	if abs, err := filepath.Abs(path); err == nil {
		origin = abs
	}
	if real, err := filepath.EvalSymlinks(origin); err == nil {
		origin = real
	}
	origin = filepath.Dir(origin)
	err = im.eachTag(func(tag elf.DynTag, value uint64) {
		if value > uint64(len(names)) {
			return
		}
		switch text := t.name(uint32(value)); tag {
		case elf.DT_NEEDED:
			const most = 4096 // a hostile file can name millions
			if len(o.needed) < most {
				o.needed = append(o.needed, text)
			}
		case elf.DT_SONAME:
			o.soname = text
		case elf.DT_RPATH:
			o.rpath = expand(text, origin)
		case elf.DT_RUNPATH:
			o.runpath = expand(text, origin)
		}
	})
	return o, err
}

// libraryDirs are what $LIB can stand for: it differs between distributions.
var libraryDirs = map[string][]string{
	"amd64": {"lib/x86_64-linux-gnu", "lib64"},
	"arm64": {"lib/aarch64-linux-gnu", "lib64", "lib"},
}

// expand reads a list of directories, in which $ORIGIN is the file's own and $LIB the
// host's.
func expand(list, origin string) (dirs []string) {
	for _, dir := range filepath.SplitList(list) {
		dir = strings.NewReplacer("$ORIGIN", origin, "${ORIGIN}", origin, "${LIB}", "$LIB").Replace(dir)
		if !strings.Contains(dir, "$LIB") {
			dirs = append(dirs, dir)
			continue
		}
		for _, lib := range libraryDirs[runtime.GOARCH] {
			dirs = append(dirs, strings.ReplaceAll(dir, "$LIB", lib))
		}
	}
	return dirs
}

// dirs is where the loader looks for what an object needs before it looks in the
// host's own directories. DT_RPATH is inherited and DT_RUNPATH is not.
func (o *object) dirs(env []string) (dirs []string) {
	if o.runpath == nil {
		for by := o; by != nil; by = by.by {
			if by.runpath == nil {
				dirs = append(dirs, by.rpath...)
			}
		}
	}
	dirs = append(dirs, env...)
	return append(dirs, o.runpath...)
}

// has tells whether the loader finds a name in the object.
func (o *object) has(name, version string) bool {
	_, ok := o.im.exported(name, version)
	return ok
}

// loader finds objects by the names by which others need them.
type loader struct {
	objects []*object
	among   bool     // these are all: they are a process's
	env     []string // the directories of LD_LIBRARY_PATH
	machine elf.Machine
	is64    bool
	listed  []string // the host's own list, once it was read
}

func newLoader(f *File, env Environment) (*loader, *object) {
	if f.r == nil {
		return nil, nil
	}
	im, _, err := readImage(f.r, f.size)
	if err != nil {
		return nil, nil
	}
	root, err := newObject(f.Path, im)
	if err != nil {
		return nil, nil
	}
	l := &loader{env: filepath.SplitList(env.LibraryPath), machine: im.machine, is64: im.is64, objects: []*object{root}}
	return l, root
}

func (l *loader) close() {
	for _, o := range l.objects {
		if o.file != nil {
			o.file.Close()
		}
	}
}

// scope is the objects in which the loader looks for a name, in its order.
func (l *loader) scope(root *object, preload []string) func(yield func(*object) bool) {
	return func(yield func(*object) bool) {
		const most = 4096
		queue := []*object{root}
		add := func(name string, by *object) {
			if o := l.load(name, by); o != nil && !slices.Contains(queue, o) && len(queue) < most {
				queue = append(queue, o)
			}
		}
		for _, name := range preload {
			add(name, root)
		}
		for i := 0; i < len(queue); i++ {
			if !yield(queue[i]) {
				return
			}
			for _, name := range queue[i].needed {
				add(name, queue[i])
			}
		}
	}
}

// load finds an object, as far as possible among those that are there.
func (l *loader) load(name string, by *object) *object {
	for _, o := range l.objects {
		if o.soname == name || filepath.Base(o.path) == filepath.Base(name) {
			return o
		}
	}
	if l.among {
		return nil
	}
	if strings.Contains(name, "/") {
		return l.open(name, by)
	}
	for _, dir := range by.dirs(l.env) {
		if o := l.inDir(dir, name, by); o != nil {
			return o
		}
	}
	goarch := runtime.GOARCH
	if l.machine == elf.EM_386 {
		goarch = "386"
	}
	if l.listed == nil {
		l.listed = listed(loaderCache, goarch)
	}
	for _, path := range l.listed {
		if filepath.Base(path) == name && runs(path) {
			if o := l.open(path, by); o != nil {
				return o
			}
		}
	}
	for _, dir := range usualDirs {
		if o := l.inDir(dir, name, by); o != nil {
			return o
		}
	}
	return nil
}

// levels are the variants for newer CPUs that glibc prefers, the newest first, and
// whether this one runs them.
var levels = []struct {
	dir  string
	runs func() bool
}{
	{"glibc-hwcaps/x86-64-v4", func() bool {
		return cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512CD && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL
	}},
	{"glibc-hwcaps/x86-64-v3", func() bool { return cpu.X86.HasAVX2 && cpu.X86.HasBMI2 && cpu.X86.HasFMA }},
	{"glibc-hwcaps/x86-64-v2", func() bool { return cpu.X86.HasSSE42 && cpu.X86.HasPOPCNT }},
}

// runs tells whether a path is for CPUs such as this one.
func runs(path string) bool {
	for _, v := range levels {
		if strings.Contains(path, v.dir) {
			return v.runs()
		}
	}
	return true
}

func (l *loader) inDir(dir, name string, by *object) *object {
	for _, v := range levels {
		if v.runs() {
			if o := l.open(filepath.Join(dir, v.dir, name), by); o != nil {
				return o
			}
		}
	}
	return l.open(filepath.Join(dir, name), by)
}

// open opens a library if it is one for the same machine: the loader passes over
// others.
func (l *loader) open(path string, by *object) *object {
	file, st, err := openRegular(path)
	if err != nil {
		return nil
	}
	im, _, err := readImage(file, uint64(st.Size))
	if err != nil || im.machine != l.machine || im.is64 != l.is64 {
		file.Close()
		return nil
	}
	for _, o := range l.objects { // by another name
		var had unix.Stat_t
		if o.file != nil && unix.Fstat(int(o.file.Fd()), &had) == nil && had.Dev == st.Dev && had.Ino == st.Ino {
			file.Close()
			return o
		}
	}
	o, err := newObject(path, im)
	if err != nil {
		file.Close()
		return nil
	}
	o.file, o.by = file, by
	l.objects = append(l.objects, o)
	return o
}
