// Passes its usdt probes N times a round and counts for itself how often:
//   markers N           one round
//   markers N lines     a round at each line of stdin
// After a round it writes one line: the hits of demo:plain, demo:two, demo:guarded,
// other:plain and demo:many (with -DMANY: 2000 sites) in all, and the semaphore of demo:guarded, which is passed only while that is
// above 0. What sys/sdt.h would write is written by hand: it may not be there.
#ifdef BARE // only to be looked at
#define printf(...)
#define fflush(...)
#else
#include <stdio.h>
#include <stdlib.h>
#endif

#if __SIZEOF_POINTER__ == 8
#define WORD ".8byte"
#else
#define WORD ".4byte"
#endif

#define MARK(...) MARKS("", "", __VA_ARGS__)
#define MARKS(before, after, provider, name, semaphore, arguments, value)       \
	__asm__ volatile(before "990: nop\n"                                           \
			 ".pushsection .note.stapsdt,\"\",\"note\"\n"           \
			 ".balign 4\n"                                          \
			 ".4byte 992f-991f, 994f-993f, 3\n"                     \
			 "991: .asciz \"stapsdt\"\n"                            \
			 "992: .balign 4\n"                                     \
			 "993: " WORD " 990b, _.stapsdt.base, " semaphore "\n"  \
			 ".asciz \"" provider "\"\n"                            \
			 ".asciz \"" name "\"\n"                                \
			 ".asciz \"" arguments "\"\n"                           \
			 "994: .balign 4\n"                                     \
			 ".popsection\n"                                        \
			 ".ifndef _.stapsdt.base\n"                             \
			 ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
			 ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n"       \
			 "_.stapsdt.base: .space 1\n"                           \
			 ".size _.stapsdt.base, 1\n"                            \
			 ".popsection\n"                                        \
			 ".endif\n" after ::"r"(value))

unsigned short guarded_semaphore __attribute__((section(".probes"), used));

static unsigned long plain, two, guarded, other, many;

static inline __attribute__((always_inline)) void inlined(int n)
{
	MARK("demo", "two", "0", "-4@%0", n);
	two++;
}

__attribute__((noinline)) void round_of(int n)
{
	for (int i = 0; i < n; i++) {
		MARK("demo", "plain", "0", "-4@%0", i);
		plain++;
		inlined(i);
		if (i % 2)
			inlined(-i);
		if (i % 4 == 0) {
			MARK("other", "plain", "0", "", 0);
			other++;
		}
		if (*(volatile unsigned short *)&guarded_semaphore) {
			MARK("demo", "guarded", "guarded_semaphore", "-4@%0", i);
			guarded++;
			if (i % 3 == 0) {
				MARK("demo", "guarded", "guarded_semaphore", "", 0);
				guarded++;
			}
		}
	}
#ifdef MANY
	MARKS(".rept 2000\n", ".endr\n", "demo", "many", "0", "", 0);
	many += 2000;
#endif
	printf("%lu %lu %lu %lu %lu %u\n", plain, two, guarded, other, many, guarded_semaphore);
	fflush(stdout);
}

#ifdef BARE
int main(void) { round_of(1); return 0; }
#else
int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1000, c;

	if (argc < 3) {
		round_of(n);
		return 0;
	}
	while ((c = getchar()) != EOF)
		if (c == '\n')
			round_of(n);
	return 0;
}
#endif
