package probes

import "testing"

func TestParseSpec(t *testing.T) {
	for text, want := range map[string]Spec{
		"malloc":                          {Function: "malloc"},
		"libc:malloc":                     {Target: "libc", Function: "malloc"},
		"uprobe:libc:malloc":              {Target: "libc", Function: "malloc"},
		"uretprobe:/lib/libc.so.6:malloc": {Kind: Return, Target: "/lib/libc.so.6", Function: "malloc"},
		"uretprobe:malloc":                {Kind: Return, Function: "malloc"},
		"Foo::bar":                        {Function: "Foo::bar"},
		"node:v8::Isolate::New":           {Target: "node", Function: "v8::Isolate::New"},
		"std::map<int, int>::at(int)":     {Function: "std::map<int, int>::at(int)"},
		"operator new":                    {Function: "operator new"},
		"uprobe::odd":                     {Function: "uprobe::odd"},
		"foo[abi:cxx11]":                  {Function: "foo[abi:cxx11]"},
		"libc:foo[abi:cxx11]()":           {Target: "libc", Function: "foo[abi:cxx11]()"},
		`uprobe:a\[:x]`:                   {Target: "a[", Function: "x]"},
		"[[:alpha:]]*":                    {Function: "[[:alpha:]]*"},
		"usdt::odd":                       {Function: "usdt::odd"},
		"libc:malloc+0x10":                {Target: "libc", Function: "malloc+0x10"},
		"uprobe:libc:pthread_cond_*":      {Target: "libc", Function: "pthread_cond_*"},
		"libc:0x9e260":                    {Target: "libc", Function: "0x9e260"},
		`uprobe:/a\:b/c\\d:e\:f`:          {Target: `/a:b/c\d`, Function: `e\:f`},
		`uprobe:/a\::b`:                   {Target: "/a:", Function: "b"},
		"usdt:setjmp":                     {Kind: USDT, Function: "setjmp"},
		"usdt:libc:setjmp":                {Kind: USDT, Target: "libc", Function: "setjmp"},
		"usdt:/lib/libc.so.6:libc:setjmp": {Kind: USDT, Target: "/lib/libc.so.6", Function: "libc:setjmp"},
		"usdt:/lib/libc.so.6::setjmp":     {Kind: USDT, Target: "/lib/libc.so.6", Function: "setjmp"},
		"usdt:*:gc__*":                    {Kind: USDT, Target: "*", Function: "gc__*"},
		`usdt:/a\:b:c:d`:                  {Kind: USDT, Target: "/a:b", Function: "c:d"},
	} {
		got, err := ParseSpec(text)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", ":", ":malloc", "libc:", "uretprobe:", "uprobe:libc:", "usdt:", "usdt:libc:", "usdt:libc::"} {
		if s, err := ParseSpec(text); err == nil {
			t.Errorf("%q is read as %+v", text, s)
		}
	}
}

func FuzzParseSpec(f *testing.F) {
	for _, s := range []string{"malloc", "libc:malloc", "uretprobe:a:b::c", "::", "a:b:c", "uprobe:uprobe:uprobe:x", `uprobe:\:\\:x`, "usdt:x", "usdt:a::b:c", `usdt:a\::[b]`, "libc:a+0x10"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSpec(text)
		if err != nil {
			return
		}
		if again, err := ParseSpec(s.String()); err != nil || again != s {
			t.Errorf("%q is %+v, whose text %q is %+v, %v", text, s, s.String(), again, err)
		}
	})
}
