/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Pairs entry and return by a stack of frames a thread (stores.h says where).
 *
 * The kernel keeps its own stack of pending returns (struct return_instance).
 * It drops those that a longjmp left behind when it sees, at a later entry or
 * return, that the stack pointer has passed them; the same rule is applied here
 * at the same moments, so that both agree on which return comes next
 * (arch_uretprobe_is_alive, cleanup_return_instances, Linux 6.1 to 7.3).
 */
#ifndef UPROBETOP_PAIRING_H
#define UPROBETOP_PAIRING_H

/* Takes the top frame off, as one whose return never comes. */
static __always_inline void unwind_top(struct stack *s)
{
	__u64 top = s->depth - 1;
	struct frame *f = &s->frame[top & (STACK_FRAMES - 1)];
	struct cell *c = cell_of_frame(f);
	__u64 cause = s->cause;

	s->depth = top;
	if (!c)
		return;
	add(c, CELL_POPPED, 1);
	if (cause < CELL_FIELDS)
		add(c, cause, 1);
}

static long unwind_step(__u32 i, struct stack **arg)
{
	struct stack *s = *arg;
	__u64 depth = s->depth;

	if (depth == 0 || depth > STACK_FRAMES)
		return 1;
	if (s->frame[(depth - 1) & (STACK_FRAMES - 1)].sp >= s->below)
		return 1;
	unwind_top(s);
	return 0;
}

/* Takes off every frame whose stack pointer lies below `below`. */
static __always_inline void unwind(struct stack *s, __u64 below, enum cell_field cause)
{
	__u64 depth = s->depth;

	/* The loop costs a call: not on the way that every hit takes. */
	if (depth == 0 || depth > STACK_FRAMES)
		return;
	if (s->frame[(depth - 1) & (STACK_FRAMES - 1)].sp >= below)
		return;
	/* Not on the BPF stack, which is short: see uprobetop.bpf.c. */
	s->below = below;
	s->cause = cause;
	bpf_loop(STACK_FRAMES, unwind_step, &s, 0);
}

/*
 * A hit of a timed probe: leaves a frame, or counts why it could not. remember:
 * its context, too.
 */
static __always_inline void push(struct pt_regs *ctx, struct cell *c, __u64 cookie, int remember)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct stack *s;
	struct frame *f;
	__u64 depth, sp = ctx->sp;

	if (returns_pending(task) >= MAX_URETPROBE_DEPTH) {
		add(c, CELL_MISSED_DEPTH, 1);
		return;
	}
	s = need_stack(task);
	if (!s) {
		add(c, CELL_MISSED_NO_SLOT, 1);
		return;
	}
	unwind(s, sp, CELL_UNWOUND_JUMP);
	depth = s->depth;
	/*
	 * A frame at this very stack pointer is our caller's if it jumped here. If it
	 * did not, the caller has left it behind: the kernel says so, too.
	 */
	if (depth && depth <= STACK_FRAMES && s->frame[(depth - 1) & (STACK_FRAMES - 1)].sp == sp &&
	    !tail_called(ctx, task)) {
		unwind(s, sp + 1, CELL_UNWOUND_JUMP);
		depth = s->depth;
	}
	if (depth >= STACK_FRAMES) {
		add(c, CELL_MISSED_NO_SLOT, 1);
		return;
	}
	f = &s->frame[depth & (STACK_FRAMES - 1)];
	/* Another CPU may be reading along (inside.h): it skips what has no start. */
	*(volatile __u64 *)&f->start = 0;
	*(volatile __u64 *)&f->cookie = cookie;
	f->sp = sp;
	f->callees = 0;
	*(volatile __u64 *)&s->depth = depth + 1;
	add(c, CELL_PUSHED, 1);
	/* Last: our own time is not the function's. */
	f->start = remember ? begin_call(ctx, depth) : bpf_ktime_get_ns();
}

/*
 * A return: takes the frame of its hit off the stack s, or gives 0 if there is
 * none (the hit was not seen, or had found no slot). The frame can be read until
 * this thread's next hit; it was number s->depth.
 */
static __always_inline struct frame *pop(struct pt_regs *ctx, struct stack *s, struct cell *c, __u64 cookie)
{
	struct frame *f;
	__u64 depth, at;

	if (!s)
		return 0;
	at = ctx->sp - return_word(ctx); /* where the stack pointer was at entry */
	depth = s->depth;
	if (depth == 0 || depth > STACK_FRAMES)
		return 0;
#if defined(__TARGET_ARCH_x86)
	/* On i386 a function that returns a struct ends in ret $4. */
	if (return_word(ctx) == 4 && s->frame[(depth - 1) & (STACK_FRAMES - 1)].sp == at - 4)
		at -= 4;
#endif
	unwind(s, at, CELL_UNWOUND_JUMP);
	depth = s->depth;
	if (depth == 0 || depth > STACK_FRAMES)
		return 0;
	f = &s->frame[(depth - 1) & (STACK_FRAMES - 1)];
	if (f->cookie != cookie || f->sp != at)
		return 0;
	s->depth = depth - 1;
	add(c, CELL_POPPED, 1);
	return f;
}

/* Adds a call's time to what its caller spent in callees. */
static __always_inline void tell_caller(struct stack *s, __u64 latency)
{
	__u64 depth = s->depth;

	if (depth && depth <= STACK_FRAMES)
		s->frame[(depth - 1) & (STACK_FRAMES - 1)].callees += latency;
}

#endif
