// Functions that begin with an instruction that takes no breakpoint. They are never
// called: the CPU need not know them.
int main(void) { return 0; }
__asm__(".text\n"
	".globl vex2,vex3,evex,plain,locked,enters,repeats,ports,swaps,vexfs,endless\n.type vex2,@function\n.type vex3,@function\n"
	".type evex,@function\n.type plain,@function\n.type locked,@function\n"
	".type enters,@function\n.type repeats,@function\n.type ports,@function\n"
	".type swaps,@function\n.type vexfs,@function\n.type endless,@function\n"
	"vex2: .byte 0xc5,0xf8,0x77\nret\n.size vex2, .-vex2\n" // vzeroupper
	"vex3: .byte 0xc4,0xe2,0x7d,0x78,0xc0\nret\n.size vex3, .-vex3\n" // vpbroadcastb
	"evex: .byte 0x62,0xe2,0x7d,0x48,0x7a,0xc6\nret\n.size evex, .-evex\n" // as memset for AVX-512
	"locked: lock incl (%rdi)\nret\n.size locked, .-locked\n"
	"ports: in (%dx),%al\nret\n.size ports, .-ports\n"
	"swaps: xchg %rax,%r8\nret\n.size swaps, .-swaps\n"
	"vexfs: .byte 0x64,0xc5,0xfe,0x6f,0x07\nret\n.size vexfs, .-vexfs\n" // vmovdqu %fs:(%rdi)
	"endless: .fill 16,1,0x66\nret\n.size endless, .-endless\n" // longer than any instruction
	"enters: syscall\nret\n.size enters, .-enters\n"
	"repeats: rep stosb\nret\n.size repeats, .-repeats\n"
	"plain: nop\nret\n.size plain, .-plain\n");
