/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The few kernel types that are needed, with the few members that are read.
 * Offsets come from the running kernel's BTF (CO-RE).
 */
#ifndef UPROBETOP_KERNEL_H
#define UPROBETOP_KERNEL_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* kernel/events/uprobes.c: the page with the return trampoline, at its start. */
struct xol_area {
	unsigned long vaddr;
};

struct uprobes_state {
	struct xol_area *xol_area;
};

struct mm_struct {
	struct uprobes_state uprobes_state;
};

/* include/linux/uprobes.h: a pending return, with the stack pointer at entry. */
struct return_instance {
	unsigned long stack;
	struct return_instance *next; /* of the call around it */
};

/* depth = pending returns of this task, all tracers'. */
struct uprobe_task {
	struct return_instance *return_instances;
	unsigned int depth;
};

typedef struct {
	int counter;
} atomic_t;

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

/* A number of a thread or process in one PID namespace. */
struct upid {
	int nr;
	struct pid_namespace *ns;
};

/* Its numbers in all of them, from the initial one (level 0) to its own. */
struct pid {
	unsigned int level;
	struct upid numbers[];
};

enum pid_type { PIDTYPE_PID, PIDTYPE_TGID };

struct signal_struct {
	atomic_t live; /* threads that have not begun to exit */
	struct pid *pids[4];
};

/* kernel/sched/sched.h: the clocks of a CPU as they were at their last update, ns. */
struct rq {
	__u64 clock;      /* sched_clock */
	__u64 clock_task; /* less interrupts and what a hypervisor took, as far as the kernel accounts for them */
};

struct cfs_rq {
	struct rq *rq; /* with CONFIG_FAIR_GROUP_SCHED */
};

struct sched_entity {
	__u64 exec_start;       /* clock_task when the next was brought up to date */
	__u64 sum_exec_runtime; /* ns; at ticks and switches */
	struct cfs_rq *cfs_rq;  /* of the CPU, whatever the class; with CONFIG_FAIR_GROUP_SCHED */
};

struct sched_info { /* without CONFIG_SCHED_INFO it is empty */
	unsigned long long run_delay; /* ns */
};

struct task_struct {
	unsigned int __state; /* 0: running, or ready to */
	int pid, tgid;
	struct pid *thread_pid;
	char comm[16];
	unsigned long sas_ss_sp, sas_ss_size; /* sigaltstack */
	struct mm_struct *mm;
	struct signal_struct *signal;
	struct uprobe_task *utask;
	struct sched_entity se;
	struct sched_info sched_info;
	unsigned long nvcsw, nivcsw, min_flt, maj_flt;
};

/* include/linux/bpf.h: what runs through a file that a BPF program writes. */
struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task; /* 0: there are no more */
};

#pragma clang attribute pop

/*
 * The registers as a uprobe program sees them: not CO-RE, the layout is ABI.
 * WORD is what a return takes off the stack.
 */
#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8;
	unsigned long ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs { /* struct user_pt_regs */
	__u64 regs[31];
	__u64 sp, pc, pstate;
};
#else
#error "x86-64 and arm64 only"
#endif

#endif
