// Threads that hang in a function, and who is to blame for what time.
//   threads N       N threads say their ids, one a line, and hang in hang() until a line comes; then "done"
//   nested          one thread hangs in hang() within inner() within outer(); likewise
//   jump            a thread jumps out of outer() and inner(), far down its stack, says its id, and waits for a line
//   self N          outer() N times: it spends time itself and in inner()
//   race N          N threads call even() and odd() in turn until a line comes, with the time before the call,
//                   of which the last bit is even's or odd's
//   recurse N       recurse() N deep, each with time of its own
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PROBED __attribute__((noinline, noclone))

static pthread_barrier_t said;
static int hold[2];
static jmp_buf back;

static void spin(long us)
{
	struct timespec a, b;

	clock_gettime(CLOCK_MONOTONIC, &a);
	do
		clock_gettime(CLOCK_MONOTONIC, &b);
	while ((b.tv_sec - a.tv_sec) * 1000000 + (b.tv_nsec - a.tv_nsec) / 1000 < us);
}

PROBED long hang(long number)
{
	char c;
	long r = read(hold[0], &c, 1);

	__asm__ volatile("" ::: "memory");
	return r + number;
}

PROBED long inner(long what)
{
	if (what == 0)
		spin(20);
	else if (what == 1)
		hang(7);
	else
		longjmp(back, 1);
	__asm__ volatile("" ::: "memory");
	return what;
}

PROBED long outer(long what)
{
	long r;

	if (what == 0)
		spin(10);
	r = inner(what);
	if (what == 0)
		r += inner(what);
	__asm__ volatile("" ::: "memory");
	return r + 1;
}

PROBED long deep(long what)
{
	volatile char room[64 << 10];

	room[0] = what;
	return outer(what) + room[0];
}

PROBED long recurse(long n)
{
	long r = 0;

	spin(5);
	if (n > 1)
		r = recurse(n - 1);
	__asm__ volatile("" ::: "memory");
	return r + 1;
}

PROBED long even(long at)
{
	__asm__ volatile("" ::: "memory");
	return at;
}

PROBED long odd(long at)
{
	__asm__ volatile("" ::: "memory");
	return at + 1;
}

static volatile int over;

static void *race(void *unused)
{
	struct timespec t;

	while (!over) {
		clock_gettime(CLOCK_MONOTONIC, &t);
		even((t.tv_sec * 1000000000 + t.tv_nsec) & ~1L);
		clock_gettime(CLOCK_MONOTONIC, &t);
		odd((t.tv_sec * 1000000000 + t.tv_nsec - 1) | 1);
	}
	return 0;
}

static long ids[256];

static void *run(void *id)
{
	*(long *)id = syscall(SYS_gettid);
	pthread_barrier_wait(&said);
	hang(id == ids ? 0 : 1);
	return 0;
}

/* Says that all is as it should be, waits for a line, and lets n threads go. */
static void wait_for_line(int n)
{
	fflush(stdout);
	getchar();
	while (n--)
		if (write(hold[1], "x", 1) != 1)
			exit(1);
}

static void *release(void *unused)
{
	wait_for_line(1);
	return 0;
}

int main(int argc, char **argv)
{
	int n = argc > 2 ? atoi(argv[2]) : 0;

	if (argc < 2 || pipe(hold))
		return 2;
	if (!strcmp(argv[1], "threads") && n <= 256) {
		pthread_t t[256];

		pthread_barrier_init(&said, 0, n + 1);
		for (int i = 0; i < n; i++)
			pthread_create(&t[i], 0, run, &ids[i]);
		pthread_barrier_wait(&said);
		for (int i = 0; i < n; i++)
			printf("%ld\n", ids[i]);
		wait_for_line(n);
		for (int i = 0; i < n; i++)
			pthread_join(t[i], 0);
		printf("done\n");
		wait_for_line(0);
	} else if (!strcmp(argv[1], "nested")) {
		pthread_t t;

		/* The first thread hangs: another one reads the line. */
		printf("%ld\n", syscall(SYS_gettid));
		pthread_create(&t, 0, release, 0);
		outer(1);
		pthread_join(t, 0);
		printf("done\n");
		wait_for_line(0);
	} else if (!strcmp(argv[1], "jump")) {
		if (!setjmp(back))
			deep(2);
		printf("%ld\n", syscall(SYS_gettid));
		wait_for_line(0);
	} else if (!strcmp(argv[1], "race") && n <= 256) {
		pthread_t t[256];

		for (int i = 0; i < n; i++)
			pthread_create(&t[i], 0, race, 0);
		wait_for_line(0);
		over = 1;
		for (int i = 0; i < n; i++)
			pthread_join(t[i], 0);
	} else if (!strcmp(argv[1], "self")) {
		for (int i = 0; i < n; i++)
			outer(0);
	} else if (!strcmp(argv[1], "recurse")) {
		recurse(n);
	}
	return 0;
}
