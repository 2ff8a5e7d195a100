// Threads and processes that end, jump or begin in the middle of calls: a calls b
// calls c, and c does it. Everybody counts its own calls, and those that came to
// their end, in memory that all processes of a scene share:
//   ends jumps N          N times longjmp out of c, then N calls to the end, timed
//   ends mutual D N       N times odd and even call each other, D calls deep
//   ends threads N        N threads end in c
//   ends killed SIGNAL N  N processes of 4 threads in c, one of which makes that signal
//   ends exec N PATH      N processes that exec in c: their first thread does
//   ends execs N PATH     another thread does, while the first one is in c
//   ends vforks N PATH    a child of vfork does, and its parent goes on
//   ends twice N          vfork in split, from which parent and child return
//   ends clones N         processes that share the memory call a N times, begun in c
//   ends alt N            a signal on another, lower stack calls handled, which every second time jumps
//   ends above N          the same on a higher one, while no function is called
//   ends across N         the same on a higher one in c, and handled returns
//   ends waits N          N threads are in c until a line comes
// PATH is run as `PATH image M`: it calls plain M times.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROBED __attribute__((noinline, noclone))
#define BARRIER __asm__ volatile("" ::: "memory")
#define ADD(what) __atomic_fetch_add(&shared->what, 1, __ATOMIC_RELAXED)

struct numbers {
	long a, b, c, a_left, b_left, c_left, plain, odd, even, split, split_left, handled, handled_left, inside;
};
static struct numbers *shared;
enum { SHARED_FD = 100, IMAGE_CALLS = 10 };

typedef void deed(void *);

PROBED void c(deed *within, void *arg)
{
	ADD(c);
	if (within)
		within(arg);
	ADD(c_left);
}

PROBED void b(deed *within, void *arg)
{
	ADD(b);
	c(within, arg);
	ADD(b_left);
}

PROBED void a(deed *within, void *arg)
{
	ADD(a);
	b(within, arg);
	ADD(a_left);
}

PROBED void plain(void) { ADD(plain); }

PROBED long even(long depth);
PROBED long odd(long depth)
{
	ADD(odd);
	long below = depth > 1 ? even(depth - 1) : 0;
	BARRIER;
	return below + 1;
}

PROBED long even(long depth)
{
	ADD(even);
	long below = depth > 1 ? odd(depth - 1) : 0;
	BARRIER;
	return below + 2;
}

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static jmp_buf back;
static sigjmp_buf signal_back;

static void jump(void *unused) { longjmp(back, 1); }

static void jumps(long n)
{
	for (volatile long i = 0; i < n; i++)
		if (!setjmp(back))
			a(jump, 0);
}

static void timed(long n)
{
	struct timespec pause = {0, 30000000}; // much longer than any call
	long long start, longest = 0;

	nanosleep(&pause, 0);
	start = now();
	for (long i = 0; i < n; i++) {
		long long begin = now(), took;

		a(0, 0);
		took = now() - begin;
		if (took > longest)
			longest = took;
	}
	printf("loop_ns %lld\nlongest_ns %lld\n", now() - start, longest);
}

static void leave(void *unused) { pthread_exit(0); }

static void *in_thread(void *within)
{
	a((deed *)within, 0);
	return 0;
}

static void stay(void *unused)
{
	ADD(inside);
	for (;;)
		pause();
}

// Waits until n threads stay in c.
static void until_inside(long n)
{
	while (__atomic_load_n(&shared->inside, __ATOMIC_ACQUIRE) < n)
		sched_yield();
	shared->inside = 0;
}

static int deadly;
static int *volatile nowhere;
static void die(void *unused)
{
	until_inside(3);
	if (deadly == SIGSEGV)
		*nowhere = 1;
	kill(getpid(), deadly);
	for (;;)
		pause();
}

static void start_threads(int n, deed *within)
{
	pthread_t t;

	for (int i = 0; i < n; i++)
		pthread_create(&t, 0, in_thread, (void *)within);
}

static void image(void *path)
{
	char calls[16];

	snprintf(calls, sizeof calls, "%d", IMAGE_CALLS);
	execl(path, path, "image", calls, (char *)0);
	_exit(1);
}

static void *exec_thread(void *path)
{
	until_inside(1);
	a(image, path);
	return 0;
}

static void vfork_image(void *path)
{
	if (vfork() == 0)
		b(image, path);
	wait(0);
}

// In a process of its own.
static void child(const char *scene, char *path)
{
	pthread_t t;

	if (!strcmp(scene, "killed")) {
		start_threads(3, stay);
		a(die, 0);
	} else if (!strcmp(scene, "exec")) {
		a(image, path);
	} else if (!strcmp(scene, "execs")) {
		pthread_create(&t, 0, exec_thread, path);
		a(stay, 0);
	} else if (!strcmp(scene, "vforks")) {
		a(vfork_image, path);
	}
	_exit(0);
}

#if defined(__x86_64__)
// vfork as the C library does it: the return address is not left to the child.
__asm__(".globl split\n.type split,@function\n"
	"split: .cfi_startproc\nmov $58, %eax\npop %rdi\nsyscall\npush %rdi\nret\n.cfi_endproc\n.size split, .-split\n");
