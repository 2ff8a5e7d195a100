// A library that tells its name, and a program that tells whose it got.
#define _GNU_SOURCE
#ifdef NAME
const char *who(void) { return NAME; }
#elif defined MIDDLE
const char *who(void);
const char *middle(void) { return who(); }
#else
#include <dlfcn.h>
#include <stdio.h>
const char *who(void);
int main(void)
{
	Dl_info info;
	if (dladdr((void *)who, &info))
		puts(info.dli_fname);
	return who() == 0;
}
#endif
