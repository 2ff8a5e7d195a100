// In the manner of the kernel's uprobe-stress: a hundred functions that call each
// other, on threads that recurse deeper than the kernel keeps returns (72 in the
// original, which probes all of them), while others
// map the program again and again, and fork and exec it. Every call is counted in
// memory that all of these share, and said at the end:
//   stress SECONDS
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FUNCTIONS = 100, DEEPEST = 200, SHARED_FD = 100 };

struct numbers {
	long calls[FUNCTIONS];
	long maps, forks, failed;
};
static struct numbers *shared;
static __thread unsigned seed;

static void any(int depth);

#define F(n)                                                            \
	__attribute__((noinline, noclone)) void f##n(int depth)         \
	{                                                               \
		__atomic_fetch_add(&shared->calls[n], 1, __ATOMIC_RELAXED); \
		any(depth - 1);                                         \
		__asm__ volatile("" ::: "memory");                      \
	}
#define TEN(X, d) X(d##0) X(d##1) X(d##2) X(d##3) X(d##4) X(d##5) X(d##6) X(d##7) X(d##8) X(d##9)
#define HUNDRED(X) TEN(X, ) TEN(X, 1) TEN(X, 2) TEN(X, 3) TEN(X, 4) TEN(X, 5) TEN(X, 6) TEN(X, 7) TEN(X, 8) TEN(X, 9)
HUNDRED(F)

#define NAME(n) f##n,
static void (*const functions[FUNCTIONS])(int) = {HUNDRED(NAME)};

static __attribute__((noinline)) void any(int depth)
{
	if (depth > 0)
		functions[rand_r(&seed) % FUNCTIONS](depth);
	__asm__ volatile("" ::: "memory");
}

static volatile int ended;

static void *recurse(void *number)
{
	seed = (long)number;
	while (!ended)
		any(rand_r(&seed) % DEEPEST);
	return 0;
}

static void *map(void *unused)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	struct stat st;

	fstat(fd, &st);
	while (!ended) {
		void *code = mmap(0, st.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

		if (code != MAP_FAILED)
			munmap(code, st.st_size);
		__atomic_fetch_add(&shared->maps, 1, __ATOMIC_RELAXED);
		usleep(200);
	}
	return unused;
}

static void *start(void *self)
{
	while (!ended) {
		int status = 1, pid = fork();

		if (pid == 0) {
			execl(self, self, "--child", (char *)0);
			_exit(1);
		}
		waitpid(pid, &status, 0);
		if (status)
			__atomic_fetch_add(&shared->failed, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&shared->forks, 1, __ATOMIC_RELAXED);
	}
	return 0;
}

int main(int argc, char **argv)
{
	pthread_t t[8];
	int n = 0;

	if (argc < 2)
		return 2;
	if (strcmp(argv[1], "--child")) {
		int fd = memfd_create("numbers", 0);

		if (ftruncate(fd, sizeof *shared) || dup2(fd, SHARED_FD) < 0)
			abort();
	}
	shared = mmap(0, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, SHARED_FD, 0);
	if (shared == MAP_FAILED)
		abort();
	if (!strcmp(argv[1], "--child")) {
		seed = getpid();
		for (int i = 0; i < 5; i++)
			any(rand_r(&seed) % DEEPEST);
		return 0;
	}
	for (long i = 1; i <= 4; i++)
		pthread_create(&t[n++], 0, recurse, (void *)i);
	pthread_create(&t[n++], 0, map, 0);
	pthread_create(&t[n++], 0, map, 0);
	pthread_create(&t[n++], 0, start, argv[0]);
	sleep(atoi(argv[1]));
	ended = 1;
	while (n > 0)
		pthread_join(t[--n], 0);
	for (int i = 0; i < FUNCTIONS; i++)
		printf("f%d %ld\n", i, shared->calls[i]);
	printf("maps %ld\nforks %ld\nfailed %ld\n", shared->maps, shared->forks, shared->failed);
	return 0;
}
