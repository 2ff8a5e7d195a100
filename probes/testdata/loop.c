// Calls a function that begins with a 5-byte nop N times, and says how long that
// took, in ns:
//   loop N
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(__x86_64__)
__asm__(".globl work5\n.type work5,@function\n.p2align 6\n"
	"work5: .cfi_startproc\n.byte 0x0f,0x1f,0x44,0x00,0x00\nret\n.cfi_endproc\n.size work5, .-work5\n");
void work5(void);
#else
__attribute__((noinline)) void work5(void) { __asm__ volatile("nop" ::: "memory"); }
#endif

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1000;
	long long start;

	for (int i = 0; i < 1000; i++) // the first hits have the kernel optimise the nop
		work5();
	start = now();
	for (long i = 0; i < n; i++)
		work5();
	printf("ns %lld\n", now() - start);
	return 0;
}
