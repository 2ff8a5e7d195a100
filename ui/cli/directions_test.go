package cli_test

import (
	"os/exec"
	"strings"
	"testing"
)

// The rooms and what each may not know: a package of the left does not depend,
// directly or through others, on those of the right.
var forbidden = map[string][]string{
	"uprobetop/bpf":      {"uprobetop/"},
	"uprobetop/symbols":  {"uprobetop/", "github.com/cilium/ebpf"},
	"uprobetop/assets":   {"uprobetop/", "github.com/cilium/ebpf"},
	"uprobetop/probes":   {"uprobetop/ui", "uprobetop/assets"},
	"uprobetop/ui/chart": {"uprobetop/", "charm.land/bubbletea", "charm.land/bubbles"},
}

// What a package of ui imports itself: the collector is behind probes.
var forbiddenDirect = []string{"uprobetop/bpf", "github.com/cilium/ebpf"}

func TestDirections(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go command")
	}
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}}|{{join .Imports \" \"}}|{{join .Deps \" \"}}", "uprobetop/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := 0
	for line := range strings.Lines(string(out)) {
		part := strings.Split(strings.TrimSpace(line), "|")
		path, imports, deps := part[0], strings.Fields(part[1]), strings.Fields(part[2])
		packages++
		for room, names := range forbidden {
			if path != room && !strings.HasPrefix(path, room+"/") || strings.HasSuffix(path, "test") {
				continue
			}
			for _, d := range deps {
				for _, n := range names {
					inRoom := d == room || strings.HasPrefix(d, room+"/")
					if strings.HasPrefix(d, n) && !inRoom {
						t.Errorf("%s depends on %s", path, d)
					}
				}
			}
		}
		if strings.HasPrefix(path, "uprobetop/ui") {
			for _, d := range imports {
				for _, n := range forbiddenDirect {
					if strings.HasPrefix(d, n) {
						t.Errorf("%s imports %s", path, d)
					}
				}
			}
		}
	}
	if packages < 8 {
		t.Errorf("go list found only %d packages", packages)
	}
}
