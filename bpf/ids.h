/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Ids of processes and threads, as uprobetop's own PID namespace has them. In the
 * initial one they are the kernel's own, and the rest is dead code that the verifier
 * takes out.
 */
#ifndef UPROBETOP_IDS_H
#define UPROBETOP_IDS_H

#define MAX_PID_NS_LEVEL 32 /* include/linux/pid_namespace.h */

/* Set before loading: the inode of that namespace; 0: it is the initial one. */
volatile const __u32 pid_namespace = 0;

/*
 * The number that a struct pid has in that namespace; 0: none, it is outside. The
 * first look finds those of the namespace itself, the others those further inside. A
 * function: see uprobetop.bpf.c of stack.
 */
static __noinline __u32 number_here(struct pid *pid)
{
	__u32 level = BPF_CORE_READ(pid, level);

	for (__u32 up = 0; up <= MAX_PID_NS_LEVEL && up <= level; up++) {
		__u64 at = (level - up) * (__u64)bpf_core_type_size(struct upid);
		struct upid *number = (void *)pid->numbers + at;

		if (BPF_CORE_READ(number, ns, ns.inum) == pid_namespace)
			return BPF_CORE_READ(number, nr);
	}
	return 0;
}

/* A task's process (high half) and thread, as bpf_get_current_pid_tgid() has them. */
static __always_inline __u64 ids_of(struct task_struct *task)
{
	struct pid *thread, *process;

	if (!pid_namespace)
		return (__u64)task->tgid << 32 | (__u32)task->pid;
	thread = BPF_CORE_READ(task, thread_pid);
	process = BPF_CORE_READ(task, signal, pids[PIDTYPE_TGID]);
	return (__u64)number_here(process) << 32 | number_here(thread);
}

#endif
