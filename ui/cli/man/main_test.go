package main

import (
	"bytes"
	"os"
	"path/filepath"
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
