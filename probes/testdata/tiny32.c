// A 32-bit program without a library, so that it can be built where there is none:
// it calls work() and recurse(), and says how often. absolute begins with an
// instruction that is another one in 64-bit code.
static unsigned works, recursions, wrong;
unsigned value = 7;

static void say(int length, const char *text)
{
	int written;

	__asm__ volatile("int $0x80" : "=a"(written) : "0"(4), "b"(1), "c"(text), "d"(length) : "memory");
}

static void number(const char *name, int length, unsigned n)
{
	char digits[12];
	int at = 11;

	digits[at] = '\n';
	do
		digits[--at] = '0' + n % 10;
	while (n /= 10);
	say(length, name);
	say(12 - at, digits + at);
}

__attribute__((noinline)) int work(int *counter, int n)
{
	__asm__ volatile("");
	++*counter;
	return n;
}

__attribute__((noinline)) unsigned recurse(unsigned *counter, int depth)
{
	__asm__ volatile("");
	++*counter;
	return depth ? recurse(counter, depth - 1) + 1 : 0;
}

unsigned absolute(void);
__asm__(".globl absolute\n.type absolute,@function\n"
	"absolute: movl value, %ecx\nmovl %ecx, %eax\nret\n.size absolute, .-absolute\n");

void _start(void)
{
	int exited;

	for (int i = 0; i < 1000; i++) {
		work((int *)&works, i);
		recurse(&recursions, i % 70);
		wrong += absolute() != 7;
	}
	number("work ", 5, works);
	number("recurse ", 8, recursions);
	number("wrong ", 6, wrong);
	__asm__ volatile("int $0x80" : "=a"(exited) : "0"(1), "b"(0));
}
