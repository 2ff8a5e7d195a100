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

// lead finds the functions that programs get for a name which a file only imports:
// among the files of each process that has mapped it, or else as the loader would find
// it. It opens the files that have them, and the notes say which those are.
func (t *Target) lead(q Request) (led []Request, notes []string, err error) {
	name := q.Function.Demangled()
	from := symbols.Printable(filepath.Base(q.File.Path))
	providers, err := t.providers(q)
	if err != nil {
		return nil, nil, err
	}
	if len(providers) == 0 {
		who := "no library that it loads has it"
		if t.ofProcesses() {
			who = t.Label + " has no library mapped that has it"
		}
		return nil, nil, fmt.Errorf("%s is only imported by %s, and %s: name the file that does", name, from, who)
	}
	for _, f := range providers {
		fn := providing(f, q.File.Import(q.Function).Version, q.Function.Name)
		if fn == nil {
			err = fmt.Errorf("%s of %s is that of %s, which has no code for it", name, from, symbols.Printable(f.Path))
			continue
		}
		led = append(led, Request{Kind: q.Kind, File: f, Function: fn, Accepted: q.Accepted})
		notes = append(notes, fmt.Sprintf("%s of %s is that of %s", name, from, symbols.Printable(f.Path)))
	}
	if len(led) > 0 {
		err = nil
	}
	return led, notes, err
}

// providers is the files from which programs get what a file imports, each once.
func (t *Target) providers(q Request) (files []*symbols.File, err error) {
	if !t.ofProcesses() {
		path := q.File.Provider(q.Function, environment())
		if path == "" {
			return nil, nil
		}
		return t.open([]string{path})
	}
	type loaded struct {
		files   []*symbols.File
		preload string
	}
	var asked []loaded // most of many processes have loaded the same
	for _, m := range t.with(q.File) {
		this := loaded{m.files, preload(m.pid)}
		if slices.ContainsFunc(asked, func(l loaded) bool { return l.preload == this.preload && slices.Equal(l.files, this.files) }) {
			continue
		}
		asked = append(asked, this)
		if f := q.File.ProviderAmong(q.Function, this.files, this.preload); f != nil && !slices.Contains(files, f) {
			files = append(files, f)
		}
	}
	return files, nil
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

// ofProcesses tells whether the target's files are those that processes have mapped:
// what the host has is then of no account.
func (t *Target) ofProcesses() bool { return t.mapped != nil }

// with is what those of the target's processes have mapped that have this file.
func (t *Target) with(f *symbols.File) (ms []mapped) {
	for _, m := range t.mapped {
		if slices.Contains(m.files, f) {
			ms = append(ms, m)
		}
	}
	return ms
}

// preload is the LD_PRELOAD with which a process was started, or empty where that is
// not to be seen.
func preload(pid int) string {
	value, _ := symbols.Variable(pid, "LD_PRELOAD")
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
			for _, m := range t.with(stub) {
				for _, name := range stub.Needed() {
					found = append(found, symbols.Find(m.files, filepath.Base(name))...)
				}
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
