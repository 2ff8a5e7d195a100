// Calls comes() 100 times, which goes back to its first instruction twice each time.
#include <stdio.h>

void comes(int times);
#if defined(__x86_64__)
__asm__(".globl comes\n.type comes,@function\ncomes: sub $1, %edi\njnz comes\nret\n.size comes, .-comes\n");
#else
__asm__(".globl comes\n.type comes,@function\ncomes: subs w0, w0, #1\nb.ne comes\nret\n.size comes, .-comes\n");
#endif

int main(void)
{
	for (int i = 0; i < 100; i++)
		comes(3);
	puts("100");
	return 0;
}
