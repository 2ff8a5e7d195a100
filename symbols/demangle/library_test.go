package demangle

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	library "github.com/ianlancetaylor/demangle"
)

func init() { strict = true }

// check holds Append and AppendName against the library, and says whether Append
// took the name.
func check(t *testing.T, name string) bool {
	t.Helper()
	const before = "before"
	Append(nil, name[:2*len(name)/3]) // what is kept of a name must do for the next
	for _, way := range []struct {
		name   string
		append func([]byte, string) ([]byte, bool)
		want   func() string
	}{
		{"name", AppendName, func() string { return library.Filter(name, library.MaxLength(14), library.NoParams) }},
		{"all", Append, func() string { return wanted(name) }},
	} {
		out, ok := way.append([]byte(before), name)
		got, kept := strings.CutPrefix(string(out), before)
		if !kept || !ok && got != "" {
			t.Errorf("%s of %s: before it now is %q", way.name, name, out)
		}
		if !ok {
			if way.name == "all" {
				return false
			}
			continue
		}
		if want := way.want(); got != want {
			t.Errorf("%s of %s\n got %s\nwant %s", way.name, name, got, want)
		}
	}
	return true
}

func lines(t testing.TB, path string) []string {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []string
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		all = append(all, s.Text())
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestShapes takes one name of each shape that was found in large files.
func TestShapes(t *testing.T) {
	names := lines(t, "testdata/shapes")
	left := 0
	for _, name := range names {
		if !check(t, name) && wanted(name) != name {
			left++
		}
	}
	if left*20 > len(names) { // they are more odd here than in a file
		t.Errorf("%d of %d names are left to the library", left, len(names))
	}
}

// TestOdd takes what was different once: fuzzing and large files found it.
func TestOdd(t *testing.T) {
	for _, name := range []string{
		"_ZN1A1AERON4A000ES2_",                   // a reference to a reference without a T_
		"_ZN1AI1AEEKKT_a",                        // const const
		"_ZNcvacvaE0",                            // a conversion within a conversion
		"_Z7forwardIZ3FoovEUlPA5_T_E1_EOS0_RS0_", // an array in a lambda in a reference
		// The library reads 010 as ten, and fails; 00 as one 0, and does not.
		"_RNvNCNCNvNtCs4nK2o8jUcLW_14rustc_ty_utils10needs_drop15drop_tys_helper0010___CALLSITE",
		"_RINvNtCsgEmfK2I1SDS_4core9panicking13assert_failedNtNCNvNtNtCslKGqiwnqz1t_17rustc_codegen_ssa4back5write20start_executing_works2_012CodegenStateBM_ECs59TyybOfEHA_18rustc_codegen_llvm",
		"_RINvNtCs2N2TEQjwqGk_7stacker4growuNCNCNvC1a1f00EB4_",
		// A constant of which the last 64 bits are 0.
		"_RINvC1a1bKnn80000000000000000000000000000000_E",
	} {
		check(t, name)
	}
}

// TestLibrarysOwn takes what the library's own tests are made of, where its
// source is in the module cache.
func TestLibrarysOwn(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/ianlancetaylor/demangle").Output()
	if err != nil {
		t.Skip("no source of the library: ", err)
	}
	paths, _ := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "testdata", "*"))
	if len(paths) == 0 {
		t.Skip("no tests with the library")
	}
	taken, all := 0, 0
	for _, path := range paths {
		for _, line := range lines(t, path) {
			for _, word := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\"{},", r) }) {
				if strings.HasPrefix(word, "_") {
					all++
					if check(t, word) {
						taken++
					}
				}
			}
		}
	}
	t.Logf("took %d of %d names", taken, all)
}

// FuzzAgainstLibrary changes names that there are.
func FuzzAgainstLibrary(f *testing.F) {
	for i, name := range lines(f, "testdata/shapes") {
		if i%8 == 0 {
			f.Add(name)
		}
	}
	f.Fuzz(func(t *testing.T, name string) { check(t, name) })
}
