// The ways in which a call ends, or does not. Each scene prints what it knows
// to be true, as "name value" lines:
//   scenes recurse DEPTH N | mutual DEPTH N | jump N | exit N | exec N | thread-exec N | kill N | crowd N | fork N |
//          tail N | sleep
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BARRIER __asm__ volatile("" ::: "memory")
#define PROBED __attribute__((noinline, noclone))

PROBED long recurse(long depth)
{
	long below = depth > 1 ? recurse(depth - 1) : 0;

	BARRIER;
	return below + 1;
}

PROBED long odd(long depth);

PROBED long even(long depth)
{
	long below = depth > 1 ? odd(depth - 1) : 0;

	BARRIER;
	return below + 1;
}

PROBED long odd(long depth)
{
	long below = depth > 1 ? even(depth - 1) : 0;

	BARRIER;
	return below + 1;
}

static jmp_buf back;

PROBED void inner(int jump)
{
	if (jump)
		longjmp(back, 1);
	BARRIER;
}

PROBED void outer(int jump)
{
	inner(jump);
	BARRIER;
}

// Every second call never returns; the next one begins at the same stack
// pointer, or at another one.
PROBED void jump_scene(long n)
{
	for (volatile long i = 0; i < n; i++) {
		if (!setjmp(back))
			outer(i % 2);
		if (i % 3 == 0)
			inner(0);
	}
}

PROBED void *leaves(void *how)
{
	if (how)
		pthread_exit(how);
	BARRIER;
	return 0;
}

PROBED void becomes(char *self, char *n)
{
	execl(self, self, "calls", n, (char *)0);
}

// The whole program becomes another one, by a thread that is not its first.
PROBED void *thread_becomes(void *n)
{
	becomes("/proc/self/exe", n);
	return 0;
}

static pthread_barrier_t all_in;

// Returns once everybody is in.
PROBED void *waits(void *unused)
{
	pthread_barrier_wait(&all_in);
	BARRIER;
	return unused;
}

PROBED void *hangs(void *unused)
{
	pthread_barrier_wait(&all_in);
	pause();
	BARRIER;
	return unused;
}

// A process that is killed while it and two of its threads are in a call.
PROBED void dies(void)
{
	pthread_t t;

	pthread_barrier_init(&all_in, 0, 3);
	for (int i = 0; i < 2; i++)
		pthread_create(&t, 0, hangs, 0);
	pthread_barrier_wait(&all_in);
	raise(SIGKILL);
	BARRIER;
}

PROBED int forks(void)
{
	int pid = fork();

	BARRIER;
	return pid;
}

#if defined(__x86_64__)
// first ends by a jump to second, as compilers end tail calls.
__asm__(".globl first,second\n.type first,@function\n.type second,@function\n"
	"first: .cfi_startproc\nnop\njmp second\n.cfi_endproc\n.size first, .-first\n"
	"second: .cfi_startproc\nnop\nret\n.cfi_endproc\n.size second, .-second\n");
#elif defined(__aarch64__)
__asm__(".globl first,second\n.type first,%function\n.type second,%function\n"
	"first: .cfi_startproc\nnop\nb second\n.cfi_endproc\n.size first, .-first\n"
	"second: .cfi_startproc\nnop\nret\n.cfi_endproc\n.size second, .-second\n");
#endif
void first(void);
void second(void);

static void say(const char *name, long value) { printf("%s %ld\n", name, value); }

int main(int argc, char **argv)
{
	const char *scene = argc > 1 ? argv[1] : "";
	long n = argc > 2 ? atol(argv[2]) : 0;

	if (!strcmp(scene, "recurse")) {
		long times = argc > 3 ? atol(argv[3]) : 1, made = 0;

		for (long i = 0; i < times; i++)
			made += recurse(n);
		say("recurse", made);
	} else if (!strcmp(scene, "mutual")) {
		long times = argc > 3 ? atol(argv[3]) : 1, made = 0;

		for (long i = 0; i < times; i++)
			made += even(n);
		say("mutual", made);
	} else if (!strcmp(scene, "jump")) {
		jump_scene(n);
		say("outer", n);
		say("inner", n + (n + 2) / 3);
		say("jumped", n / 2);
	} else if (!strcmp(scene, "exit")) {
		for (long i = 0; i < n; i++) {
			pthread_t t;

			pthread_create(&t, 0, leaves, i % 2 ? "x" : 0);
			pthread_join(t, 0);
		}
		say("leaves", n);
	} else if (!strcmp(scene, "exec")) {
		becomes("/proc/self/exe", argv[2]);
	} else if (!strcmp(scene, "thread-exec")) {
		pthread_t t;

		pthread_barrier_init(&all_in, 0, 2);
		pthread_create(&t, 0, thread_becomes, argv[2]);
		waits(0); // for what never comes: another thread's exec ends this one
	} else if (!strcmp(scene, "kill")) {
		for (long i = 0; i < n; i++) {
			int pid = fork();

			if (pid == 0)
				dies();
			waitpid(pid, 0, 0);
		}
		say("dies", n);
	} else if (!strcmp(scene, "crowd")) {
		pthread_t t[256];

		pthread_barrier_init(&all_in, 0, n);
		for (long i = 0; i < n; i++)
			pthread_create(&t[i], 0, waits, 0);
		for (long i = 0; i < n; i++)
			pthread_join(t[i], 0);
		say("waits", n);
	} else if (!strcmp(scene, "calls")) {
		for (long i = 0; i < n; i++)
			first();
		say("first", n);
	} else if (!strcmp(scene, "fork")) {
		for (long i = 0; i < n; i++) {
			int pid = forks();

			if (pid == 0)
				_exit(0);
			waitpid(pid, 0, 0);
		}
		say("forks", n);
	} else if (!strcmp(scene, "tail")) {
		for (long i = 0; i < n; i++)
			first();
		say("first", n);
		say("second", n);
	} else if (!strcmp(scene, "sleep")) {
		pause();
	}
	return 0;
}
