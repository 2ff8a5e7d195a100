// Calls work() on threads that are interrupted as often as it goes: S of them run all
// the time, and W of a higher class wake up by a timer, call work() once and sleep
// again. Says how often all of them did:
//   preempt S W N          N calls on each of the S
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static unsigned long made; // calls, counted by the program itself
static long n;
static int running;

__attribute__((noinline)) void work(void) { __asm__ volatile("" ::: "memory"); }

static void *run(void *unused)
{
	for (long i = 0; i < n; i++) {
		work();
		__atomic_fetch_add(&made, 1, __ATOMIC_RELAXED);
	}
	__atomic_fetch_sub(&running, 1, __ATOMIC_RELEASE);
	return unused;
}

static void *wake(void *number)
{
	struct sched_param first = {.sched_priority = 10};
	struct timespec t = {0, 31000 + 7000 * (long)number};

	pthread_setschedparam(pthread_self(), SCHED_FIFO, &first);
	while (__atomic_load_n(&running, __ATOMIC_ACQUIRE)) {
		work();
		__atomic_fetch_add(&made, 1, __ATOMIC_RELAXED);
		nanosleep(&t, 0);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	long spinners = atol(argv[1]), all = spinners + atol(argv[2]);
	pthread_t t[256];

	n = atol(argv[3]);
	running = spinners;
	for (long i = 0; i < all && i < 256; i++)
		pthread_create(&t[i], 0, i < spinners ? run : wake, (void *)i);
	for (long i = 0; i < all && i < 256; i++)
		pthread_join(t[i], 0);
	printf("%lu\n", made);
	return 0;
}
