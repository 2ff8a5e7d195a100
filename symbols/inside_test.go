package symbols

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// The lengths of instructions that are easily taken for others, per objdump.
func TestInstruction(t *testing.T) {
	x86, arm := &File{Machine: elf.EM_X86_64}, &File{Machine: elf.EM_AARCH64}
	for code, want := range map[string]uint64{
		"f30f1efa":             4,  // endbr64
		"f30f1efb":             4,  // endbr32
		"0f1f440000":           5,  // nopl 0(%rax,%rax,1)
		"662e0f1f840000000000": 10, // cs nopw 0(%rax,%rax,1)
		"55":                   1,  // push %rbp
		"4883ec18":             4,  // sub $0x18,%rsp
		"48b88877665544332211": 10, // movabs
		"c5f877":               3,  // vzeroupper
		"c5fe6f06":             4,  // vmovdqu (%rsi),%ymm0
		"c5f970c1d8":           5,  // vpshufd $0xd8,%xmm1,%xmm0
		"64c5f96f0425":         0,  // vmovdqa %fs:disp32, cut short
		"64c5f96f042528000000": 10, // vmovdqa %fs:0x28,%xmm0
		"c4e27d5905efbeadde":   9,  // vpbroadcastq disp32(%rip),%ymm0
		"c4e37d39c001":         6,  // vextracti128 $0x1,%ymm0,%xmm0
		"c4e87900":             0,  // XOP's and APX's maps
		"62e17c2810442401":     8,  // vmovups 0x20(%rsp),%ymm16
		"62f1fe486f4601":       7,  // vmovdqu64 0x40(%rsi),%zmm0
		"62f17f486f05efbeadde": 10, // vmovdqu8 disp32(%rip),%zmm0
		"62f37d483e4c240102":   9,  // vpcmpub $2,0x40(%rsp),%zmm0,%k1
		"62f57c4858c1":         6,  // vaddph %zmm1,%zmm0,%zmm0
		"62f47c1801d8":         0,  // add %rbx,%rax,%rax of APX
		"0f05":                 2,  // syscall
		"06":                   0,  // push %es, not in 64-bit code
		"48":                   0,  // cut short
	} {
		b, err := hex.DecodeString(code)
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, "\x5d\xc3\x5d\xc3\x5d\xc3"[:min(6, want)]...) // what follows belongs to no one
		if got, err := x86.instruction(b); err == nil && got != want || err != nil && want != 0 {
			t.Errorf("%s has %d bytes (%v), want %d", code, got, err, want)
		}
	}
	for word, want := range map[uint32]uint64{0xd503201f: 4, 0xa9bf7bfd: 4, 0xd503233f: 4, 0x00000000: 0} { // nop, stp, paciasp, udf
		b := binary.LittleEndian.AppendUint32(nil, word)
		if got, err := arm.instruction(b); err == nil && got != want || err != nil && want != 0 {
			t.Errorf("%08x has %d bytes (%v), want %d", word, got, err, want)
		}
	}
}

// From a function's beginning, instructions begin where objdump sees them begin.
func TestInsideAsObjdump(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("x86-64 only")
	}
	path := libcPath(t)
	f := mustOpen(t, path)
	if _, err := exec.LookPath("objdump"); err != nil {
		t.Skipf("no objdump: %v", err)
	}
	points := 0
	for _, name := range []string{"malloc", "qsort_r", "vfprintf", "getaddrinfo", "regexec", "strtod"} {
		fns := f.Lookup(name)
		if len(fns) == 0 || fns[0].Size == 0 {
			continue
		}
		fn := fns[0]
		begins := map[uint64]bool{}
		out := run(t, "objdump", "-d", "--no-show-raw-insn", "--start-address="+strconv.FormatUint(uint64(fn.Addr), 10),
			"--stop-address="+strconv.FormatUint(uint64(fn.Addr)+fn.Size, 10), path)
		for line := range strings.Lines(string(out)) {
			at, _, found := strings.Cut(line, ":\t")
			if addr, err := strconv.ParseUint(strings.TrimSpace(at), 16, 64); found && err == nil {
				begins[addr-uint64(fn.Addr)] = true
			}
		}
		for n := uint64(1); n < min(fn.Size, 300); n++ {
			p, err := f.Inside(fn, n)
			if (err == nil) != begins[n] {
				t.Errorf("%s+%#x: %v, objdump says %v", name, n, err, begins[n])
			}
			if err == nil && (p.Offset != fn.Offset+Offset(n) || p.Addr != fn.Addr+Addr(n) || p.Into != n || p.Size != 0) {
				t.Errorf("%s+%#x is %+v", name, n, p)
			}
			points++
		}
	}
	if points == 0 {
		t.Skip("none of the functions has a size")
	}
}

