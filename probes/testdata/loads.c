// Loads libraries, a path with a + before it into a namespace of its own, and at each
// line of input calls FUNCTION() N times of each:
//   loads N FUNCTION PATH...
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	void (*function[16])(void);
	long n = atol(argv[1]), called = 0;
	int loaded = 0;
	char line[16];

	for (int i = 3; i < argc; i++) {
		void *library = argv[i][0] == '+' ? dlmopen(LM_ID_NEWLM, argv[i] + 1, RTLD_NOW) : dlopen(argv[i], RTLD_NOW);

		if (!library || !(function[loaded++] = dlsym(library, argv[2]))) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
	}
	puts("ready 0");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		for (int i = 0; i < loaded; i++)
			for (long k = 0; k < n; k++, called++)
				function[i]();
		printf("called %ld\n", called);
		fflush(stdout);
	}
	return 0;
}
