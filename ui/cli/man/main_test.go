package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"uprobetop/ui/cli"
)

// The pages that are kept are those of the commands and flags there are.
func TestPages(t *testing.T) {
	const kept = "../../../assets/man"
	dir := t.TempDir()
	if err := write(cli.Command(), dir); err != nil {
		t.Fatal(err)
	}
	for _, d := range [][2]string{{dir, kept}, {kept, dir}} {
		files, err := os.ReadDir(d[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			a, aerr := os.ReadFile(filepath.Join(d[0], f.Name()))
			b, berr := os.ReadFile(filepath.Join(d[1], f.Name()))
			if aerr != nil || berr != nil || !bytes.Equal(a, b) {
				t.Errorf("%s is not as it was made: run go generate ./ui/cli", f.Name())
			}
		}
	}
}

// A page says how each flag is typed, and nothing of it is read as a macro.
func TestPage(t *testing.T) {
	stat, _, err := cli.Command().Find([]string{"stat"})
	if err != nil {
		t.Fatal(err)
	}
	text := page(stat)
	for _, want := range []string{
		".TP\n\\fB\\-d\\fP, \\fB\\-\\-duration\\fP \\fITIME\\fP\nstop after this TIME",
		".TP\n\\fB\\-y\\fP, \\fB\\-\\-yes\\fP\nanswer",
		".SH EXIT STATUS\n.TP\n0\n",
		".SH EXAMPLES\n.nf\n  uprobetop stat",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.ContainsAny(text, "`") || strings.Contains(text, "[=") {
		t.Errorf("it shows how it was made:\n%s", text)
	}
	if got := literal(".TH\n.x\n'y\\-"); got != "\\&.TH\n\\&.x\n\\(aqy\\e\\-" {
		t.Errorf("%q", got)
	}
}
