// SPDX-License-Identifier: Apache-2.0
//
// demo pretends to be a small server: a workload to look at and to measure with.
//
//   demo                 four workers serve paced requests until a signal, or the end of the parent
//   demo --until-eof     and also until standard input is closed; started by a program, which sees
//                        that all workers run when every other inherited descriptor is closed.
//                        A digit on standard input changes the scene, see below
//   demo --calls N       serve N requests without pacing or waiting, print "name calls" a function, exit
//
// It never prints anything else. All choices come from seeded generators and from a schedule of
// its own, never from the clock, so that --calls N makes the same calls in every run.
//
// It needs no libc. The file is therefore small, does not change with the libc of the day, and
// its symbol table holds the functions below and nothing else.
//
// A probed function begins with `push %rbp` (arm64: `stp x29, x30`), see the flags in `build`.

#include "platform.h"

#define FUNCTIONS(X)                                                                               \
    X(handle_request) X(parse_request) X(parse_header) X(hash_key) X(lookup_key) X(lock_shard)     \
    X(unlock_shard) X(update_shard) X(read_page) X(render_tree) X(compress_body) X(alloc_buffer)   \
    X(free_buffer) X(send_reply) X(write_log) X(wait_disk) X(evict_pages) X(collect_garbage)

#define NUMBER(name) CALLS_##name,
#define NAME(name) #name,
enum { FUNCTIONS(NUMBER) FUNCTION_COUNT };
static const char *const names[] = {FUNCTIONS(NAME)};

static unsigned long calls[FUNCTION_COUNT];

// noipa keeps gcc from inlining, cloning or dropping calls on what it learns about a body.
#define PROBED __attribute__((noinline, noipa, used))

