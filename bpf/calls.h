/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Single calls: those that took long enough travel as records of their own in the
 * ring buffer `calls`. What a call was like at its entry is kept beside its frame,
 * in a task storage of its own: nobody pays for it who does not ask.
 */
#ifndef UPROBETOP_CALLS_H
#define UPROBETOP_CALLS_H

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} calls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct contexts);
} contexts SEC(".maps");

/* Index: slot. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct call_budget);
} call_budgets SEC(".maps");

#if defined(__TARGET_ARCH_x86)
#define ARG0(ctx) ((ctx)->di)
#define ARG1(ctx) ((ctx)->si)
#define ARG2(ctx) ((ctx)->dx)
#define RESULT(ctx) ((ctx)->ax)
#else
#define ARG0(ctx) ((ctx)->regs[0])
#define ARG1(ctx) ((ctx)->regs[1])
#define ARG2(ctx) ((ctx)->regs[2])
#define RESULT(ctx) ((ctx)->regs[0])
#endif

/* Writes what the kernel says of the thread to v. */
static __always_inline void read_thread(struct task_struct *task, __u64 *v)
{
	v[THREAD_ON_CPU] = task->se.sum_exec_runtime;
	v[THREAD_WAITING] = 0;
	if (bpf_core_field_exists(task->sched_info.run_delay))
		v[THREAD_WAITING] = task->sched_info.run_delay;
	v[THREAD_VOLUNTARY] = task->nvcsw;
	v[THREAD_INVOLUNTARY] = task->nivcsw;
	v[THREAD_MINOR_FAULTS] = task->min_flt;
	v[THREAD_MAJOR_FAULTS] = task->maj_flt;
}

/* Set before loading: the clock of latencies and the scheduler's are one, and that of all CPUs. */
volatile const __u32 one_clock = 0;

#define HAVE_UPDATE(task) \
	(one_clock && bpf_core_field_exists((task)->se.cfs_rq) && bpf_core_field_exists((task)->se.cfs_rq->rq))

/*
 * When the kernel last brought this thread's time on CPU up to date, which runs
 * now: by sched_clock. exec_start is by its CPU's clock_task, which has stood still
 * during interrupts (update_curr and update_rq_clock_task, Linux 5.15 to 7.3).
 */
static __always_inline __u64 last_update(struct task_struct *task)
{
	struct rq *rq;

	if (!HAVE_UPDATE(task))
		return 0;
	rq = task->se.cfs_rq->rq;
	return task->se.exec_start + (rq->clock - rq->clock_task);
}

/* Writes what the kernel says of this thread to v, and returns of when that is. */
static __always_inline __u64 read_this_thread(struct task_struct *task, __u64 *v)
{
	__u64 at = last_update(task);

	barrier();
	read_thread(task, v);
	barrier();
	if (last_update(task) == at)
		return at;
	/* A tick came between the two. It will not come again so soon. */
	at = last_update(task);
	read_thread(task, v);
	return at;
}

/*
 * Begins call number `at` of those that the thread is in: keeps its context, if
 * there is room, and gives the time. A function, as report() is, because of the
 * stack: see uprobetop.bpf.c.
 */
static __noinline __u64 begin_call(struct pt_regs *ctx, __u64 at)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct contexts *all = bpf_task_storage_get(&contexts, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	struct context *x;

	if (!all)
		return bpf_ktime_get_ns();
	x = &all->of[at & (STACK_FRAMES - 1)];
	x->args[0] = ARG0(ctx);
	x->args[1] = ARG1(ctx);
	x->args[2] = ARG2(ctx);
	x->updated = read_this_thread(task, x->thread);
	/* Last: our own time is not the function's. */
	return x->start = bpf_ktime_get_ns();
}

/*
 * Takes one of the calls that may be reported in this window. Two CPUs that do so
 * at once may let one more pass: the limit protects, it is not a count.
 */
static __always_inline int within_budget(__u32 slot, __u64 now)
{
	struct call_budget *b = bpf_map_lookup_elem(&call_budgets, &slot);
	__u64 window = now >> CALLS_WINDOW_SHIFT;

	if (!b)
		return 0;
	if (b->window != window) {
		b->window = window;
		b->used = 0;
	}
	if (b->used >= CALLS_PER_WINDOW)
		return 0;
	b->used++;
	return 1;
}

/* Reports a call that has just returned; its frame was number `at`. */
static __noinline void report(struct pt_regs *ctx, struct cell *c, struct frame *f, __u64 at, __u64 now)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct contexts *all;
	struct context *x;
	struct call *r;
	__u64 id, full, updated;

	if (!within_budget(f->cookie, now)) {
		add(c, CELL_HELD_BACK, 1);
		return;
	}
	r = bpf_ringbuf_reserve(&calls, sizeof(*r), 0);
	if (!r) {
		full = bpf_ringbuf_query(&calls, BPF_RB_AVAIL_DATA) + 2 * sizeof(*r) > bpf_ringbuf_query(&calls, BPF_RB_RING_SIZE);
		add(c, full ? CELL_CALLS_LOST : CELL_CALLS_BUSY, 1);
		return;
	}
	r->kind = RECORD_CALL;
	r->cpu = bpf_get_smp_processor_id();
	r->cookie = f->cookie;
	r->at = now;
	r->start = f->start;
	r->callees = f->callees;
	id = ids_of(task);
	r->tgid = id >> 32;
	r->tid = id;
	r->known = 0;
	r->result = RESULT(ctx);
	bpf_get_current_comm(r->comm, sizeof(r->comm));
	updated = read_this_thread(task, r->thread);
	r->unaccounted = 0;
	r->tick = tick_ns;
	all = bpf_task_storage_get(&contexts, task, 0, 0);
	x = all ? &all->of[at & (STACK_FRAMES - 1)] : 0;
	if (x && x->start == f->start) {
		r->known = KNOWN_ENTRY;
		if (bpf_core_field_exists(task->sched_info.run_delay))
			r->known |= KNOWN_WAITING;
		if (HAVE_UPDATE(task))
			r->known |= KNOWN_UPDATE;
		r->unaccounted = (now - updated) - (f->start - x->updated);
		for (int i = 0; i < 3; i++)
			r->args[i] = x->args[i];
		for (int i = 0; i < THREAD_FIELDS; i++)
			r->thread[i] -= x->thread[i];
	} else {
		for (int i = 0; i < 3; i++)
			r->args[i] = 0;
		for (int i = 0; i < THREAD_FIELDS; i++)
			r->thread[i] = 0;
	}
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
}

#endif
