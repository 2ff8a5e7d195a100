package probes

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"uprobetop/symbols"
)

// imported tells a name whose code is in another file.
func imported(q Request) bool { return q.Function.Place == symbols.Imported }

func hasCode(q Request) bool { return !imported(q) }

// environment is that with which a command is started.
func environment() symbols.Environment {
	return symbols.Environment{LibraryPath: os.Getenv("LD_LIBRARY_PATH"), Preload: os.Getenv("LD_PRELOAD")}
}

// lead finds the function that a program gets for a name which a file only imports:
// among the files of its process, or else as the loader would find it. It opens the
// file that has it, and the note says which that is.
func (t *Target) lead(q Request) (Request, string, error) {
	name := q.Function.Demangled()
	from := symbols.Printable(filepath.Base(q.File.Path))
	var f *symbols.File
	if t.ofProcesses() {
		f = q.File.ProviderAmong(q.Function, t.all, t.preload())
	} else if path := q.File.Provider(q.Function, environment()); path != "" {
		files, err := t.open([]string{path})
		if err != nil {
			return q, "", err
		}
		f = files[0]
	}
	if f == nil {
		return q, "", fmt.Errorf("%s is only imported by %s, and no library that it loads has it: name the file that does", name, from)
	}
	fn := providing(f, q.File.Import(q.Function).Version, q.Function.Name)
	if fn == nil {
		return q, "", fmt.Errorf("%s of %s is that of %s, which has no code for it", name, from, symbols.Printable(f.Path))
	}
	q.File, q.Function = f, fn
	return q, fmt.Sprintf("%s of %s is that of %s", name, from, symbols.Printable(f.Path)), nil
}

// providing is the function that a file has by a name, of the version that was asked for.
func providing(f *symbols.File, version, name string) *symbols.Function {
	for _, text := range []string{name + "@" + version, name} {
		for _, fn := range f.Lookup(text) {
			if fn.Place != symbols.Imported {
				return fn
			}
		}
	}
	return nil
}

// ofProcesses tells whether the target's files are those that processes have mapped.
func (t *Target) ofProcesses() bool { return len(t.filter.PIDs)+len(t.filter.TIDs) > 0 }

// preload is the LD_PRELOAD with which the target's first process was started, or
// empty where that is not to be seen.
func (t *Target) preload() string {
	ids := slices.Concat(t.filter.PIDs, t.filter.TIDs)
	value, _ := symbols.Variable(ids[0], "LD_PRELOAD")
	return value
}

// behindStubs is what stub libraries among the files lead to: the libraries that they
// need. Files that are no stubs lead nowhere.
func (t *Target) behindStubs(files []*symbols.File) (behind []*symbols.File, note string) {
	for _, stub := range files {
		if !stub.Stub() {
			continue
		}
		var found []*symbols.File
		if t.ofProcesses() {
			for _, path := range stub.Needs(environment()) {
				found = append(found, symbols.Find(t.all, filepath.Base(path))...)
			}
		} else {
			found, _ = t.open(stub.Needs(environment())) // what cannot be read has nothing to find
		}
		for _, f := range found {
			if !slices.Contains(behind, f) {
				behind = append(behind, f)
			}
		}
		if note == "" && len(found) > 0 {
			note = fmt.Sprintf("%s is empty but for what old programs need: its functions are those of %s",
				symbols.Printable(filepath.Base(stub.Path)), symbols.Printable(found[0].Path))
		}
	}
	return behind, note
}

// withoutImports leaves out the names that files only import, but if there is nothing
// else.
func withoutImports(found []Request) []Request {
	if slices.ContainsFunc(found, hasCode) {
		return slices.DeleteFunc(slices.Clone(found), imported)
	}
	return found
}

// split takes apart the functions that a pattern found: those with code, and the
// imports of names that none of those has. What the others import is in the list by
// itself.
func split(found []Request) (own, imports []Request) {
	provided := map[string]bool{}
	for _, q := range found {
		if imported(q) {
			provided[q.Function.Name] = false
		}
	}
	if len(provided) == 0 {
		return found, nil
	}
	for _, q := range found {
		if imported(q) {
			continue
		}
		own = append(own, q)
		provide(provided, q.Function)
	}
	for _, q := range found {
		if imported(q) && !provided[q.Function.Name] {
			provided[q.Function.Name] = true // told once, however many files import it
			imports = append(imports, q)
		}
	}
	return own, imports
}

// provide marks those of the names that a function has.
func provide(names map[string]bool, fn *symbols.Function) {
	if _, wanted := names[fn.Name]; wanted {
		names[fn.Name] = true
	}
	for _, a := range fn.Aliases {
		if _, wanted := names[a.Name]; wanted {
			names[a.Name] = true
		}
	}
}

// withoutProvided leaves out of several lists what one imports and another has.
func withoutProvided(lists [][]symbols.Listed) {
	provided := map[string]bool{}
	for _, list := range lists {
		for i := range list {
			if list[i].Place == symbols.Imported {
				provided[list[i].Name] = false
			}
		}
	}
	if len(lists) < 2 || len(provided) == 0 {
		return
	}
	for _, list := range lists {
		for i := range list {
			if list[i].Place != symbols.Imported {
				provide(provided, list[i].Function)
			}
		}
	}
	for i := range lists {
		lists[i] = slices.DeleteFunc(lists[i], func(l symbols.Listed) bool {
			return l.Place == symbols.Imported && provided[l.Name]
		})
	}
}

// also adds a file to which a name led: from now on names are looked for in it, too.
func (t *Target) also(f *symbols.File) {
	if !slices.Contains(t.Files, f) {
		t.Files = append(slices.Clone(t.Files), f)
	}
}
