/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What happens to threads beside their calls: exec, exit and fork.
 *
 * Each hook is two programs, `…` and `…_again`, with the same body. From Linux 7.0 on
 * (a46023d5616e) a program on a tracepoint can be preempted, and the kernel skips it for
 * whoever comes by on that CPU meanwhile (__bpf_trace_run): the other one of the pair
 * sees to that thread. It finds nothing left to do otherwise. That both are skipped for
 * one thread is rare, and known: the kernel counts at how many events it skipped the
 * first, and we at how many the second ran alone.
 */
#ifndef UPROBETOP_HOOKS_H
#define UPROBETOP_HOOKS_H

enum hook { HOOK_EXEC = 0, HOOK_EXIT, HOOK_FORK, HOOKS };

enum turn { FIRST, AGAIN };

/* Index: enum hook. The second ran, and found no mark of the first; the first could leave none. */
__u64 alone[HOOKS], unmarked[HOOKS];

/* Processes that found no room in `admitted`, as each of the pair saw them. */
__u64 unfollowed[2];

/* The mark of the first program, for the second: its enum hook + 1. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u32);
} marks SEC(".maps");

/* Keeps the books of what the kernel skipped; the task is the one that it happens to. */
static __always_inline void note_turn(enum hook hook, enum turn turn, struct task_struct *task)
{
	__u32 *mark = bpf_task_storage_get(&marks, task, 0, turn == FIRST ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);

	if (turn == FIRST) {
		if (mark)
			*mark = hook + 1;
		else
			__sync_fetch_and_add(&unmarked[hook], 1);
	} else if (mark && *mark == hook + 1) {
		*mark = 0; /* a thread can call exec again */
	} else {
		__sync_fetch_and_add(&alone[hook], 1);
	}
}

/* Ends every call that this thread is in; tid: its id when it began them. */
static __always_inline void end_calls(enum cell_field cause, __u32 tid)
{
	struct stack *s;

	if (stackless)
		return;
	s = stack_of(bpf_get_current_task_btf(), tid);
	if (s)
		unwind(s, ~0ULL, cause);
	drop_stack(tid);
}

/*
 * args: struct task_struct *task, pid_t old_pid, struct linux_binprm *bprm. A thread
 * that calls exec has the id of the first thread from then on: this hook sees the new.
 */
static __always_inline int executed(__u64 *ctx, enum turn turn)
{
	note_turn(HOOK_EXEC, turn, bpf_get_current_task_btf());
	end_calls(CELL_UNWOUND_EXEC, ctx[1]);
	return 0;
}

static __always_inline int exited(enum turn turn)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 id = ids_of(task);
	__u32 tgid = id >> 32, tid = id;

	note_turn(HOOK_EXIT, turn, task);
	end_calls(CELL_UNWOUND_EXIT, task->pid);
	/* Off the lists: numbers come again. A process ends with its last thread. */
	if (by_thread)
		bpf_map_delete_elem(&admitted_threads, &tid);
	if (by_process && task->signal->live.counter == 0)
		bpf_map_delete_elem(&admitted, &tgid);
	return 0;
}

/* args: struct task_struct *parent, struct task_struct *child */
static __always_inline int forked(__u64 *ctx, enum turn turn)
{
	struct task_struct *parent = (void *)ctx[0];
	struct task_struct *child = (void *)ctx[1];
	__u32 from = ids_of(parent) >> 32, to = ids_of(child) >> 32;
	__u8 yes = 1;

	note_turn(HOOK_FORK, turn, child);
	if (!follow || from == to || !bpf_map_lookup_elem(&admitted, &from))
		return 0;
	if (bpf_map_update_elem(&admitted, &to, &yes, BPF_ANY))
		__sync_fetch_and_add(&unfollowed[turn], 1);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int on_exec(__u64 *ctx) { return executed(ctx, FIRST); }

SEC("tp_btf/sched_process_exec")
int on_exec_again(__u64 *ctx) { return executed(ctx, AGAIN); }

SEC("tp_btf/sched_process_exit")
int on_exit(__u64 *ctx) { return exited(FIRST); }

SEC("tp_btf/sched_process_exit")
int on_exit_again(__u64 *ctx) { return exited(AGAIN); }

SEC("tp_btf/sched_process_fork")
int on_fork(__u64 *ctx) { return forked(ctx, FIRST); }

SEC("tp_btf/sched_process_fork")
int on_fork_again(__u64 *ctx) { return forked(ctx, AGAIN); }

#endif
