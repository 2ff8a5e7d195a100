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
 * Hits of timed probes wait for their return as frames (pairing.h) in the in-flight
 * store (stores.h); with sessions, session.bpf.c does the work of both programs.
 *
 * A call that took long enough is also reported by itself (calls.h), and what is
 * watched is counted by thread as well (shares.h).
 *
 * Cold path: `flush`, run by user space at every tick, writes what changed
 * into the ring buffer `records`; flush_shares does so for the entries of threads.
 * Nothing else writes there.
 *
 * `inside`, which user space reads as a file, enumerates the calls that have not
 * returned (inside.h).
 *
 * Hooks (hooks.h): exec and exit end the calls that a thread was in; fork carries
 * the filter on to children.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "kernel.h"
#include "layout.h"
#include "hit.h"

char __license[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} records SEC(".maps");

/* Only to have these types in the BTF, from which the Go side gets them. */
const struct record *unused_record __attribute__((unused));
const struct call *unused_call __attribute__((unused));
const struct share_record *unused_share_record __attribute__((unused));
const enum share_thread *unused_share_thread __attribute__((unused));
const enum share_size *unused_share_size __attribute__((unused));
const enum thread_field *unused_thread_field __attribute__((unused));
const enum call_known *unused_call_known __attribute__((unused));
const enum filter_size *unused_filter_size __attribute__((unused));
const enum record_kind *unused_record_kind __attribute__((unused));
const enum cell_field *unused_cell_field __attribute__((unused));
const enum switch_flags *unused_switch_flags __attribute__((unused));

#include "calls.h"
#include "returns.h"
#include "stores.h"
#include "pairing.h"
#include "hist.h"
#include "shares.h"
#include "hooks.h"
#include "flush.h"

#include "inside.h"

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
	if (sw->flags & SWITCH_WATCHED)
		share_hit(cookie);
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
	s = find_stack(bpf_get_current_task_btf());
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
	if (sw->flags & SWITCH_WATCHED)
		share_return(cookie, latency);
	add(c, CELL_RETURNED, 1);
	return 0;
}
