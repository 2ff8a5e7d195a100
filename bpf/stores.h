/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The in-flight store: where a thread's stack of frames is kept. In task storage,
 * or in a preallocated hash by thread id; what is done with a stack (pairing.h) is
 * the same for both. The third store keeps no stack: session.bpf.c.
 *
 * The choice is a constant: the verifier drops the branches that are not taken.
 */
#ifndef UPROBETOP_STORES_H
#define UPROBETOP_STORES_H

/* Set before loading. */
volatile const __u32 hashed = 0;    /* in `stacks_by_thread`, not in `stacks` */
volatile const __u32 stackless = 0; /* in neither: timed probes have the program `session` */

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct stack);
} stacks SEC(".maps");

/*
 * Key: thread id, as the host has it. Never an LRU: that would drop the stack of
 * a thread that is in a call. If it is full, hits are missed and counted as such.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct stack);
} stacks_by_thread SEC(".maps");

/* What a new entry is made of: 2 kB have no room on the stack of a program. */
static const volatile struct stack no_calls;

/* Functions, because of the stack: see uprobetop.bpf.c. */
static __noinline struct stack *hashed_stack(__u32 tid)
{
	return bpf_map_lookup_elem(&stacks_by_thread, &tid);
}

static __noinline struct stack *new_hashed_stack(__u32 tid)
{
	bpf_map_update_elem(&stacks_by_thread, &tid, (const void *)&no_calls, BPF_NOEXIST);
	return bpf_map_lookup_elem(&stacks_by_thread, &tid);
}

/* The current thread's stack; 0: it was in no call yet. tid: of when it was. */
static __always_inline struct stack *stack_of(struct task_struct *task, __u32 tid)
{
	if (hashed)
		return hashed_stack(tid);
	return bpf_task_storage_get(&stacks, task, 0, 0);
}

/* Likewise, of a thread that has kept its id: who needs none does not ask for it. */
static __always_inline struct stack *find_stack(struct task_struct *task)
{
	if (hashed)
		return hashed_stack(bpf_get_current_pid_tgid());
	return bpf_task_storage_get(&stacks, task, 0, 0);
}

/* Likewise, made if need be; 0: there is no room for it. */
static __always_inline struct stack *need_stack(struct task_struct *task)
{
	struct stack *s;

	if (!hashed)
		return bpf_task_storage_get(&stacks, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	s = hashed_stack(bpf_get_current_pid_tgid());
	return s ? s : new_hashed_stack(bpf_get_current_pid_tgid());
}

/* The thread that had this id is in no call any more. */
static __always_inline void drop_stack(__u32 tid)
{
	if (hashed) /* task storage goes with its thread */
		bpf_map_delete_elem(&stacks_by_thread, &tid);
}

#endif
