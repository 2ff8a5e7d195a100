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
 * Hooks: exec and exit end the calls that a thread was in; fork carries the
 * filter on to children.
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

/* Processes that found no room in `admitted`. */
__u64 unfollowed;

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

/*
 * Ends every call that this thread is in; tid: its id when it began them. A hook that
 * is preempted is skipped for the next thread on its CPU, whose calls would stay in
 * flight for ever: from Linux 7.0 on (a46023d5616e) it can be.
 */
static __always_inline void end_calls(enum cell_field cause, __u32 tid)
{
	struct stack *s;

	if (stackless)
		return;
	if (bpf_preempt_disable)
		bpf_preempt_disable();
	s = stack_of(bpf_get_current_task_btf(), tid);
	if (s)
		unwind(s, ~0ULL, cause);
	drop_stack(tid);
	if (bpf_preempt_enable)
		bpf_preempt_enable();
}

/*
 * args: struct task_struct *task, pid_t old_pid, struct linux_binprm *bprm. A thread
 * that calls exec has the id of the first thread from then on: this hook sees the new.
 */
SEC("tp_btf/sched_process_exec")
int on_exec(__u64 *ctx)
{
	end_calls(CELL_UNWOUND_EXEC, ctx[1]);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int on_exit(__u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 id = ids_of(task);
	__u32 tgid = id >> 32, tid = id;

	end_calls(CELL_UNWOUND_EXIT, task->pid);
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
	__u32 from = ids_of(parent) >> 32, to = ids_of(child) >> 32;
	__u8 yes = 1;

	if (!follow || from == to || !bpf_map_lookup_elem(&admitted, &from))
		return 0;
	if (bpf_map_update_elem(&admitted, &to, &yes, BPF_ANY))
		__sync_fetch_and_add(&unfollowed, 1);
	return 0;
}
