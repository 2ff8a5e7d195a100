// Many of everything, each counted by what it calls:
//   crowd threads N       N threads, 50 at a time, that call brief once and end
//   crowd processes N     N processes that exec this program and call brief once
//   crowd hot T N         T threads that go N times through h0 … h199, each of which
//                         has 9 of the others between it and the next tenth one
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROBED __attribute__((noinline, noclone))
#define BARRIER __asm__ volatile("" ::: "memory")

PROBED void brief(void) { BARRIER; }

static void down(int n);
#define H(n) \
	PROBED void h##n(void) { down(n); BARRIER; }
#define TEN(X, d) X(d##0) X(d##1) X(d##2) X(d##3) X(d##4) X(d##5) X(d##6) X(d##7) X(d##8) X(d##9)
#define HUNDRED(X, c) TEN(X, c##1) TEN(X, c##2) TEN(X, c##3) TEN(X, c##4) TEN(X, c##5) TEN(X, c##6) TEN(X, c##7) TEN(X, c##8) TEN(X, c##9)
#define ALL(X) TEN(X, ) HUNDRED(X, ) TEN(X, 10) HUNDRED(X, 1)
ALL(H)
#define NAME(n) h##n,
static void (*const hot[])(void) = {ALL(NAME)};

static __attribute__((noinline)) void down(int n)
{
	if (n % 10 < 9)
		hot[n + 1]();
	BARRIER;
}

static long each;
static void *path(void *unused)
{
	for (long i = 0; i < each; i++)
		for (int n = 0; n < 200; n += 10)
			hot[n]();
	return unused;
}

static void *once(void *unused)
{
	brief();
	return unused;
}

static void threads(long n, void *(*run)(void *), int at_once)
{
	pthread_t t[64];

	for (long i = 0; i < n;) {
		int k = 0;

		for (; k < at_once && i < n; k++, i++)
			pthread_create(&t[k], 0, run, 0);
		while (k > 0)
			pthread_join(t[--k], 0);
	}
}

int main(int argc, char **argv)
{
	long n = argc > 2 ? atol(argv[2]) : 0;

	if (argc == 1) {
		brief();
		return 0;
	}
	if (!strcmp(argv[1], "threads")) {
		threads(n, once, 50);
	} else if (!strcmp(argv[1], "processes")) {
		for (long i = 0; i < n; i++) {
			if (fork() == 0) {
				execl(argv[0], argv[0], (char *)0);
				_exit(1);
			}
			if (i % 8 == 7)
				while (wait(0) > 0)
					;
		}
		while (wait(0) > 0)
			;
	} else {
		each = argc > 3 ? atol(argv[3]) : 1;
		threads(n, path, n);
		n *= each;
	}
	printf("%ld\n", n);
	return 0;
}
