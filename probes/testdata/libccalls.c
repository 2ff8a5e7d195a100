// Calls memcpy, strlen, pthread_cond_signal and calloc N times each, through the
// dynamic linker. With a second argument it says ready and waits for a line first.

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
	long n = atol(argv[1]);
	char c, from[32] = "as long as this is", to[32];
	pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
	size_t length = 0;
	if (argc > 2) {
		write(1, "ready\n", 6);
		while (read(0, &c, 1) == 1 && c != '\n')
			;
	}
	for (long i = 0; i < n; i++) {
		memcpy(to, from, sizeof(from));
		length += strlen(to);
		pthread_cond_signal(&cond);
		free(calloc(1, length % 64 + 1));
	}
	if (argc > 2)
		write(1, "done\n", 5);
	return 0;
}
