// A library with two versions of one function.
int old_api(void) { return 1; }
int new_api(void) { return 2; }
int steady(void) { return 3; }

__asm__(".symver old_api, api@V1");
__asm__(".symver new_api, api@@V2");
