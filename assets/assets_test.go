package assets

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// otherFunctions of the demo program are not part of the server it pretends to
// be: nobody is invited to probe them.
var otherFunctions = []string{"_start", "begin", "run"}

// serverFunctions returns the public functions of the demo program, with their
// first four bytes.
func serverFunctions(t *testing.T, file *elf.File) map[string][]byte {
	t.Helper()
	symbols, err := file.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	functions := map[string][]byte{}
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) != elf.STT_FUNC || elf.ST_BIND(s.Info) != elf.STB_GLOBAL ||
			slices.Contains(otherFunctions, s.Name) {
			continue
		}
		section := file.Sections[s.Section]
		first := make([]byte, 4)
		if _, err := section.ReadAt(first, int64(s.Value-section.Addr)); err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		functions[s.Name] = first
	}
	return functions
}

func TestFunctionsBeginWithTheFramePointer(t *testing.T) {
	saves := map[string]func(first []byte) bool{
		"demo_amd64.elf": func(first []byte) bool { return first[0] == 0x55 }, // push %rbp
		"demo_arm64.elf": func(first []byte) bool { // stp x29, x30, [sp, #-N]!
			return binary.LittleEndian.Uint32(first)&0xffc07fff == 0xa9807bfd
		},
	}
	for name, save := range saves {
		file, err := elf.Open(filepath.Join("demo", name))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		functions := serverFunctions(t, file)
		for _, f := range DemoFunctions {
			if functions[f.Name] == nil {
				t.Errorf("%s: %s is not in the symbol table", name, f.Name)
			}
		}
		for function, first := range functions {
			if !save(first) {
				t.Errorf("%s: %s begins with % x", name, function, first)
			}
		}
		if file.Section(".debug_info") != nil {
			t.Errorf("%s has debug information", name)
		}
	}
}

// TestRebuild makes the files again and wants the same bytes, if the compiler
// is the one that made the committed ones.
func TestRebuild(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles")
	}
	gcc := map[string]string{"amd64": "x86_64-linux-gnu-gcc", "arm64": "aarch64-linux-gnu-gcc"}
	for _, name := range []string{"demo_amd64", "demo_arm64", "empty_amd64", "empty_arm64"} {
		t.Run(name, func(t *testing.T) {
			dir, arch, _ := strings.Cut(name, "_")
			gcc, build := gcc[arch], filepath.Join(dir, "build")
			if _, err := exec.LookPath(gcc); err != nil {
				t.Skipf("needs %s", gcc)
			}
			rebuilt := filepath.Join(t.TempDir(), "rebuilt.elf")
			if out, err := exec.Command(build, arch, rebuilt).CombinedOutput(); err != nil {
				t.Fatalf("%s %s: %v\n%s", build, arch, err, out)
			}
			committed := filepath.Join(dir, name+".elf")
			if was, is := compiler(t, committed), compiler(t, rebuilt); was != is {
				t.Skipf("made by %q, here is %q", was, is)
			}
			if !bytes.Equal(read(t, committed), read(t, rebuilt)) {
				t.Errorf("%s does not come from its source: run %s", committed, build)
			}
		})
	}
}

// compiler returns what made a file, as its section .comment has it.
func compiler(t *testing.T, path string) string {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	comment, err := file.Section(".comment").Data()
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes.TrimRight(comment, "\x00"))
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestDemoIsForThisArchitecture(t *testing.T) {
	content, err := Demo()
	if err != nil {
		t.Skip(err)
	}
	if !bytes.Equal(content, read(t, filepath.Join("demo", "demo_"+runtime.GOARCH+".elf"))) {
		t.Error("the embedded file is another one than that in demo/")
	}
	content[0] = 0
	if again, _ := Demo(); again[0] == 0 {
		t.Error("a caller can change the embedded file")
	}
}
