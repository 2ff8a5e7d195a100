// One function for each sort of first instruction. The first argument names the one
// that is called, three times; then the program prints its own map of memory.
#include <stdio.h>
#include <string.h>

#define SORT(name, ...) \
	extern void name(void); \
	__asm__(".text\n.p2align 6\n.globl " #name "\n.type " #name ",%function\n" #name ":\n" __VA_ARGS__ "\n.size " #name ", .-" #name "\n");

#ifdef __x86_64__
#define ALL(X) \
	X(nop1, "nop\nret") \
	X(nop2, ".byte 0x66,0x90\nret") \
	X(pause_once, "pause\nret") \
	X(nop3, ".byte 0x0f,0x1f,0x00\nret") \
	X(nop4, ".byte 0x0f,0x1f,0x40,0\nret") \
	X(nop5, ".byte 0x0f,0x1f,0x44,0,0\nret") \
	X(nop5_page, "ret\n.p2align 12\n.skip 4093,0x90\n.globl nop5_over\n.type nop5_over,@function\nnop5_over: .byte 0x0f,0x1f,0x44,0,0\nret\n.size nop5_over,.-nop5_over") \
	X(nop6, ".byte 0x66,0x0f,0x1f,0x44,0,0\nret") \
	X(nop7, ".byte 0x0f,0x1f,0x80,0,0,0,0\nret") \
	X(nop8, ".byte 0x0f,0x1f,0x84,0,0,0,0,0\nret") \
	X(nop9, ".byte 0x66,0x0f,0x1f,0x84,0,0,0,0,0\nret") \
	X(nop10, ".byte 0x66,0x2e,0x0f,0x1f,0x84,0,0,0,0,0\nret") \
	X(nop_reg, ".byte 0x0f,0x1f,0xc0\nret") \
	X(nop5_other, ".byte 0x66,0x0f,0x1f,0x40,0\nret") \
	X(nop5_prefixed, ".byte 0x66,0x66,0x66,0x66,0x90\nret") \
	X(mov_same, ".byte 0x48,0x89,0xc0\nret") \
	X(mov_same_32, ".byte 0x89,0xc0\nret") \
	X(lea_same, ".byte 0x48,0x8d,0x40,0\nret") \
	X(endbr, "endbr64\nret") \
	X(push_rbp, "push %rbp\npop %rbp\nret") \
	X(push_r12, "push %r12\npop %r12\nret") \
	X(push_rex, ".byte 0x48,0x55\npop %rbp\nret") \
	X(push_short, "pushw %bp\npopw %bp\nret") \
	X(push_number, "push $1\npop %rax\nret") \
	X(call_near, "call 1f\nret\n1: ret") \
	X(call_prefixed, ".byte 0xf2\ncall 1f\nret\n1: ret") \
	X(jmp_short, "jmp 1f\n1: ret") \
	X(jmp_near, ".byte 0xe9,0,0,0,0\nret") \
	X(jcc_short, "je 1f\n1: ret") \
	X(jcc_near, ".byte 0x0f,0x84,0,0,0,0\nret") \
	X(jrcxz_short, "jrcxz 1f\n1: ret") \
	X(sub_rsp, "sub $8,%rsp\nadd $8,%rsp\nret") \
	X(mov_reg, "mov %rsp,%rax\nret") \
	X(mov_fs, "mov %fs:0,%rax\nret") \
	X(xor_reg, "xor %eax,%eax\nret") \
	X(test_reg, "test %rdi,%rdi\nret") \
	X(lea_rip, "lea 1f(%rip),%rax\n1: ret") \
	X(plain_ret, "ret") \
	X(repz_ret, "repz ret") \
	X(cpuid_like, "rdtsc\nret")
#elif defined(__aarch64__)
#define ALL(X) \
	X(nop1, "nop\nret") \
	X(bti_c, "hint #34\nret") \
	X(sign, "hint #25\nhint #29\nret") \
	X(store_pair, "stp x29,x30,[sp,#-16]!\nldp x29,x30,[sp],#16\nret") \
	X(sub_sp, "sub sp,sp,#16\nadd sp,sp,#16\nret") \
	X(mov_reg, "mov x0,x1\nret") \
	X(thread, "mrs x0,tpidr_el0\nret") \
	X(branch, "b 1f\n1: ret") \
	X(branch_if, "b.eq 1f\n1: ret") \
	X(if_zero, "cbz x0,1f\n1: ret") \
	X(if_bit, "tbz x0,#1,1f\n1: ret") \
	X(address, "adr x0,1f\n1: ret") \
	X(page, "adrp x0,.\nret") \
	X(plain_ret, "ret") \
	X(literal, "ldr x0,1f\nret\n1: .quad 1") \
	X(exclusive, "ldxr x1,[x0]\nret")
#else
#define ALL(X)
#endif

ALL(SORT)
#ifdef __x86_64__
extern void nop5_over(void);
#endif

static const struct {
	const char *name;
	void (*call)(void);
} sorts[] = {
#define ROW(name, ...) {#name, name},
	ALL(ROW)
#ifdef __x86_64__
	{"nop5_over", nop5_over},
#endif
};

int main(int argc, char **argv)
{
	for (unsigned i = 0; i < sizeof sorts / sizeof *sorts; i++) {
		if (argc < 2)
			puts(sorts[i].name);
		else if (!strcmp(argv[1], sorts[i].name))
			for (int n = 0; n < 3; n++)
				sorts[i].call();
	}
	if (argc < 2)
		return 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	for (int c; maps && (c = getc(maps)) != EOF;)
		putchar(c);
	return 0;
}
