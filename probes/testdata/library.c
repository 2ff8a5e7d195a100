// A library whose function somebody counts.
void provided(void) { __asm__ volatile("" ::: "memory"); }
