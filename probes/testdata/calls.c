// Calls work() N times on each of T threads and says how often it did:
//   calls T N [nop5]
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long made; // calls, counted by the program itself

__attribute__((noinline)) void work(void) { __asm__ volatile("" ::: "memory"); }

#if defined(__x86_64__)
// A 5-byte nop first: kernels from 6.18 on turn its breakpoint into a call.
__asm__(".globl work5\n.type work5,@function\n.p2align 6\n"
	"work5: .cfi_startproc\n.byte 0x0f,0x1f,0x44,0x00,0x00\nret\n.cfi_endproc\n.size work5, .-work5\n");
void work5(void);
#else
void work5(void) { work(); }
#endif

static long n;
static void (*function)(void) = work;

static void *run(void *unused)
{
	for (long i = 0; i < n; i++) {
		function();
		__atomic_fetch_add(&made, 1, __ATOMIC_RELAXED);
	}
	return unused;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t t[1024];

	n = argc > 2 ? atol(argv[2]) : 1000;
	if (argc > 3 && !strcmp(argv[3], "nop5"))
		function = work5;
	for (int i = 0; i < threads; i++)
		pthread_create(&t[i], 0, run, 0);
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], 0);
	printf("%lu\n", made);
	return 0;
}
