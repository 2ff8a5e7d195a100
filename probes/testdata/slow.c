// Calls that can be told from each other. Each call of step() gets its number, a
// tag and its sleep, and returns 3 * number + 1:
//   slow N EVERY US      N calls, every EVERY-th sleeps US µs; says how many slept
//   lead N               the first thread ends; another says its id, waits for a line, and calls step N times
//   threads T N          T threads say their ids, wait for a line, and call step N times each
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PROBED __attribute__((noinline, noclone))

PROBED long step(long number, long tag, long us)
{
	struct timespec t = {us / 1000000, us % 1000000 * 1000};

	if (us)
		nanosleep(&t, 0);
	__asm__ volatile("" ::: "memory");
	return 3 * number + 1;
}

PROBED long around(long number, long us)
{
	long r = step(number, 0x7a9, us) + step(number, 0x7a9, 0);

	__asm__ volatile("" ::: "memory");
	return r;
}

static pthread_barrier_t ready, go;
static long each;
static long ids[64];

static void *run(void *id)
{
	*(long *)id = syscall(SYS_gettid);
	pthread_barrier_wait(&ready);
	pthread_barrier_wait(&go);
	for (long i = 0; i < each; i++)
		step(i, 1, 0);
	return 0;
}

static void *lead(void *unused)
{
	printf("%ld\n", syscall(SYS_gettid));
	fflush(stdout);
	getchar();
	for (long i = 0; i < each; i++)
		step(i, 1, 0);
	exit(0);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "lead")) {
		pthread_t t;

		each = atol(argv[2]);
		pthread_create(&t, 0, lead, 0);
		pthread_exit(0);
	}
	if (argc < 4)
		return 2;
	if (!strcmp(argv[1], "threads")) {
		int n = atoi(argv[2]);
		pthread_t t[64];

		each = atol(argv[3]);
		pthread_barrier_init(&ready, 0, n + 1);
		pthread_barrier_init(&go, 0, n + 1);
		for (int i = 0; i < n; i++)
			pthread_create(&t[i], 0, run, &ids[i]);
		pthread_barrier_wait(&ready);
		for (int i = 0; i < n; i++)
			printf("%ld\n", ids[i]);
		fflush(stdout);
		getchar();
		pthread_barrier_wait(&go);
		for (int i = 0; i < n; i++)
			pthread_join(t[i], 0);
		return 0;
	}
	long n = atol(argv[2]), every = atol(argv[3]), us = argc > 4 ? atol(argv[4]) : 0, slept = 0;

	for (long i = 0; i < n; i++) {
		int slow = every && i % every == 0;

		around(i, slow ? us : 0);
		slept += slow;
	}
	printf("slept %ld\n", slept);
	return 0;
}
