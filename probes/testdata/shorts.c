// Threads or processes that each call work() a few times and end, at most 50 at
// once. Says how often it was called:
//   shorts threads|processes N CALLS
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) void work(void) { __asm__ volatile("" ::: "memory"); }

static long calls;

__attribute__((noinline)) void *run(void *unused)
{
	for (long i = 0; i < calls; i++)
		work();
	return unused;
}

int main(int argc, char **argv)
{
	enum { AT_ONCE = 50 };
	long n = argc > 3 ? atol(argv[2]) : 0;
	int processes = argc > 1 && argv[1][0] == 'p';

	calls = argc > 3 ? atol(argv[3]) : 0;
	for (long i = 0; i < n; i += AT_ONCE) {
		pthread_t t[AT_ONCE];
		int k, some = n - i < AT_ONCE ? n - i : AT_ONCE;

		for (k = 0; k < some; k++) {
			if (!processes)
				pthread_create(&t[k], 0, run, 0);
			else if (fork() == 0)
				_exit(run(0) != 0);
		}
		for (k = 0; k < some; k++) {
			if (processes)
				wait(0);
			else
				pthread_join(t[k], 0);
		}
	}
	printf("%ld\n", n * calls);
	return 0;
}
