// Sleeps 1 ms again and again on one CPU, for some seconds, and says how late it
// woke at the 99.9th percentile and at worst, in ns:
//   sleeper CPU SECONDS
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	long long x = *(const long long *)a, y = *(const long long *)b;

	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	static long long late[1000000];
	struct timespec ms = {0, 1000000};
	long long end;
	cpu_set_t cpu;
	int n = 0;

	if (argc < 3)
		return 2;
	CPU_ZERO(&cpu);
	CPU_SET(atoi(argv[1]), &cpu);
	if (sched_setaffinity(0, sizeof(cpu), &cpu))
		return 1;
	end = now() + atoll(argv[2]) * 1000000000LL;
	while (now() < end && n < 1000000) {
		long long before = now();

		nanosleep(&ms, 0);
		late[n++] = now() - before - 1000000;
	}
	qsort(late, n, sizeof(*late), ascending);
	printf("p999 %lld\nmax %lld\n", late[n * 999LL / 1000], late[n - 1]);
	return 0;
}
