// Code that begins with a return address on top of the stack, and code that does not:
//   callers
#include <stdio.h>

long called(long), silent(long), whole(long), jumped(long);

__asm__(".text\n"
	".globl called\n.type called,@function\n"
	"called: .cfi_startproc\n lea 1(%rdi),%rax\n ret\n .cfi_endproc\n.size called,.-called\n"
	// Without an unwind entry.
	".globl silent\n.type silent,@function\n"
	"silent: lea 1(%rdi),%rax\n ret\n.size silent,.-silent\n"
	// With a label inside, once with an unwind entry around and once without.
	".globl whole\n.type whole,@function\n"
	"whole: .cfi_startproc\n push %rdi\n .cfi_adjust_cfa_offset 8\n nop\n"
	".globl middle\nmiddle: pop %rax\n .cfi_adjust_cfa_offset -8\n ret\n .cfi_endproc\n.size whole,.-whole\n"
	".globl bare\n.type bare,@function\n"
	"bare: push %rdi\n nop\n.globl inner\ninner: pop %rax\n ret\n.size bare,.-bare\n"
	// A piece that is jumped to, which a name does not tell.
	".globl jumped\n.type jumped,@function\n"
	"jumped: .cfi_startproc\n push %rdi\n .cfi_adjust_cfa_offset 8\n jmp piece\n .cfi_endproc\n.size jumped,.-jumped\n"
	".globl piece\n.type piece,@function\n"
	"piece: .cfi_startproc\n .cfi_def_cfa_offset 16\n pop %rax\n .cfi_def_cfa_offset 8\n ret\n .cfi_endproc\n.size piece,.-piece\n"
	// One that is called, by a name of pieces.
	".globl called.cold.1\n.type called.cold.1,@function\n"
	"called.cold.1: .cfi_startproc\n ret\n .cfi_endproc\n.size called.cold.1,.-called.cold.1\n"
	".globl signalled\n.type signalled,@function\n"
	"signalled: .cfi_startproc\n .cfi_signal_frame\n ret\n .cfi_endproc\n.size signalled,.-signalled\n");

void *dlsym(void *handle, const char *name) { return *name ? handle : 0; }

int main(void)
{
	long sum = 0;

	for (long i = 0; i < 1000; i++)
		sum += called(i) + silent(i) + whole(i) + jumped(i);
	printf("sum %ld\n", sum + !dlsym(&sum, "x"));
	return 0;
}