// coded is a file of x86-64 code with functions at places in it.
func coded(t *testing.T, code string, functions ...Function) *File {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(code, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	f := &File{Path: "coded", Machine: elf.EM_X86_64, r: strings.NewReader(string(b)), size: uint64(len(b)), Functions: functions}
	for i := range f.Functions {
		f.Functions[i].Offset = Offset(f.Functions[i].Addr)
	}
	return f
}

func TestInside(t *testing.T) {
	f := coded(t, "55 4883ec18 90 c3 06 c3 90 90 90",
		Function{Symbol: Symbol{Name: "good"}, Addr: 0, Size: 7},
		Function{Symbol: Symbol{Name: "inner"}, Addr: 5, Size: 1},
		Function{Symbol: Symbol{Name: "data"}, Addr: 7, Size: 2},
		Function{Symbol: Symbol{Name: "_ZN3foo3barEv"}, Addr: 9},
	)
	for _, c := range []struct {
		fn, into int
		name     string // of the point
		says     string // in the error
	}{
		{0, 0, "good", ""},
		{0, 1, "good+0x1", ""},
		{0, 2, "", "good+0x2 is inside an instruction: those around it begin at +0x1 and +0x5"},
		{0, 5, "inner", ""},
		{0, 6, "good+0x6", ""},
		{0, 7, "", "behind the end of the function, which has 7 bytes"},
		{0, 1 << 40, "", "behind the end"},
		{2, 1, "", "it cannot be checked whether an instruction begins at data+0x1: what stands at +0x0 is not understood"},
		{3, 2, "foo::bar()+0x2", ""}, // its size is not known: to the end
		{3, 3, "", "behind the end"},
	} {
		p, err := f.Inside(&f.Functions[c.fn], uint64(c.into))
		switch {
		case c.says == "" && (err != nil || p.Demangled() != c.name):
			t.Errorf("%s+%d is %v, %v; want %s", f.Functions[c.fn].Name, c.into, p, err, c.name)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s+%d: %v, want %q", f.Functions[c.fn].Name, c.into, err, c.says)
		}
	}
	for addr, want := range map[Addr]string{0: "good", 1: "good+0x1", 5: "inner", 6: "good+0x6", 9: "foo::bar()", 10: "foo::bar()+0x1"} {
		if p, err := f.At(addr); err != nil || p.Demangled() != want {
			t.Errorf("%#x is %v, %v; want %s", addr, p, err, want)
		}
	}
}

func TestAtSentences(t *testing.T) {
	f := mustOpen(t, prebuilt(t))
	for _, addr := range []Addr{1 << 40, ^Addr(0)} {
		if _, err := f.At(addr); err == nil || !strings.Contains(err.Error(), "is outside the code") {
			t.Errorf("%#x: %v", addr, err)
		}
	}
	whole := f.Functions
	f.Functions = nil
	b := readFile(t, prebuilt(t))
	binary.LittleEndian.PutUint64(b[40:], 0) // no sections, and no unwind table by segment
	for i := range binary.LittleEndian.Uint16(b[56:]) {
		if h := b[binary.LittleEndian.Uint64(b[32:])+56*uint64(i):]; elf.ProgType(binary.LittleEndian.Uint32(h)) == elf.PT_GNU_EH_FRAME {
			binary.LittleEndian.PutUint32(h, uint32(elf.PT_NULL))
		}
	}
	f.r = bytes.NewReader(b)
	if _, err := f.At(whole[0].Addr); err == nil || !strings.Contains(err.Error(), "is in no function") {
		t.Errorf("without symbols: %v", err)
	}
}

// Between ldaxr and stlxr there is no place for a breakpoint on ARM64.
func TestExclusive(t *testing.T) {
	words := []uint32{0x885ffc01, 0x11000421, 0x8802fc01, 0x35ffffa2, 0, 0xd65f03c0} // ldaxr, add, stlxr, cbnz, udf, ret
	var code []byte
	for _, w := range words {
		code = binary.LittleEndian.AppendUint32(code, w)
	}
	f := &File{
		Machine: elf.EM_AARCH64, r: strings.NewReader(string(code)), size: uint64(len(code)),
		Functions: []Function{{Symbol: Symbol{Name: "add"}, Size: uint64(len(code))}},
	}
	for n, allowed := range map[uint64]bool{4: false, 8: false, 12: true, 16: false, 20: true, 6: false} {
		if _, err := f.Inside(&f.Functions[0], n); (err == nil) != allowed {
			t.Errorf("add+%d: %v", n, err)
		}
	}
}
