// IFUNCs of every make: a library of them, or with -DPROGRAM a program that has its
// own, and with -DIMPORTS one that has those of the library. A program says ready
// once it has called those that it calls, and waits for its input to end. -DBARE is
// a program for 32-bit x86 that needs no library and relocates itself.

#if defined(PROGRAM) || defined(IMPORTS)
#include <unistd.h>
#endif

static volatile int newer = 1; // so that the resolvers have a choice to make

#define VARIANTS(name, step) \
	__attribute__((noinline)) static int name##_old(int n) { return n - step; } \
	__attribute__((noinline)) static int name##_new(int n) { return n + step; } \
	static int (*name##_choose(void))(int) { return newer ? name##_new : name##_old; }

#ifdef IMPORTS
int turn(int), twist(int), called(int), uncalled(int), within(int);
#else
VARIANTS(turn, 2)
VARIANTS(called, 3)
VARIANTS(uncalled, 4)
VARIANTS(hidden, 5)
VARIANTS(never, 6)

int turn(int n) __attribute__((ifunc("turn_choose")));
static int (*twist_choose(void))(int) { return turn_choose(); }
int twist(int n) __attribute__((ifunc("twist_choose")));
int called(int n) __attribute__((ifunc("called_choose")));
int uncalled(int n) __attribute__((ifunc("uncalled_choose")));
int never(int n) __attribute__((ifunc("never_choose")));
int hidden(int n) __attribute__((ifunc("hidden_choose"), visibility("hidden")));

#if defined(__x86_64__) && defined(PROGRAM)
// Its variant begins as no probe can be placed; it is never called.
__asm__(".text\n.type wide_new, %function\nwide_new: vpxor %xmm0, %xmm0, %xmm0\nret\n.size wide_new, .-wide_new\n");
extern int wide_new(int) __attribute__((visibility("hidden")));
static int (*wide_choose(void))(int) { return wide_new; }
int wide(int n) __attribute__((ifunc("wide_choose")));
int (*volatile wide_pointer)(int) = wide;
#endif

int within(int n) { return hidden(n) + turn(n) + twist(n); }
#endif

#if defined(PROGRAM) || defined(IMPORTS)
int main(int argc, char **argv) {
	(void)argv;
	int (*volatile pointer)(int) = twist;
	int n = turn(argc) + pointer(argc) + called(argc) + within(argc);
	if (argc > 7)
		n += uncalled(argc);
	char c[2] = {n == 0, 0};
	write(1, "ready\n", 6);
	while (read(0, c, 1) > 0)
		;
	return 0;
}
#endif

#ifdef BARE
static int call(int number, int a, const void *b, int c) {
	int result;
	__asm__ volatile("int $0x80" : "=a"(result) : "0"(number), "b"(a), "c"(b), "d"(c) : "memory");
	return result;
}

extern struct { unsigned at, type; } __rel_iplt_start[], __rel_iplt_end[];

void _start(void) {
	char c;
	for (__typeof__(&__rel_iplt_start[0]) r = __rel_iplt_start; r < __rel_iplt_end; r++)
		*(unsigned *)r->at = ((unsigned (*)(void))*(unsigned *)r->at)();
	int (*volatile pointer)(int) = called;
	call(4, 1, "ready\n", 6 + 0 * (within(1) + pointer(1)));
	while (call(3, 0, &c, 1) > 0)
		;
	call(1, 0, 0, 0);
}
#endif
