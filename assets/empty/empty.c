// SPDX-License-Identifier: Apache-2.0
//
// Functions that do nothing: what a probe on one of them measures is the probe. There is one for
// each way in which kernels execute the instruction under a breakpoint; which is which differs
// from kernel to kernel (probes/class.go).
//
// From standard input come pairs of numbers of 64 bits: the address of a function, and how many
// times it is called. After the calls a byte goes to standard output. The end of input ends it.
// The loop has nothing but the call in it, so that a bench can use it, too.

#include "../demo/platform.h"

// Each on a cache line of its own, and so in one page.
#define FUNCTION(name, code)                                                                       \
    __asm__(".text\n.p2align 6\n.globl " #name "\n.type " #name ", %function\n" #name ":\n" code   \
            "\n.size " #name ", . - " #name "\n")

#if defined(__x86_64__)
FUNCTION(empty_push, "push %rbp\nmov %rsp, %rbp\npop %rbp\nret");
FUNCTION(empty_ret, "ret");
FUNCTION(empty_nop, "nop\nret");
FUNCTION(empty_nop5, ".byte 0x0f, 0x1f, 0x44, 0, 0\nret");
FUNCTION(empty_nop10, ".byte 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0\nret");
#elif defined(__aarch64__)
FUNCTION(empty_push, "stp x29, x30, [sp, #-16]!\nldp x29, x30, [sp], #16\nret");
FUNCTION(empty_ret, "ret");
FUNCTION(empty_nop, "nop\nret");
#endif

int run(long argc, char **argv) {
    struct {
        void (*function)(void);
        unsigned long calls;
    } asked;

    (void)argc, (void)argv;
    set_thread_name("empty");
    default_signals();
    close_from(3);
    while (call3(__NR_read, 0, &asked, sizeof asked) == sizeof asked) {
        for (; asked.calls; asked.calls--)
            asked.function();
        if (call3(__NR_write, 1, "", 1) != 1)
            return 1;
    }
    return 0;
}
