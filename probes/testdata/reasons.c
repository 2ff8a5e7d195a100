// Calls that are slow for known reasons and measure themselves. act() is called with
// its number, its reason and an amount, and returns 3 * number + 1. After each a line:
// number, reason, and of its own: latency, time on CPU, time waiting for one, and by how
// much these can be wrong, in ns, voluntary switches, minor and major faults.
//   reasons FILE N     N rounds of every reason; FILE is mapped for faults from disk.
//                      In the first round there are other faults, too, of what is new.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define PROBED __attribute__((noinline, noclone))
#define MS 1000000L

enum { SLEEP, LOCK, WORK, BUSY, MINOR, MAJOR, CALLEE, SLEEP_WORK, REASONS };
static const char *const names[] = {"sleep", "lock", "work", "busy", "minor", "major", "callee", "sleep+work"};

struct moment {
	long now, cpu, waited, took;
	struct rusage use;
};

static struct moment begun, awake, ended;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t held;
static volatile char *disk;
static long disk_bytes;
static int schedstat;
static volatile int stop;

static long ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000 * MS + t.tv_nsec;
}

static long waited(void)
{
	char text[128] = "";
	long ran, waits = 0;

	if (schedstat >= 0 && pread(schedstat, text, sizeof(text) - 1, 0) > 0)
		sscanf(text, "%ld %ld", &ran, &waits);
	return waits;
}

// One moment: nobody else had the CPU while it was looked at. Asking for the time on
// CPU has the kernel bring it up to date: it is asked at the beginning and after what
// was waited for, and not at the end.
static void look(struct moment *m, int cpu)
{
	do {
		m->waited = waited();
		m->took = ns(CLOCK_MONOTONIC);
		m->cpu = cpu ? ns(CLOCK_THREAD_CPUTIME_ID) : 0;
		m->now = ns(CLOCK_MONOTONIC);
		m->took = m->now - m->took;
	} while (waited() != m->waited);
}

static void spin(long time)
{
	for (long end = ns(CLOCK_MONOTONIC) + time; ns(CLOCK_MONOTONIC) < end;)
		;
}

static void rest(long time)
{
	struct timespec t = {0, time};

	nanosleep(&t, 0);
}

PROBED long callee(long time)
{
	rest(time);
	__asm__ volatile("" ::: "memory");
	return time;
}

static void *hold(void *time)
{
	pthread_mutex_lock(&lock);
	pthread_barrier_wait(&held);
	rest((long)time);
	pthread_mutex_unlock(&lock);
	return 0;
}

static void *compete(void *unused)
{
	while (!stop)
		;
	return unused;
}

static void touch(volatile char *p, long bytes)
{
	for (long i = 0; i < bytes; i += 4096)
		p[i] = p[i];
}

PROBED long act(long number, long reason, long amount)
{
	getrusage(RUSAGE_THREAD, &begun.use);
	look(&begun, 1);
	awake = begun;
	switch (reason) {
	case SLEEP:
	case SLEEP_WORK:
		rest(amount);
		break;
	case LOCK:
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
		break;
	case CALLEE:
		callee(amount);
		break;
	case MAJOR:
		for (long i = 0; i < disk_bytes; i += 4096)
			(void)disk[i];
		break;
	case MINOR: {
		char *fresh = mmap(0, amount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		madvise(fresh, amount, MADV_NOHUGEPAGE);
		touch(fresh, amount);
		munmap(fresh, amount);
	}
	}
	look(&awake, 1);
	if (reason == SLEEP_WORK)
		spin(3 * MS);
	if (reason == WORK || reason == BUSY)
		spin(amount);
	look(&ended, 0);
	getrusage(RUSAGE_THREAD, &ended.use);
	__asm__ volatile("" ::: "memory");
	return 3 * number + 1;
}

static void pin(int cpu)
{
	cpu_set_t set;

	sched_getaffinity(0, sizeof(set), &set);
	if (cpu < 0) {
		memset(&set, 0xff, sizeof(set));
	} else {
		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
	}
	sched_setaffinity(0, sizeof(set), &set);
}

static void run(long number, long reason)
{
	long amount = reason == MINOR ? 16L << 20 : reason == BUSY ? 40 * MS : 8 * MS;
	pthread_t t[2];
	int others = 0;

	if (reason == BUSY) {
		pin(sched_getcpu());
		stop = 0;
		for (; others < 2; others++)
			pthread_create(&t[others], 0, compete, 0);
		sched_yield();
	}
	if (reason == LOCK) {
		pthread_create(&t[others++], 0, hold, (void *)amount);
		pthread_barrier_wait(&held);
	}
	if (reason == MAJOR)
		madvise((void *)disk, disk_bytes, MADV_PAGEOUT);
	spin(number % 4 * MS); // how long ago the kernel brought the time on CPU up to date
	long result = act(number, reason, amount);

	stop = 1;
	while (others)
		pthread_join(t[--others], 0);
	pin(-1);
	if (result != 3 * number + 1)
		exit(1);
	printf("%ld %s %ld %ld %ld %ld %ld %ld %ld\n", number, names[reason], ended.now - begun.now,
	       awake.cpu - begun.cpu + ended.now - awake.now - (ended.waited - awake.waited), ended.waited - begun.waited, begun.took + awake.took,
	       ended.use.ru_nvcsw - begun.use.ru_nvcsw, ended.use.ru_minflt - begun.use.ru_minflt, ended.use.ru_majflt - begun.use.ru_majflt);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	int file = open(argv[1], O_RDWR | O_CREAT, 0600);
	char page[4096] = "x";

	for (int i = 0; i < 64; i++, disk_bytes += sizeof(page))
		if (write(file, page, sizeof(page)) != sizeof(page))
			return 1;
	fsync(file);
	disk = mmap(0, disk_bytes, PROT_READ, MAP_SHARED, file, 0);
	madvise((void *)disk, disk_bytes, MADV_RANDOM); // no page is read ahead
	pthread_barrier_init(&held, 0, 2);
	schedstat = open("/proc/thread-self/schedstat", O_RDONLY);
	long number = 0;

	for (long round = 0; round < atol(argv[2]); round++)
		for (long reason = 0; reason < REASONS; reason++)
			run(number++, reason);
	return 0;
}
