//go:build ignore

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * The kernel side of uprobetop.
 *
 * Hot path: `enter` runs at every hit of every probe, `leave` at every return
 * of a timed one. They only add to this CPU's cell and histogram. All additions
 * are atomic: these programs can be preempted, and another thread can then run
 * the same probe on the same CPU (Linux >= 6.0).
 *
 * For the same reason no function of the hot path may use 64 bytes of stack or
 * more: from Linux 6.13 on such a function has its stack in memory of the CPU
 * instead of the task's kernel stack (BPF_PRIV_STACK_MIN_SIZE), and a thread
 * that preempts it there overwrites it. The kernel rounds up to 16 bytes: 48 is
 * the limit. On 7.3, at 56 bytes, 64 threads lost hits that way, and with
 * preempt=full the program read through a pointer that was another thread's
 * stack pointer by then: the kernel oopsed.
 *
 * A call that took long enough is also reported by itself (calls.h).
 *
 * Cold path: `flush`, run by user space at every tick, writes what changed
 * into the ring buffer `records`. Nothing else writes there.
 *
 * Hooks: exec and exit end the calls that a thread was in; fork carries the
 * filter on to children.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "kernel.h"
#include "layout.h"

char __license[] SEC("license") = "Dual BSD/GPL";

/* Set before loading. */
volatile const __u32 max_probes = 1024; /* slots: cells has max_probes a CPU */
volatile const __u32 max_timed = 256;   /* histograms: hists has max_timed a CPU */
volatile const __u32 cpus = 1;          /* possible CPUs */
volatile const __u32 filtered = 0;      /* only hits that one of these lets through count */
volatile const __u32 by_process = 0;    /* processes in `admitted` */
volatile const __u32 by_thread = 0;     /* threads in `admitted_threads` */
volatile const __u32 by_cgroup = 0;     /* so many cgroups, and those below them */
volatile const __u32 follow = 0;        /* what admitted processes start is admitted */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct probe_switch);
} switches SEC(".maps");

/* Index: cpu * max_probes + slot. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct cell);
} cells SEC(".maps");

/* Index: cpu * max_timed + probe_switch.hist. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, struct hist);
} hists SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct stack);
} stacks SEC(".maps");

/* Processes whose hits count, if `by_process`; the value says nothing. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, __u8);
} admitted SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u8);
} admitted_threads SEC(".maps");

/* Directories of cgroup v2. */
struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, MAX_CGROUPS);
	__type(key, __u32);
	__type(value, __u32);
} cgroups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} records SEC(".maps");

/* Processes that found no room in `admitted`. */
__u64 unfollowed;

/* Only to have these types in the BTF, from which the Go side gets them. */
const struct record *unused_record __attribute__((unused));
const struct call *unused_call __attribute__((unused));
const enum thread_field *unused_thread_field __attribute__((unused));
const enum call_known *unused_call_known __attribute__((unused));
const enum filter_size *unused_filter_size __attribute__((unused));
const enum record_kind *unused_record_kind __attribute__((unused));
const enum cell_field *unused_cell_field __attribute__((unused));
const enum switch_flags *unused_switch_flags __attribute__((unused));

/*
 * Tests build this with faults, to show what they do: PLAIN_ADDS adds as if
 * nobody could preempt us, LOSE_POP=n leaves out every n-th frame taken off. (An
 * emulator takes interrupts only where a block of instructions ends: the branch
 * between reading and writing is such a place. A real CPU needs none.)
 */
static __always_inline void increase(__u64 *to, __u64 n)
{
#ifdef PLAIN_ADDS
	__u64 was = *(volatile __u64 *)to;

	if (was != ~0ULL)
		*(volatile __u64 *)to = was + n;
#else
	__sync_fetch_and_add(to, n);
#endif
}

static __always_inline void add(struct cell *c, __u64 field, __u64 n)
{
#ifdef LOSE_POP
	if (field == CELL_POPPED && c->value[CELL_HITS] % LOSE_POP == 0)
		return;
#endif
	increase(&c->value[field], n);
}

static __always_inline struct cell *cell_of(__u32 slot)
{
	__u32 i = bpf_get_smp_processor_id() * max_probes + slot;

	if (slot >= max_probes)
		return 0;
	return bpf_map_lookup_elem(&cells, &i);
}

/* The switch of a cookie's slot, unless the slot has another probe now. */
static __always_inline struct probe_switch *switch_of(__u64 cookie)
{
	__u32 slot = cookie;
	struct probe_switch *sw = bpf_map_lookup_elem(&switches, &slot);

	return sw && sw->cookie == cookie ? sw : 0;
}

