package export

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"uprobetop/probes"
	"uprobetop/symbols"
)

func TestList(t *testing.T) {
	f := &symbols.File{Path: "/lib/libc.so.6", BuildID: "c0ffee", Source: "symbol table"}
	fns := []symbols.Function{
		{
			Symbol: symbols.Symbol{Name: "malloc", Version: "GLIBC_2.2.5", Default: true},
			Addr:   0x9e260, Offset: 0x9d260, Size: 12, Chosen: true, Aliases: []symbols.Symbol{{Name: "__libc_malloc"}},
		},
		{Symbol: symbols.Symbol{Name: "_Z3addii"}, Addr: 0x10, Offset: 0x20},
	}
	l := probes.Listing{
		File:      f,
		Asks:      "it may break",
		Functions: []symbols.Listed{{Function: &fns[0], Shown: "malloc"}, {Function: &fns[1], Shown: "add(int, int)"}},
		Limits: map[*symbols.Function]probes.Limit{
			&fns[1]: {Ability: probes.Counts, Finding: probes.Finding{Reason: "because", Way: "count"}},
		},
	}
	var b bytes.Buffer
	if err := List(&b, []probes.Listing{l}); err != nil {
		t.Fatal(err)
	}
	const want = `{"schema":"uprobetop/1","type":"function","name":"malloc","symbol":"malloc@@GLIBC_2.2.5","aliases":["__libc_malloc"],` +
		`"path":"/lib/libc.so.6","build_id":"c0ffee","names_from":"symbol table","address":"0x9e260","size":12,"points":[{"offset":"0x9d260"}],"class":null,"probe":"ok","reason":"","note":"IFUNC, this variant is in use","asks":"it may break"}
{"schema":"uprobetop/1","type":"function","name":"add(int, int)","symbol":"_Z3addii","aliases":[],` +
		`"path":"/lib/libc.so.6","build_id":"c0ffee","names_from":"symbol table","address":"0x10","size":null,"points":[{"offset":"0x20"}],"class":null,"probe":"count","reason":"because; count","note":"","asks":""}
`
	if b.String() != want {
		t.Errorf("got  %swant %s", b.String(), want)
	}
}

// The symbol is as it stands in the table, whatever a terminal would make of it.
func TestRawSymbol(t *testing.T) {
	const name = "a\x1b[2J\u202eb\u009b"
	fn := symbols.Function{Symbol: symbols.Symbol{Name: name, Version: "V", Default: true}}
	l := probes.Listing{File: &symbols.File{}, Functions: []symbols.Listed{{Function: &fn, Shown: fn.Demangled()}}}
	var b bytes.Buffer
	if err := List(&b, []probes.Listing{l}); err != nil {
		t.Fatal(err)
	}
	var o struct{ Name, Symbol string }
	if err := json.Unmarshal(b.Bytes(), &o); err != nil {
		t.Fatal(err)
	}
	if o.Symbol != name+"@@V" || o.Name != symbols.Printable(name) {
		t.Errorf("%q, %q", o.Symbol, o.Name)
	}
	if strings.ContainsAny(b.String(), "\x1b\u202e\u009b") {
		t.Errorf("%q would be obeyed", b.String())
	}
}
