package cli

import (
	"fmt"
	"path/filepath"

	"uprobetop/probes"
	"uprobetop/symbols"
)

// shownNames is what tells the probes of a snapshot apart: the name, with the file
// where several files have it, or else with the address. C++ destructors, instances of
// Rust generics and static functions can have one name.
func shownNames(s *probes.Snapshot) map[probes.ID]string {
	of := map[string][]*probes.Stats{}
	for i := range s.Probes {
		p := &s.Probes[i]
		of[p.Function.Demangled()] = append(of[p.Function.Demangled()], p)
	}
	shown := map[probes.ID]string{}
	for name, same := range of {
		files := map[string]*symbols.File{}
		for _, p := range same {
			files[filepath.Base(p.File.Path)] = p.File
		}
		taken := map[string]int{}
		for _, p := range same {
			shown[p.ID] = name
			if len(files) > 1 {
				shown[p.ID] += " (" + symbols.Printable(filepath.Base(p.File.Path)) + ")"
			}
			taken[shown[p.ID]]++
		}
		for _, p := range same {
			if taken[shown[p.ID]] > 1 {
				shown[p.ID] += fmt.Sprintf("  %#x", uint64(p.Function.Addr))
			}
		}
	}
	return shown
}