/*
 * Where a frame that is unwound counts. Nowhere once its probe is off: the call may
 * have returned unseen, and stays in flight, as it was when we last looked.
 */
static __always_inline struct cell *cell_of_frame(struct frame *f)
{
	struct probe_switch *sw = switch_of(f->cookie);

	return sw && (sw->flags & SWITCH_ON) ? cell_of(f->cookie) : 0;
}

/* Is the current thread on one of the lists? A function: see above of stack. */
static __noinline int listed(void)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tgid = id >> 32, tid = id;

	if (by_process && bpf_map_lookup_elem(&admitted, &tgid))
		return 1;
	if (by_thread && bpf_map_lookup_elem(&admitted_threads, &tid))
		return 1;
	for (__u32 i = 0; i < MAX_CGROUPS && i < by_cgroup; i++)
		if (bpf_current_task_under_cgroup(&cgroups, i) == 1)
			return 1;
	return 0;
}

/* Does the current thread's hit count? */
static __always_inline int admits(void) { return !filtered || listed(); }

#include "calls.h"

#include "pairing.h"

#include "hist.h"

#include "flush.h"

SEC("uprobe.multi")
int enter(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);
	struct probe_switch *sw = switch_of(cookie);
	struct cell *c;

	if (!sw || !(sw->flags & SWITCH_ON))
		return 0;
	c = cell_of(cookie);
	if (!c)
		return 0;
	if (!admits()) {
		add(c, CELL_FILTERED, 1);
		return 0;
	}
	add(c, CELL_HITS, 1);
	if (sw->flags & SWITCH_TIMED)
		push(ctx, c, cookie, sw->flags & SWITCH_CALLS);
	return 0; /* 1 would take the breakpoint out of this process */
}

SEC("uretprobe.multi")
int leave(struct pt_regs *ctx)
{
	__u64 now = bpf_ktime_get_ns(); /* first: our own time is not the function's */
	__u64 cookie = bpf_get_attach_cookie(ctx);
	struct probe_switch *sw = switch_of(cookie);
	struct stack *s;
	struct frame *f = 0;
	struct cell *c;
	__u64 latency, callees;

	/* A probe that is switched off still ends the calls it began. */
	if (!sw || (sw->flags & SWITCH_ENDED))
		return 0;
	c = cell_of(cookie);
	if (!c)
		return 0;
	/* Who has left a frame was let through when it did. */
	s = bpf_task_storage_get(&stacks, bpf_get_current_task_btf(), 0, 0);
	if (s)
		f = pop(ctx, s, c, cookie);
	if (!s || !f) {
		/* While it comes and goes, hits are unseen because we do not look. */
		if (sw->flags & SWITCH_ON && admits())
			add(c, CELL_ORPHANS, 1);
		return 0;
	}
	/* Clocks of two CPUs may differ by a little: no latency is below 0. */
	latency = now > f->start ? now - f->start : 0;
	callees = f->callees;
	tell_caller(s, latency);
	if (latency >= sw->slow_ns)
		report(ctx, c, f, s->depth, now);
	record_latency(sw->hist, c, latency);
	if (callees)
		add(c, CELL_CALLEES_NS, callees);
	add(c, CELL_RETURNED, 1);
	return 0;
}

/* Ends every call that this thread is in. */
static __always_inline int end_calls(enum cell_field cause)
{
	struct stack *s = bpf_task_storage_get(&stacks, bpf_get_current_task_btf(), 0, 0);

	if (s)
		unwind(s, ~0ULL, cause);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int on_exec(__u64 *ctx)
{
	return end_calls(CELL_UNWOUND_EXEC);
}

SEC("tp_btf/sched_process_exit")
int on_exit(__u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 tgid = task->tgid, tid = bpf_get_current_pid_tgid();

	end_calls(CELL_UNWOUND_EXIT);
	/* Off the lists: numbers come again. A process ends with its last thread. */
	if (by_thread)
		bpf_map_delete_elem(&admitted_threads, &tid);
	if (by_process && task->signal->live.counter == 0)
		bpf_map_delete_elem(&admitted, &tgid);
	return 0;
}

/* args: struct task_struct *parent, struct task_struct *child */
SEC("tp_btf/sched_process_fork")
int on_fork(__u64 *ctx)
{
	struct task_struct *parent = (void *)ctx[0];
	struct task_struct *child = (void *)ctx[1];
	__u32 from = parent->tgid, to = child->tgid;
	__u8 yes = 1;

	if (!follow || from == to || !bpf_map_lookup_elem(&admitted, &from))
		return 0;
	if (bpf_map_update_elem(&admitted, &to, &yes, BPF_ANY))
		__sync_fetch_and_add(&unfollowed, 1);
	return 0;
}
