//go:build ignore

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Timed probes without a store of our own (Linux >= 6.13): `session` runs at a hit
 * and at its return, and the kernel carries eight bytes, the session cookie, from
 * one to the other beside its own note of the pending return. So it is exact for
 * recursion, and a longjmp cleans up after itself; but when a return never comes
 * nobody is told: pushed - popped is in flight and unwound together.
 *
 * Maps are those of uprobetop.bpf.c, where the rules of the hot path stand, too.
 *
 * Built twice: from Linux 7.0 on the two functions of the kernel take the context.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "kernel.h"
#include "layout.h"
#include "hit.h"
#include "calls.h"
#include "returns.h"
#include "hist.h"
#include "shares.h"

char __license[] SEC("license") = "Dual BSD/GPL";

#ifdef SESSION_TAKES_CONTEXT
extern __u64 *bpf_session_cookie(void *ctx) __ksym;
extern _Bool bpf_session_is_return(void *ctx) __ksym;
#define SESSION(what, ctx) what(ctx)
#else
extern __u64 *bpf_session_cookie(void) __ksym;
extern _Bool bpf_session_is_return(void) __ksym;
#define SESSION(what, ctx) what()
#endif

/*
 * The cookie: the low 48 bits of the time at entry in ns, which come again after
 * 78 hours, and the low 16 of the id of the thread group. A forked child inherits
 * its parent's pending returns with their cookies, and is told by the latter.
 */
#define TAG_BITS 16
#define TIME_BITS (64 - TAG_BITS)

static __always_inline __u64 tag(void)
{
	return (bpf_get_current_pid_tgid() >> 32) & ((1 << TAG_BITS) - 1);
}

static __always_inline __u64 since(__u64 cookie, __u64 now)
{
	__u64 ns = (now - (cookie >> TAG_BITS)) & ((1ULL << TIME_BITS) - 1);

	/* Clocks of two CPUs may differ by a little: no latency is below 0. */
	return ns >> (TIME_BITS - 1) ? 0 : ns;
}

/*
 * In how many calls this one is. Those that a longjmp left behind are still among the
 * pending: the kernel drops them after the program of a hit, by the same comparison
 * (cleanup_return_instances).
 */
static __noinline __u64 calls_around(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct uprobe_task *utask = task->utask;
	struct return_instance *r;
	__u64 depth, alive = ctx->sp + !tail_called(ctx, task);

	if (!utask)
		return 0;
	depth = utask->depth;
	r = utask->return_instances;
	for (int i = 0; i < MAX_URETPROBE_DEPTH && r && r->stack < alive; i++) {
		r = r->next;
		depth--;
	}
	return depth;
}

/* Reports a call that has just returned. A function, because of the stack. */
static __noinline void report_session(struct pt_regs *ctx, struct cell *c, __u64 cookie, __u64 start, __u64 now)
{
	struct frame f = {.cookie = cookie, .start = start};

	/* The kernel has counted down already (uprobe_handle_trampoline). */
	report(ctx, c, &f, returns_pending(bpf_get_current_task_btf()), now);
}

/* A hit. 1: no return of it is wanted, and the kernel makes none. */
static __always_inline int session_enter(struct pt_regs *ctx, struct probe_switch *sw, struct cell *c)
{
	__u64 *kept, start;

	if (!(sw->flags & SWITCH_ON))
		return 1;
	if (!admits()) {
		add(c, CELL_FILTERED, 1);
		return 1;
	}
	add(c, CELL_HITS, 1);
	if (sw->flags & SWITCH_WATCHED)
		share_hit(sw->cookie);
	if (returns_pending(bpf_get_current_task_btf()) >= MAX_URETPROBE_DEPTH) {
		add(c, CELL_MISSED_DEPTH, 1);
		return 1;
	}
	kept = SESSION(bpf_session_cookie, ctx);
	if (!kept)
		return 1;
	add(c, CELL_PUSHED, 1);
	/* Last: our own time is not the function's. */
	start = sw->flags & SWITCH_CALLS ? begin_call(ctx, calls_around(ctx)) : bpf_ktime_get_ns();
	*kept = start << TAG_BITS | tag();
	return 0;
}

static __always_inline void session_leave(struct pt_regs *ctx, struct probe_switch *sw, struct cell *c, __u64 now)
{
	__u64 *kept = SESSION(bpf_session_cookie, ctx);
	__u64 latency;

	if (!kept || sw->flags & SWITCH_ENDED)
		return;
	if ((*kept & ((1 << TAG_BITS) - 1)) != tag()) {
		/* While it comes and goes, hits are unseen because we do not look. */
		if (sw->flags & SWITCH_ON && admits())
			add(c, CELL_ORPHANS, 1);
		return;
	}
	latency = since(*kept, now);
	add(c, CELL_POPPED, 1);
	if (latency >= sw->slow_ns)
		report_session(ctx, c, sw->cookie, now - latency, now);
	record_latency(sw->hist, c, latency);
	if (sw->flags & SWITCH_WATCHED)
		share_return(sw->cookie, latency);
	add(c, CELL_RETURNED, 1);
}

SEC("uprobe.session")
int session(struct pt_regs *ctx)
{
	_Bool leaving = SESSION(bpf_session_is_return, ctx);
	/* First, but a hit reads the clock last: our own time is not the function's. */
	__u64 now = leaving ? bpf_ktime_get_ns() : 0;
	__u64 cookie = bpf_get_attach_cookie(ctx);
	struct probe_switch *sw = switch_of(cookie);
	struct cell *c = sw ? cell_of(cookie) : 0;

	if (!sw || !c)
		return 1;
	if (!leaving)
		return session_enter(ctx, sw, c);
	session_leave(ctx, sw, c, now);
	return 0;
}
