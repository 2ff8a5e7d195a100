// Functions that begin with an instruction that the kernel would skip. They are
// never called: the CPU need not know them.
int main(void) { return 0; }
__asm__(".text\n"
	".globl vex2,vex3,evex,plain\n.type vex2,@function\n.type vex3,@function\n"
	".type evex,@function\n.type plain,@function\n"
	"vex2: .byte 0xc5,0xf8,0x77\nret\n.size vex2, .-vex2\n" // vzeroupper
	"vex3: .byte 0xc4,0xe2,0x7d,0x78,0xc0\nret\n.size vex3, .-vex3\n" // vpbroadcastb
	"evex: .byte 0x62,0xe2,0x7d,0x48,0x7a,0xc6\nret\n.size evex, .-evex\n" // as memset for AVX-512
	"plain: nop\nret\n.size plain, .-plain\n");
