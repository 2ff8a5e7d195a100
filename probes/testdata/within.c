// Sleeps inside a function for most of the time, on several threads, and says for how
// long they were inside in all, and how long that took, in ns:
//   within THREADS N US     each thread calls nap N times, which sleeps US µs
// It waits for a line before it begins.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long n, us;
static unsigned long inside;
static pthread_barrier_t go;

static unsigned long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000UL + t.tv_nsec;
}

__attribute__((noinline)) void nap(void)
{
	struct timespec t = {us / 1000000, us % 1000000 * 1000};

	nanosleep(&t, 0);
	__asm__ volatile("" ::: "memory");
}

static void *run(void *unused)
{
	pthread_barrier_wait(&go);
	for (long i = 0; i < n; i++) {
		unsigned long start = now();

		nap();
		__atomic_fetch_add(&inside, now() - start, __ATOMIC_RELAXED);
	}
	return unused;
}

int main(int argc, char **argv)
{
	int threads = argc > 3 ? atoi(argv[1]) : 1;
	pthread_t t[64];
	unsigned long start;

	n = argc > 3 ? atol(argv[2]) : 1;
	us = argc > 3 ? atol(argv[3]) : 1;
	pthread_barrier_init(&go, 0, threads + 1);
	for (int i = 0; i < threads; i++)
		pthread_create(&t[i], 0, run, 0);
	getchar();
	start = now();
	pthread_barrier_wait(&go);
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], 0);
	printf("inside %lu\ntook %lu\n", inside, now() - start);
	return 0;
}
