// SPDX-License-Identifier: Apache-2.0
//
// What demo.c needs of Linux, without a libc: system calls, threads, and the way in.

#include <asm/unistd.h>
#include <linux/futex.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/signal.h>
#include <linux/time.h>
#include <linux/time_types.h>

int run(long argc, char **argv);

#if defined(__x86_64__)

static inline long call(long n, long a, long b, long c, long d, long e) {
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return result;
}

__asm__(".globl _start\n.type _start, @function\n_start:\n"
        "xor %ebp, %ebp\nmov (%rsp), %rdi\nlea 8(%rsp), %rsi\nand $-16, %rsp\n"
        "call begin\n.size _start, . - _start\n");

// start_thread runs body(argument) on a new thread; body must not return.
// The new thread comes back from the system call on an empty stack, so all it needs is in registers.
static inline long start_thread_raw(unsigned long flags, void *body, void *argument, char *stack) {
    register void *r12 __asm__("r12") = body;
    register void *r13 __asm__("r13") = argument;
    register long r10 __asm__("r10") = 0;
    register long r8 __asm__("r8") = 0;
    long result;
    __asm__ volatile("syscall\n\ttest %%rax, %%rax\n\tjnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\tmov %%r13, %%rdi\n\tcall *%%r12\n\thlt\n1:"
                     : "=a"(result)
                     : "a"(__NR_clone), "D"(flags), "S"(stack), "d"(0), "r"(r10), "r"(r8),
                       "r"(r12), "r"(r13)
                     : "rcx", "r11", "memory");
    return result;
}

#elif defined(__aarch64__)

static inline long call(long n, long a, long b, long c, long d, long e) {
    register long x8 __asm__("x8") = n;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    __asm__ volatile("svc #0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
                     : "memory");
    return x0;
}

__asm__(".globl _start\n.type _start, %function\n_start:\n"
        "mov x29, #0\nmov x30, #0\nldr x0, [sp]\nadd x1, sp, #8\n"
        "bl begin\n.size _start, . - _start\n");

static inline long start_thread_raw(unsigned long flags, void *body, void *argument, char *stack) {
    register long x8 __asm__("x8") = __NR_clone;
    register unsigned long x0 __asm__("x0") = flags;
    register char *x1 __asm__("x1") = stack;
    register long x2 __asm__("x2") = 0;
    register long x3 __asm__("x3") = 0;
    register long x4 __asm__("x4") = 0;
    register void *x20 __asm__("x20") = body;
    register void *x21 __asm__("x21") = argument;
    __asm__ volatile("svc #0\n\tcbnz x0, 1f\n\t"
                     "mov x29, #0\n\tmov x0, x21\n\tblr x20\n\tbrk #0\n1:"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x20), "r"(x21)
                     : "x30", "memory");
    return x0;
}

#else
#error "demo: this architecture has no system calls here yet; add them above"
#endif

#define call0(n) call(n, 0, 0, 0, 0, 0)
#define call1(n, a) call(n, (long)(a), 0, 0, 0, 0)
#define call2(n, a, b) call(n, (long)(a), (long)(b), 0, 0, 0)
#define call3(n, a, b, c) call(n, (long)(a), (long)(b), (long)(c), 0, 0)
#define call4(n, a, b, c, d) call(n, (long)(a), (long)(b), (long)(c), (long)(d), 0)

struct worker;

static inline long start_thread(void (*body)(struct worker *), struct worker *w, char *stack) {
    return start_thread_raw(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                                CLONE_SYSVSEM,
                            (void *)body, w, stack);
}

static inline void exit_thread(void) {
    for (;;)
        call1(__NR_exit, 0);
}

__attribute__((used)) void begin(long argc, char **argv) {
    for (int status = run(argc, argv);;)
        call1(__NR_exit_group, status);
}

static inline int parent_pid(void) { return call0(__NR_getppid); }
static inline void set_thread_name(const char *name) { call2(__NR_prctl, PR_SET_NAME, name); }
static inline void die_with_parent(void) { call2(__NR_prctl, PR_SET_PDEATHSIG, SIGKILL); }

// default_signals undoes what a parent may have left blocked or ignored: SIGTERM must end us.
static inline void default_signals(void) {
    unsigned long none = 0;
    struct {
        unsigned long handler, flags, restorer, mask;
    } standard = {0};
    call4(__NR_rt_sigprocmask, SIG_SETMASK, &none, 0, sizeof none);
    call4(__NR_rt_sigaction, SIGTERM, &standard, 0, sizeof none);
}

static inline void close_from(unsigned fd) { call3(__NR_close_range, fd, ~0u, 0); }

static inline void futex_wait(unsigned *word, unsigned value) {
    call4(__NR_futex, word, FUTEX_WAIT_PRIVATE, value, 0);
}

static inline void futex_wake(unsigned *word, unsigned threads) {
    call3(__NR_futex, word, FUTEX_WAKE_PRIVATE, threads);
}

#define MAX_CPUS 8192
struct cpus {
    unsigned long bits[MAX_CPUS / 64];
};

// get_cpus and set_cpus are about the CPUs that a thread may run on; tid 0 is the calling one.
static inline long get_cpus(long tid, struct cpus *set) {
    for (unsigned i = 0; i < MAX_CPUS / 64; i++)
        set->bits[i] = 0;
    return call3(__NR_sched_getaffinity, tid, sizeof *set, set);
}

static inline void set_cpus(long tid, const struct cpus *set) {
    call3(__NR_sched_setaffinity, tid, sizeof *set, set);
}

// only_cpu makes set this CPU alone, and tells whether it is one of all.
static inline int only_cpu(const struct cpus *all, unsigned cpu, struct cpus *set) {
    unsigned long bit = 1ul << cpu % 64;
    for (unsigned i = 0; i < MAX_CPUS / 64; i++)
        set->bits[i] = i == cpu / 64 ? bit : 0;
    return (all->bits[cpu / 64] & bit) != 0;
}

static inline unsigned long now(void) {
    struct __kernel_timespec t;
    call2(__NR_clock_gettime, CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ul + t.tv_nsec;
}

static inline void sleep_until(unsigned long ns) {
    struct __kernel_timespec t = {ns / 1000000000ul, ns % 1000000000ul};
    while (call4(__NR_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0) == -4) // EINTR
        ;
}

static inline void sleep_for(unsigned long ns) { sleep_until(now() + ns); }

static inline void write_all(int fd, const char *bytes, long length) {
    while (length > 0) {
        long n = call3(__NR_write, fd, bytes, length);
        if (n <= 0)
            return;
        bytes += n;
        length -= n;
    }
}

// read_some waits up to ms milliseconds for input and returns how much it read: 0 at the end of
// fd, -1 for nothing yet.
static inline long read_some(int fd, char *bytes, unsigned long length, unsigned long ms) {
    struct pollfd p = {fd, POLLIN, 0};
    struct __kernel_timespec t = {ms / 1000, ms % 1000 * 1000000};
    if (call(__NR_ppoll, (long)&p, 1, (long)&t, 0, 8) <= 0)
        return -1;
    long n = call3(__NR_read, fd, bytes, length);
    return n > 0 ? n : 0;
}
