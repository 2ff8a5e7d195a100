package probes

import (
	"context"
	"debug/elf"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"uprobetop/bpf/bpftest"
)

// The class of each sort of first instruction is what the kernel makes of it: it
// steps in a page that it maps as [uprobes], and its calls go to one that it maps as
// [uprobes-trampoline].
func TestKernelClasses(t *testing.T) {
	path := bpftest.Build(t, "classes")
	f := open(t, path)
	out, err := exec.Command(path).Output()
	if err != nil {
		t.Fatal(err)
	}
	c := newCollectorHere(t, Config{})
	var rs []Request
	for name := range strings.FieldsSeq(string(out)) {
		if r := request(t, f, Entry, name); Check(r, Hazards{}).Verdict == Fine {
			rs = append(rs, r)
		}
	}
	place(t, c, rs...)
	seen := map[Class]int{}
	for _, r := range rs {
		name := r.Function.Name
		maps, err := exec.Command(path, name).Output()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		did := Emulated
		switch {
		case strings.Contains(string(maps), "[uprobes-trampoline]"):
			did = map[int]Class{5: Nop5, 10: Nop10}[thisKernel().optimised]
		case strings.Contains(string(maps), "[uprobes]"):
			did = Stepped
		}
		if got := ClassOf(f, r.Function); got != did {
			t.Errorf("%s is said to be %s, and the kernel shows %s", name, got, did)
		}
		seen[did]++
	}
	for _, st := range finish(t, c).Probes {
		equal(t, "hits of "+st.Function.Name, st.Hits, 3)
	}
	if seen[Stepped] == 0 || seen[Emulated] == 0 {
		t.Errorf("the kernel did %v", seen)
	}
}

// Kernels differ in what they do with nops; what they do with the rest is the same.
func TestClassByKernel(t *testing.T) {
	old, nops, calls5, calls10 := stepping{}, stepping{nops: true, armNop: true}, stepping{nops: true, optimised: 5}, stepping{nops: true, anyNop: true, optimised: 10}
	for _, c := range []struct {
		name    string
		machine elf.Machine
		code    string
		offset  uint64
		classes [4]Class // of old, nops, calls5, calls10
	}{
		{"nop5", elf.EM_X86_64, "\x0f\x1f\x44\x00\x00", 0, [4]Class{Stepped, Emulated, Nop5, Emulated}},
		{"nop5 over a page", elf.EM_X86_64, "\x0f\x1f\x44\x00\x00", 4092, [4]Class{Stepped, Emulated, Emulated, Emulated}},
		{"nop5 of 32 bits", elf.EM_386, "\x0f\x1f\x44\x00\x00", 0, [4]Class{Stepped, Emulated, Emulated, Emulated}},
		{"nop9", elf.EM_X86_64, "\x66\x0f\x1f\x84\x00\x00\x00\x00\x00", 0, [4]Class{Stepped, Stepped, Stepped, Emulated}},
		{"nop10", elf.EM_X86_64, "\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00", 0, [4]Class{Stepped, Stepped, Stepped, Nop10}},
		{"endbr64", elf.EM_X86_64, "\xf3\x0f\x1e\xfa", 0, [4]Class{Stepped, Stepped, Stepped, Stepped}},
		{"push %rbp", elf.EM_X86_64, "\x55\x48\x89\xe5", 0, [4]Class{Emulated, Emulated, Emulated, Emulated}},
		{"inc %ecx", elf.EM_386, "\x41\x90", 0, [4]Class{Stepped, Stepped, Stepped, Stepped}},
		{"a cut nop5", elf.EM_X86_64, "\x0f", 0, [4]Class{Stepped, Stepped, Stepped, Stepped}},
		{"nop", elf.EM_AARCH64, "\x1f\x20\x03\xd5", 0, [4]Class{Stepped, Emulated, Stepped, Stepped}},
		{"paciasp", elf.EM_AARCH64, "\x3f\x23\x03\xd5", 0, [4]Class{Stepped, Stepped, Stepped, Stepped}},
		{"ret", elf.EM_AARCH64, "\xc0\x03\x5f\xd6", 0, [4]Class{Emulated, Emulated, Emulated, Emulated}},
		{"cbz", elf.EM_AARCH64, "\x40\x00\x00\xb4", 0, [4]Class{Emulated, Emulated, Emulated, Emulated}},
		{"ret", elf.EM_RISCV, "\x82\x80", 0, [4]Class{}},
	} {
		for i, k := range []stepping{old, nops, calls5, calls10} {
			if got := k.class(c.machine, []byte(c.code), c.offset); got != c.classes[i] {
				t.Errorf("%s on kernel %d: %s, want %s", c.name, i, got, c.classes[i])
			}
		}
	}
}

