// A function with a piece for what seldom happens, which gcc puts elsewhere and jumps
// to, and clones that gcc makes of others:
//   clones N
#include <stdio.h>
#include <stdlib.h>

volatile int sink;
static int seldom, often, cloned;

__attribute__((cold, noinline)) void report(int n) { sink += n; }

__attribute__((noinline)) int split(int *values, int n)
{
	int sum = 0, saved[8];

	often++;
	for (int i = 0; i < 8; i++)
		saved[i] = values[i % n] + sink;
	if (n == 3) {
		seldom++;
		report(saved[2]);
		report(saved[5]);
		sum += values[1];
	}
	for (int i = 0; i < 8; i++)
		sum += saved[i];
	return sum;
}

// Always with the same last argument: gcc makes a clone without it.
static __attribute__((noinline)) int scaled(const int *values, int n, int by)
{
	int sum = 0;

	cloned++;
	for (int i = 0; i < n; i++) {
		sum += values[i] * by;
		sink++;
	}
	return sum;
}

int main(int argc, char **argv)
{
	int values[4] = {1, 2, 3, 4}, n = argc > 1 ? atoi(argv[1]) : 100, sum = 0;

	for (int i = 0; i < n; i++) {
		sum += split(values, 3 + i % 2);
		sum += scaled(values, 1 + i % 3, 7);
	}
	printf("sum %u\nsplit %d\nsplit.cold %d\nscaled.constprop.0 %d\n", (unsigned)sum, often, seldom, cloned);
	return 0;
}
