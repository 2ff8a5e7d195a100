// An exception passes through a function, each time:  throws N
#include <cstdio>
#include <cstdlib>

#define PROBED extern "C" __attribute__((noinline))

PROBED void source(int i) { throw i; }

PROBED void passed(int i)
{
	source(i);
	__asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
	int caught = 0, n = argc > 1 ? std::atoi(argv[1]) : 1;

	for (int i = 0; i < n; i++) {
		try {
			passed(i);
		} catch (int) {
			caught++;
		}
	}
	std::printf("caught %d\n", caught);
}
