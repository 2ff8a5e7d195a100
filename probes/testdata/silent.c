// Maps a library in a way in which a probe of its function may have no hits, and says
// ready; at a line of input it does what is left to do, and says done:
//   silent WAY LIBRARY FUNCTION
// With -DTWIN it has a function of its own that is called as the library's.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *way, *path, *name;
static void (*function)(void);
static size_t size;
static void *mapped;

static int is(const char *other) { return !strcmp(way, other); }

static void load(const char *from)
{
	void *library = dlopen(from, RTLD_NOW);

	if (!library || !(function = dlsym(library, name))) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
}

static void map(int protection, int flags)
{
	struct stat st;
	int fd = open(path, O_RDONLY);

	if (fd < 0 || fstat(fd, &st))
		exit(1);
	size = st.st_size;
	mapped = mmap(0, size, protection, flags, fd, 0);
	if (mapped == MAP_FAILED)
		exit(1);
}

static void copy_file(void)
{
	char copy[64];
	struct stat st;
	int from = open(path, O_RDONLY), to = memfd_create(strrchr(path, '/') + 1, 0);

	if (from < 0 || to < 0 || fstat(from, &st) || sendfile(to, from, 0, st.st_size) != st.st_size)
		exit(1);
	snprintf(copy, sizeof copy, "/proc/self/fd/%d", to);
	load(copy);
}

static void *page(void) { return (void *)((unsigned long)function & ~4095UL); }

static void copy_page(void)
{
	static char kept[4096];

	memcpy(kept, page(), sizeof kept);
	if (mmap(page(), 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		exit(1);
	memcpy(page(), kept, sizeof kept);
	mprotect(page(), 4096, PROT_READ | PROT_EXEC);
}

static void patch(void)
{
	mprotect(page(), 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
	memset((void *)function, 0x90, 1); // nop
	mprotect(page(), 4096, PROT_READ | PROT_EXEC);
}

#ifdef TWIN
void provided(void) {}
#endif

int main(int argc, char **argv)
{
	char line[16];

	if (argc < 4)
		return 2;
	way = argv[1], path = argv[2], name = argv[3];
	if (is("shared"))
		map(PROT_READ | PROT_EXEC, MAP_SHARED);
	else if (is("writable"))
		map(PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE);
	else if (is("once"))
		map(PROT_READ | PROT_WRITE, MAP_PRIVATE);
	else if (is("memfd"))
		copy_file();
	else if (!is("later"))
		load(path);
	if (is("copied"))
		copy_page();
	if (is("patched"))
		patch();
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		if (is("once"))
			mprotect(mapped, size, PROT_READ | PROT_EXEC);
		else if (is("later"))
			load(path);
		else if (is("patch"))
			patch();
		else if (is("call"))
			function();
		puts("done");
		fflush(stdout);
	}
	return 0;
}
