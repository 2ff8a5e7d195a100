/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Who is inside now: every frame is a call that has not returned. A task iterator
 * writes them into a seq file, and not into a ring buffer: the kernel gives the
 * reader as much as fits and then goes on with the task that did not, so that the
 * list is complete however long it is.
 *
 * The threads run meanwhile. A frame that is just being made or taken off is
 * passed by: its start is 0 first and written last (push), and it is read before
 * and after all else. BPF has no barriers. Where stores of one CPU may seem to
 * another out of order (arm64), reading the clock between the two is what keeps a
 * start of before from standing beside a cookie of now.
 */
#ifndef UPROBETOP_INSIDE_H
#define UPROBETOP_INSIDE_H

/* What one stack is read with. */
struct reading {
	struct seq_file *seq;
	struct task_struct *task;
	struct stack *stack;
	struct contexts *contexts; /* or 0 */
	__u64 sp;                  /* frames below it are left behind */
};

/*
 * CLOCK_MONOTONIC when counting ended, ns; 0: it goes on. What was in flight then is
 * no older: its return was not looked for.
 */
__u64 ended;

#define ONCE(x) (*(volatile __typeof__(x) *)&(x))

/* Writes frame number i as a call that has come as far as it has. */
static long write_frame(__u32 i, struct reading *w)
{
	struct stack *s = w->stack;
	struct frame *f = &s->frame[i & (STACK_FRAMES - 1)];
	struct task_struct *task = w->task;
	struct context *x = 0;
	struct call r = {.kind = RECORD_INSIDE};
	__u64 id;

	if (i >= ONCE(s->depth))
		return 1;
	r.start = ONCE(f->start);
	r.cookie = ONCE(f->cookie);
	if (!r.start || f->sp < w->sp || !switch_of(r.cookie))
		return 0;
	r.callees = ONCE(f->callees);
	id = ids_of(task);
	r.tgid = id >> 32;
	r.tid = id;
	bpf_probe_read_kernel(r.comm, sizeof(r.comm), task->comm);
	if (w->contexts)
		x = &w->contexts->of[i & (STACK_FRAMES - 1)];
	if (x && ONCE(x->start) == r.start) {
		r.known = KNOWN_ENTRY;
		if (bpf_core_field_exists(task->sched_info.run_delay))
			r.known |= KNOWN_WAITING;
		read_thread(task, r.thread);
		for (int k = 0; k < 3; k++)
			r.args[k] = x->args[k];
		for (int k = 0; k < THREAD_FIELDS; k++)
			r.thread[k] -= x->thread[k];
	}
	r.at = bpf_ktime_get_ns();
	if (ended && ended < r.at)
		r.at = ended;
	if (ONCE(f->start) == r.start && i < ONCE(s->depth))
		bpf_seq_write(w->seq, &r, sizeof(r));
	return 0;
}

/*
 * Where the stack pointer of a thread is that sleeps, or 0. A call that it has
 * jumped out of is noticed at its next hit only, and until then looks as if it hung:
 * not if the thread sleeps above it, as one that has left much behind does. A
 * handler that has a stack of its own says nothing of the others.
 */
static __always_inline __u64 user_sp(struct task_struct *task)
{
	struct pt_regs *regs;
	__u64 sp;

	if (!ONCE(task->__state))
		return 0;
	regs = (void *)bpf_task_pt_regs(task);
	sp = regs->sp;
	return sp - task->sas_ss_sp < task->sas_ss_size ? 0 : sp;
}

/* Writes every frame of a task's stack. */
static __always_inline void write_stack(struct seq_file *seq, struct task_struct *task, struct stack *s)
{
	struct reading w = {.seq = seq, .task = task, .stack = s};

	if (!s->depth)
		return;
	w.contexts = bpf_task_storage_get(&contexts, task, 0, 0);
	w.sp = user_sp(task);
	bpf_loop(STACK_FRAMES, write_frame, &w, 0);
}

SEC("iter/task")
int inside(struct bpf_iter__task *ctx)
{
	struct seq_file *seq = ctx->meta->seq;
	struct task_struct *task = ctx->task;
	struct call end = {.kind = RECORD_ENUMERATED};
	struct stack *s;

	if (!task) {
		end.at = bpf_ktime_get_ns();
		bpf_seq_write(seq, &end, sizeof(end));
		return 0;
	}
	s = stack_of(task, task->pid);
	if (s)
		write_stack(seq, task, s);
	return 0;
}

#endif
