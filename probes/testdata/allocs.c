// Says "ready", waits for a line on stdin, makes N malloc and free calls on each of T threads
// and no other ones, says "done", and waits for the end of stdin:
//   allocs T N
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_barrier_t begin, end;
static long n;

static void *run(void *unused)
{
	void *volatile p;

	pthread_barrier_wait(&begin);
	for (long i = 0; i < n; i++) {
		p = malloc(16 + i % 64);
		free(p);
	}
	pthread_barrier_wait(&end);
	for (;;)
		pause(); // a thread that ends calls free
	return unused;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 1;
	char buffer[256], c;
	pthread_t t;

	n = argc > 2 ? atol(argv[2]) : 1000;
	pthread_barrier_init(&begin, 0, threads + 1);
	pthread_barrier_init(&end, 0, threads + 1);
	for (int i = 0; i < threads; i++)
		pthread_create(&t, 0, run, 0);
	if (write(1, "ready\n", 6) != 6)
		return 1;
	while (read(0, &c, 1) == 1 && c != '\n')
		;
	pthread_barrier_wait(&begin);
	pthread_barrier_wait(&end);
	if (write(1, "done\n", 5) != 5)
		return 1;
	while (read(0, buffer, sizeof(buffer)) > 0)
		;
	_exit(0);
}
