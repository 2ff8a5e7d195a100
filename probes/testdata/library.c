// A library whose function somebody counts; with -DNOP5 it begins with a nop of 5 bytes.
#ifdef NOP5
__asm__(".text\n.globl provided\n.type provided,@function\n.p2align 6\n"
	"provided: .cfi_startproc\n.byte 0x0f,0x1f,0x44,0x00,0x00\nret\n.cfi_endproc\n.size provided, .-provided\n");
#else
void provided(void) { __asm__ volatile("" ::: "memory"); }
#endif