// CALL counts. It also uses the frame, because gcc would otherwise leave it out of a leaf on x86.
#define CALL(name)                                                                                 \
    do {                                                                                           \
        __asm__ volatile("" ::"r"(__builtin_frame_address(0)));                                    \
        __atomic_fetch_add(&calls[CALLS_##name], 1, __ATOMIC_RELAXED);                             \
    } while (0)

enum {
    WORKERS = 4,
    SHARDS = 4,
    STACK_BYTES = 64 * 1024,
};

#define US 1000ul
#define MS 1000000ul
#define SECOND 1000000000ul

// At the middle of its wave every worker serves 45 requests a second.
#define PERIOD (22 * MS)

struct worker {
    unsigned long random;   // state of the generator
    unsigned long scratch;  // where work leaves its result
    unsigned long time;     // scheduled time of this request since the start, in ns
    unsigned long requests; // still to serve; used with --calls only
    unsigned number;
    long tid;
    char stack[STACK_BYTES] __attribute__((aligned(16)));
};

static struct worker workers[WORKERS];
static unsigned shards[SHARDS]; // 0 free, 1 held, 2 held and waited for
static unsigned running = WORKERS;
static int paced = 1;

// The weather that the server has to live with. It changes while paced requests are served, by a
// digit on standard input; assets.DemoScenes says what of it is to be seen.
enum scene { CALM, LOCK_STORM, SLOW_DISK, CPU_HOG, HANG, SCENES };
static unsigned scene = CALM;

static inline unsigned scene_now(void) { return __atomic_load_n(&scene, __ATOMIC_RELAXED); }
static inline int scene_is(enum scene s) { return scene_now() == s; }
static inline void wait_while(enum scene s) {
    while (scene_is(s))
        futex_wait(&scene, s);
}

// --- chance and time --------------------------------------------------------------------------

static inline unsigned long below(struct worker *w, unsigned long n) {
    unsigned long x = w->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    w->random = x;
    return (x >> 11) % n;
}

static inline unsigned long between(struct worker *w, unsigned long low, unsigned long high) {
    return low + below(w, high - low + 1);
}

static inline int one_in(struct worker *w, unsigned long n) { return below(w, n) == 0; }

// hump draws from a bell over [middle/2, middle*3/2]: the sum of three uniform draws.
static inline unsigned long hump(struct worker *w, unsigned long middle) {
    unsigned long third = middle / 3 + 1;
    return middle / 2 + below(w, third) + below(w, third) + below(w, third);
}

// wave is a smooth wave of time between 0 and 1000, made of two parabolas.
static inline unsigned long wave(unsigned long time, unsigned long period) {
    unsigned long x = (time % period) / (period / 2048), half = x & 1023;
    unsigned long height = half * (1024 - half) * 500 / (512 * 512);
    return x < 1024 ? 500 + height : 500 - height;
}

// work computes for about ns nanoseconds: a round is a dependent multiplication and addition.
static inline void work(struct worker *w, unsigned long ns) {
    unsigned long x = w->scratch;
    for (unsigned long rounds = ns * 2 / 3; rounds; rounds--)
        x = x * 6364136223846793005ul + 1442695040888963407ul;
    w->scratch = x;
}

// --- the server -------------------------------------------------------------------------------

// wait_disk stands for a read or a flush: it sleeps, and is the only function here that does.
PROBED void wait_disk(struct worker *w, unsigned long ns) {
    CALL(wait_disk);
    work(w, 500);
    if (scene_is(SLOW_DISK))
        ns *= 10;
    if (paced)
        sleep_for(ns);
}

PROBED unsigned long hash_key(struct worker *w, unsigned long key) {
    CALL(hash_key);
    work(w, 400 + (key & 511));
    return w->scratch ^ key;
}

PROBED void parse_header(struct worker *w) {
    CALL(parse_header);
    work(w, hump(w, 2 * US));
}

PROBED void parse_request(struct worker *w) {
    CALL(parse_request);
    for (unsigned long n = between(w, 1, 5); n; n--)
        parse_header(w);
    work(w, hump(w, 5 * US));
}

// A large buffer has to be cleared.
PROBED void alloc_buffer(struct worker *w) {
    CALL(alloc_buffer);
    work(w, one_in(w, 12) ? hump(w, 40 * US) : hump(w, 1500));
}

PROBED void free_buffer(struct worker *w) {
    CALL(free_buffer);
    work(w, hump(w, 800));
}

PROBED unsigned *lock_shard(unsigned long key) {
    unsigned *shard = &shards[key % SHARDS], free = 0;
    CALL(lock_shard);
    if (__atomic_compare_exchange_n(shard, &free, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return shard;
    while (__atomic_exchange_n(shard, 2, __ATOMIC_ACQUIRE) != 0)
        futex_wait(shard, 2);
    return shard;
}

PROBED void unlock_shard(unsigned *shard) {
    CALL(unlock_shard);
    if (__atomic_exchange_n(shard, 0, __ATOMIC_RELEASE) == 2)
        futex_wake(shard, 1);
}

// Now and then a shard has to grow, which takes so long that others wait for its lock. In a storm
// it is every other time, and longer.
PROBED void update_shard(struct worker *w) {
    int storm = scene_is(LOCK_STORM);
    CALL(update_shard);
    work(w, hump(w, 25 * US));
    if (one_in(w, storm ? 2 : 12))
        wait_disk(w, hump(w, storm ? 8 * MS : 4 * MS));
}

PROBED void lookup_key(struct worker *w) {
    CALL(lookup_key);
    hash_key(w, below(w, 4096));
    work(w, hump(w, 3 * US));
}

// A page is in the cache, or has to come from the disk.
PROBED void read_page(struct worker *w) {
    CALL(read_page);
    hash_key(w, below(w, 4096));
    work(w, hump(w, 4 * US));
    if (one_in(w, 8))
        wait_disk(w, hump(w, 900 * US));
}

PROBED void render_tree(struct worker *w, unsigned long depth) {
    CALL(render_tree);
    work(w, hump(w, 4 * US));
    if (depth > 1)
        render_tree(w, depth - 1);
    work(w, 1 * US);
}

// Bodies are small or large.
PROBED void compress_body(struct worker *w) {
    CALL(compress_body);
    work(w, below(w, 100) < 70 ? hump(w, 60 * US) : hump(w, 1100 * US));
}

// Two of three lines only go to a buffer; some calls find it full and flush it.
PROBED void write_log(struct worker *w) {
    CALL(write_log);
    work(w, hump(w, 3 * US));
    if (one_in(w, 30))
        wait_disk(w, hump(w, 6 * MS));
}

PROBED void send_reply(struct worker *w) {
    CALL(send_reply);
    work(w, hump(w, 12 * US));
    if (one_in(w, 20)) // a slow client
        wait_disk(w, hump(w, 300 * US));
    if (w->number == 0) // its client takes nothing any more
        wait_while(HANG);
}

PROBED void evict_pages(struct worker *w) {
    CALL(evict_pages);
    work(w, hump(w, 200 * US));
}

PROBED void collect_garbage(struct worker *w) {
    CALL(collect_garbage);
    work(w, hump(w, 2 * MS));
    wait_disk(w, hump(w, 6 * MS));
}

static inline void serve_page(struct worker *w) {
    for (unsigned long n = between(w, 2, 6); n; n--)
        read_page(w);
    render_tree(w, between(w, 3, 12));
}

static inline void serve_query(struct worker *w) {
    for (unsigned long n = between(w, 4, 20); n; n--)
        lookup_key(w);
    for (unsigned long n = between(w, 1, 3); n; n--) {
        // Five of eight updates meet in one shard, all of them in a storm.
        unsigned *shard = lock_shard(scene_is(LOCK_STORM) || one_in(w, 2) ? 0 : below(w, SHARDS));
        update_shard(w);
        unlock_shard(shard);
    }
}

PROBED void handle_request(struct worker *w) {
    // Pages, queries and uploads each have their hour.
    unsigned long pages = 250 + wave(w->time, 20 * SECOND) / 2;
    unsigned long uploads = 40 + wave(w->time, 13 * SECOND) / 8;
    unsigned long buffers = between(w, 1, 3), kind = below(w, 1000);

    CALL(handle_request);
    parse_request(w);
    for (unsigned long n = buffers; n; n--)
        alloc_buffer(w);
    if (kind < pages)
        serve_page(w);
    else if (kind < pages + uploads)
        compress_body(w);
    else
        serve_query(w);
    send_reply(w);
    for (unsigned long n = buffers; n; n--)
        free_buffer(w);
    if (one_in(w, 3))
        write_log(w);
    if (one_in(w, 30))
        evict_pages(w);
    if (one_in(w, 300))
        collect_garbage(w);
}

// --- workers and main -------------------------------------------------------------------------

// Requests come on an absolute schedule, faster and slower between 50 % and 150 % of the mean.
static inline unsigned long pause_after(struct worker *w) {
    unsigned long rate = 500 + wave(w->time, 20 * SECOND);
    return hump(w, PERIOD * 1000 / rate);
}

static void serve_paced(struct worker *w) {
    for (unsigned long start = now();;) {
        unsigned long due, late;
        w->time += pause_after(w);
        due = start + w->time;
        sleep_until(due);
        late = now() - due;
        if ((long)late > (long)(100 * MS)) // after a stop, do not make up for what was missed
            start += late;
        handle_request(w);
    }
}

static void run_worker(struct worker *w) {
    char name[] = "worker-0";
    name[7] += w->number;
    set_thread_name(name);
    if (paced)
        serve_paced(w);
    for (; w->requests; w->requests--) {
        w->time += pause_after(w);
        handle_request(w);
    }
    if (__atomic_sub_fetch(&running, 1, __ATOMIC_ACQ_REL) == 0)
        futex_wake(&running, 1);
    exit_thread();
}

// --- the weather ------------------------------------------------------------------------------

// Hogs burn the CPUs that the workers run on. For this the workers are held on a few: one hog a
// CPU, and no more hogs than workers, is then enough on a host of any size.
static struct worker hogs[WORKERS];
static unsigned started_hogs, burning_hogs;

static void run_hog(struct worker *w) {
    char name[] = "hog-0";
    name[4] += w->number;
    set_thread_name(name);
    for (;;) {
        unsigned now = scene_now();
        if (now == CPU_HOG && w->number < burning_hogs)
            work(w, 1 * MS);
        else
            futex_wait(&scene, now);
    }
}

static int start_hog(struct worker *w) {
    w->number = started_hogs;
    w->tid = start_thread(run_hog, w, w->stack + STACK_BYTES);
    started_hogs += w->tid > 0;
    return w->tid > 0;
}

static void hold_workers(void) {
    struct cpus all, one[WORKERS];
    unsigned n = 0;
    get_cpus(0, &all);
    for (unsigned cpu = 0; cpu < MAX_CPUS && n < WORKERS; cpu++)
        n += only_cpu(&all, cpu, &one[n]);
    while (started_hogs < n && start_hog(&hogs[started_hogs]))
        ;
    burning_hogs = n < started_hogs ? n : started_hogs;
    for (unsigned i = 0; i < burning_hogs; i++)
        set_cpus(hogs[i].tid, &one[i]);
    for (unsigned i = 0; i < WORKERS && burning_hogs; i++)
        set_cpus(workers[i].tid, &one[i % burning_hogs]);
}

static void free_workers(void) {
    struct cpus all;
    get_cpus(0, &all);
    for (unsigned i = 0; i < WORKERS; i++)
        set_cpus(workers[i].tid, &all);
}

// change_scene runs on the main thread, which is held on no CPU.
static void change_scene(unsigned next) {
    unsigned before = scene_now();
    if (next >= SCENES || next == before)
        return;
    if (next == CPU_HOG)
        hold_workers();
    __atomic_store_n(&scene, next, __ATOMIC_RELEASE);
    futex_wake(&scene, ~0u >> 1);
    if (before == CPU_HOG)
        free_workers();
}

// play changes scenes until standard input ends or parent is gone.
static void play(int parent) {
    char digits[256];
    for (long n; (n = read_some(0, digits, sizeof digits, 250)) != 0 && parent_pid() == parent;)
        if (n > 0)
            change_scene(digits[n - 1] - '0');
}

static void print_calls(void) {
    for (int i = 0; i < FUNCTION_COUNT; i++) {
        char line[64], digits[24];
        unsigned long n = calls[i];
        int length = 0, count = 0;
        for (const char *c = names[i]; *c; c++)
            line[length++] = *c;
        line[length++] = ' ';
        do
            digits[count++] = '0' + n % 10;
        while (n /= 10);
        while (count)
            line[length++] = digits[--count];
        line[length++] = '\n';
        write_all(1, line, length);
    }
}

static int equal(const char *a, const char *b) {
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

// parse_number returns the value of decimal text, or -1.
static long parse_number(const char *text) {
    long n = 0;
    if (!text || !*text)
        return -1;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || n > 1000000000)
            return -1;
        n = n * 10 + (*text - '0');
    }
    return n;
}

int run(long argc, char **argv) {
    int parent = parent_pid(), until_eof = 0;
    long requests = 0;

    for (long i = 1; i < argc; i++) {
        if (equal(argv[i], "--until-eof")) {
            until_eof = 1;
        } else if (equal(argv[i], "--calls")) {
            requests = parse_number(++i < argc ? argv[i] : 0);
            paced = 0;
        } else {
            return 2;
        }
    }
    if (requests < 0)
        return 2;

    set_thread_name("demo");
    default_signals();
    // The signal comes when the *thread* that forked us ends, which may be long before its process
    // does. Whoever holds our standard input open needs no such signal.
    if (!until_eof)
        die_with_parent();
    if (parent_pid() != parent)
        return 0;

    for (unsigned i = 0; i < WORKERS; i++) {
        struct worker *w = &workers[i];
        w->number = i;
        w->random = 0x9e3779b97f4a7c15ul * (i + 1);
        w->requests = requests * (i + 1) / WORKERS - requests * i / WORKERS;
        w->tid = start_thread(run_worker, w, w->stack + STACK_BYTES);
        if (w->tid < 0)
            return 1;
    }
    if (until_eof)
        close_from(3);
    if (paced && until_eof)
        play(parent);
    while (paced && !until_eof && parent_pid() == parent)
        sleep_for(250 * MS);
    if (paced)
        return 0;
    for (unsigned left; (left = __atomic_load_n(&running, __ATOMIC_ACQUIRE)) != 0;)
        futex_wait(&running, left);
    print_calls();
    return 0;
}
