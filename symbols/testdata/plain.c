// Functions of every make that a C compiler and an assembler leave in a symbol
// table, and things that are no functions.

__attribute__((noinline)) int work(int n) { return n * 3; }
int work_alias(int n) __attribute__((alias("work")));
int _work_inner(int n) __attribute__((alias("work")));

__attribute__((noinline, weak)) int weak_one(int n) { return n * 5; }
__attribute__((noinline, used)) static int only_here(int n) { return n * 7; }

// chosen is an IFUNC: its address is that of its resolver.
static int (*pick(void))(int) { return work; }
int chosen(int n) __attribute__((ifunc("pick")));

// Written in assembler: bare has neither type nor size, sizeless no size. The
// bytes are never run; a test looks for them at the file offset. posing calls
// itself a function and is data.
__asm__(".text\n"
        ".balign 16\n"
        ".globl bare\n"
        "bare: .quad 0x1122334455667788\n"
        ".globl sizeless\n"
        ".type sizeless, %function\n"
        "sizeless: .quad 0x99aabbccddeeff00\n"
        "local_label: .quad 0\n"
        ".data\n"
        ".globl in_data\n"
        "in_data: .quad 0\n"
        ".globl posing\n"
        ".type posing, %function\n"
        "posing: .quad 0\n"
        ".text\n");

int number = 5;

int main(int argc, char **argv) {
	(void)argv;
	return work(argc) + weak_one(argc) + only_here(argc) + chosen(argc) - 18 * argc;
}
