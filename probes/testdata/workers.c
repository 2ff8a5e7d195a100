// A server with workers: starts W of them, says "ready", and at each line of stdin lets
// every worker, itself, and a process that it starts only then make N calls of work. It
// says "done" after that, and ends with stdin.
//   workers W N
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) void work(void) { __asm__ volatile("nop; nop"); }

static long n;

static void calls(void)
{
	for (long i = 0; i < n; i++)
		work();
}

int main(int argc, char **argv)
{
	int workers = atoi(argv[1]), go[2], done[2];
	char c;

	n = atol(argv[2]);
	if (pipe(go) || pipe(done))
		return 1;
	for (int i = 0; i < workers; i++)
		if (!fork()) {
			close(go[1]);
			while (read(go[0], &c, 1) == 1) {
				calls();
				if (write(done[1], &c, 1) != 1)
					_exit(1);
			}
			_exit(0);
		}
	puts("ready");
	fflush(stdout);
	while (read(0, &c, 1) == 1) {
		for (int i = 0; i < workers; i++) {
			// One at a time: each of them has its turn.
			if (write(go[1], &c, 1) != 1 || read(done[0], &c, 1) != 1)
				return 1;
		}
		calls();
		if (!fork()) {
			calls();
			_exit(0);
		}
		wait(0);
		puts("done");
		fflush(stdout);
	}
	close(go[1]);
	while (wait(0) > 0)
		;
	return 0;
}