// What the kernel refuses of ARM64.
func TestRefusedARM64(t *testing.T) {
	for insn, want := range map[uint32]bool{
		0x58000040: true,  // ldr x0, literal
		0x1c000040: true,  // ldr s0, literal
		0xd8000000: true,  // prfm literal
		0xc85f7c01: true,  // ldxr
		0xc8007c01: true,  // stxr
		0x085ffc00: true,  // ldaxrb
		0xd4000001: true,  // svc
		0xd4200000: true,  // brk
		0xd51bd040: true,  // msr tpidr_el0
		0xd65f0bff: true,  // retaa
		0xd503203f: true,  // yield
		0xd503201f: false, // nop
		0xd503233f: false, // paciasp
		0xd503245f: false, // bti c
		0xd53bd040: false, // mrs x0, tpidr_el0
		0xd65f03c0: false, // ret
		0xd61f0200: false, // br x16
		0xa9bf7bfd: false, // stp
		0xf9400000: false, // ldr x0, [x0]
		0x10000000: false, // adr
		0x90000000: false, // adrp
		0xc8dffc00: false, // ldar
	} {
		if got := armRefused(insn); got != want {
			t.Errorf("%08x: refused %v", insn, got)
		}
	}
}

// Whatever a function begins with: what is let through, the kernel takes.
func TestLetThroughIsAttachable(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("x86-64 only")
	}
	var src strings.Builder
	src.WriteString("int main(void) { return 0; }\n__asm__(\".text\\n")
	add := func(code ...byte) {
		name := fmt.Sprintf("f_%x", code)
		fmt.Fprintf(&src, ".globl %s\\n.type %[1]s,@function\\n%[1]s: .byte ", name)
		for _, b := range code {
			fmt.Fprintf(&src, "%#x,", b)
		}
		src.WriteString("0xc0\\n.skip 16,0x90\\n.size " + name + ",.-" + name + "\\n")
	}
	for b := range 256 {
		add(byte(b))
		add(0x0f, byte(b))
		add(0x48, byte(b))
		add(0x66, byte(b))
	}
	for _, prefix := range []byte{0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x67, 0xf0, 0xf2, 0xf3} {
		add(prefix, 0x89)
		add(0x66, prefix, 0x89)
		add(prefix, 0xe8)
		add(prefix, 0xff)
	}
	add(0x8e, 0xd0)
	add(0x66, 0x0f, 0x84)
	add(0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0)
	src.WriteString("\");\n")
	source := filepath.Join(t.TempDir(), "all.c")
	if err := os.WriteFile(source, []byte(src.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	f := open(t, bpftest.Compile(t, source))
	var rs []Request
	refused := 0
	for i := range f.Functions {
		r := Request{Kind: Entry, File: f, Function: &f.Functions[i]}
		if !strings.HasPrefix(r.Function.Name, "f_") {
			continue
		}
		if Check(r, Hazards{}).Verdict == Refuses {
			refused++
			continue
		}
		rs = append(rs, r)
	}
	c := newCollectorHere(t, Config{Probes: len(rs)})
	if err := c.Place(context.Background(), rs...); err != nil {
		t.Fatal(err)
	}
	for _, p := range collect(t, c).Probes {
		if p.State != Attached {
			t.Errorf("%s is %s: %s", p.Function.Name, p.State, p.Note)
		}
	}
	t.Logf("%d are let through, %d refused", len(rs), refused)
}

// What is passed over without decoding does something.
func TestMayDoNothing(t *testing.T) {
	nothing := 0
	r := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		code := make([]byte, maxInstruction)
		for i := range code {
			code[i] = byte(r.Uint32())
		}
		first := []byte{0x66, 0x48, 0x4d, 0x2e, 0x90, 0x0f, 0x1f, 0x89, 0x8d, 0xe9, 0xeb, 0x00, 0xc0, 0x24}
		for i := range 5 {
			code[i] = first[r.IntN(len(first))]
		}
		if n, _ := decodeNothing(code); n > 0 {
			nothing++
			if !mayDoNothing(code) {
				t.Fatalf("% x does nothing", code[:n])
			}
		}
	}
	if nothing < 1000 {
		t.Errorf("%d instructions that do nothing", nothing)
	}
}
