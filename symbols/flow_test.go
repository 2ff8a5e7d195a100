package symbols

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// assembled builds a program of functions in assembly.
func assembled(t *testing.T, text string) *File {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("x86-64 only")
	}
	source := filepath.Join(t.TempDir(), "a.c")
	if err := os.WriteFile(source, []byte("__asm__(\""+strings.ReplaceAll(text, "\n", "\\n")+"\");int main(){return 0;}"), 0o600); err != nil {
		t.Fatal(err)
	}
	return mustOpen(t, build(t, "gcc", source, "-O1"))
}

// Data between instructions hides where those behind it begin: the jump over it tells.
func TestInsideBehindData(t *testing.T) {
	f := assembled(t, `.globl f\n.type f,@function\nf: jmp 1f\n.byte 0xb8\n1: lea 0x11223344(%rdi),%rax\nret\n.size f,.-f\n`)
	fn := one(t, f, "f")
	for n := uint64(1); n < fn.Size; n++ {
		at, err := f.Inside(fn, n)
		if begins := n == 2; (err == nil) != begins { // 0xb8 itself: nobody gets there, and nothing contradicts
			t.Errorf("f+%d is %+v, %v", n, at, err)
		}
	}
}

// A symbol that says a function begins inside an instruction gets no breakpoint.
func TestInsideInstruction(t *testing.T) {
	f := assembled(t, `.globl f\n.type f,@function\nf: .cfi_startproc\n lea 0x11223344(%rdi),%rax\n.globl next\nnext: ret\n.cfi_endproc\n.size f,.-f\n.globl lie\n.set lie,f+3\n.type lie,@function\n`)
	for name, inside := range map[string]bool{"f": false, "next": false, "main": false, "lie": true} {
		if err := f.InsideInstruction(one(t, f, name).Addr); (err != nil) != inside {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A usdt site inside an instruction is none, also where no unwind entry covers it.
func TestInsideInstructionAt(t *testing.T) {
	f := assembled(t, `.globl f,g\n.type f,@function\n.type g,@function\nf: mov $0x90,%eax\nnop\nret\n.size f,.-f\ng: .cfi_startproc\n mov $0x90,%eax\nnop\nret\n.cfi_endproc\n.size g,.-g\n`)
	for _, name := range []string{"f", "g"} {
		for into, inside := range map[Offset]bool{0: false, 1: true, 4: true, 5: false, 6: false} {
			if err := f.InsideInstructionAt(one(t, f, name).Offset + into); (err != nil) != inside {
				t.Errorf("%s+%d: %v", name, into, err)
			}
		}
	}
}

// Of two segments at one address the kernel maps the last: such files are refused.
func TestOverlap(t *testing.T) {
	b := readFile(t, build(t, "gcc", "plain.c", "-no-pie"))
	if b[4] != 2 {
		t.Skip("64-bit files only")
	}
	const entry, load = 56, 1
	for at := order.Uint64(b[32:]); ; at += entry {
		if h := b[at:]; order.Uint32(h) == load && order.Uint32(h[4:])&1 != 0 { // the code
			copy(b[order.Uint64(b[32:]):], h[:entry])
			break
		}
	}
	f, err := Open(writeFile(t, b))
	if err == nil || !strings.Contains(err.Error(), "same address") {
		t.Errorf("it opens as %v, %v", f, err)
	}
}