long split(void);
#else
long split(void) { return -1; }
#endif

static PROBED void split_once(void)
{
	long pid;

	ADD(split);
	pid = split();
	ADD(split_left);
	if (pid == 0) {
		plain();
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, 0, 0);
}

static int in_clone(void *n)
{
	for (long i = 0; i < (long)n; i++)
		a(0, 0);
	return 0;
}

static void clones(void *n)
{
	static char stack[2][1 << 18];

	clone(in_clone, stack[0] + sizeof stack[0], CLONE_VM | SIGCHLD, n);
	clone(in_clone, stack[1] + sizeof stack[1], CLONE_VM | CLONE_VFORK | SIGCHLD, n);
	while (wait(0) > 0)
		;
}

PROBED void handled(int jumps)
{
	ADD(handled);
	if (jumps)
		siglongjmp(signal_back, 1);
	ADD(handled_left);
}

static volatile int handler_jumps;
static void handler(int unused) { handled(handler_jumps); }
static void interrupt(void *unused) { raise(SIGUSR1); }

static void signals(char *alternate, size_t size, long n, int inside, int jumping)
{
	stack_t other = {.ss_sp = alternate, .ss_size = size};
	struct sigaction act = {.sa_handler = handler, .sa_flags = SA_ONSTACK};

	sigaltstack(&other, 0);
	sigaction(SIGUSR1, &act, 0);
	for (volatile long i = 0; i < n; i++) {
		handler_jumps = jumping && i % 2;
		if (sigsetjmp(signal_back, 1))
			continue;
		if (inside)
			a(interrupt, 0);
		else
			interrupt(0);
	}
	for (long i = 0; i < n; i++)
		a(0, 0);
}

enum { STACK = 1 << 18 };
static long above_n;
static int above_inside;
static void *above(void *lower)
{
	signals((char *)lower + STACK, STACK, above_n, above_inside, !above_inside);
	return 0;
}

// On a thread whose stack lies below its alternate one.
static void signals_above(long n, int inside)
{
	char *lower = mmap(0, 2 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attr;
	pthread_t t;

	above_n = n;
	above_inside = inside;
	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, lower, STACK);
	pthread_create(&t, &attr, above, lower);
	pthread_join(t, 0);
}

static int line[2];
static void until_line(void *unused)
{
	char end;

	ADD(inside);
	if (read(line[0], &end, 1)) // nobody writes: the end of the pipe
		abort();
}

static void waits(long n)
{
	pthread_t t[64];

	if (pipe(line))
		abort();
	for (int i = 0; i < n && i < 64; i++)
		pthread_create(&t[i], 0, in_thread, (void *)until_line);
	until_inside(n);
	printf("inside %ld\n", n);
	fflush(stdout);
	getchar();
	close(line[1]);
	for (int i = 0; i < n && i < 64; i++)
		pthread_join(t[i], 0);
}

static void say(void)
{
#define SAY(what) printf(#what " %ld\n", shared->what)
	SAY(a), SAY(b), SAY(c), SAY(a_left), SAY(b_left), SAY(c_left), SAY(plain), SAY(odd), SAY(even);
	SAY(split), SAY(split_left), SAY(handled), SAY(handled_left);
}

static void share(void)
{
	if (fcntl(SHARED_FD, F_GETFD) < 0) {
		int fd = memfd_create("numbers", 0);

		if (ftruncate(fd, sizeof *shared) || dup2(fd, SHARED_FD) < 0)
			abort();
		close(fd);
	}
	shared = mmap(0, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, SHARED_FD, 0);
	if (shared == MAP_FAILED)
		abort();
}

int main(int argc, char **argv)
{
	const char *scene = argc > 1 ? argv[1] : "";
	long n = argc > 2 ? atol(argv[2]) : 0;
	char *path = argc > 3 ? argv[3] : argv[0];
	static char low[STACK];

	share();
	if (!strcmp(scene, "image")) {
		for (long i = 0; i < n; i++)
			plain();
		return 0;
	} else if (!strcmp(scene, "jumps")) {
		jumps(n);
		timed(n);
	} else if (!strcmp(scene, "mutual")) {
		for (long i = atol(path); i > 0; i--)
			odd(n);
	} else if (!strcmp(scene, "threads")) {
		for (long i = 0; i < n; i++) {
			pthread_t t;

			pthread_create(&t, 0, in_thread, (void *)leave);
			pthread_join(t, 0);
		}
	} else if (!strcmp(scene, "twice")) {
		for (long i = 0; i < n; i++)
			split_once();
	} else if (!strcmp(scene, "clones")) {
		a(clones, (void *)n);
	} else if (!strcmp(scene, "alt")) {
		signals(low, sizeof low, n, 1, 1);
	} else if (!strcmp(scene, "above")) {
		signals_above(n, 0);
	} else if (!strcmp(scene, "across")) {
		signals_above(n, 1);
	} else if (!strcmp(scene, "waits")) {
		waits(n);
	} else {
		if (!strcmp(scene, "killed")) {
			deadly = n;
			n = atol(path);
		}
		for (long i = 0; i < n; i++) {
			int pid = fork();

			if (pid == 0)
				child(scene, path);
			waitpid(pid, 0, 0);
		}
	}
	say();
	return 0;
}
