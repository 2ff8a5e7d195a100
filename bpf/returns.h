/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the kernel keeps of a thread's pending returns, of all tracers together. */
#ifndef UPROBETOP_RETURNS_H
#define UPROBETOP_RETURNS_H

#define MAX_URETPROBE_DEPTH 64 /* kernel/events/uprobes.c */

/*
 * How many there are. prepare_uretprobe() looks at the same number after the program
 * of a hit.
 */
static __always_inline __u64 returns_pending(struct task_struct *task)
{
	struct uprobe_task *utask = task->utask;

	return utask ? utask->depth : 0;
}

/* Bytes that a return takes off the stack. */
static __always_inline __u64 return_word(struct pt_regs *ctx)
{
#if defined(__TARGET_ARCH_x86)
	return ctx->cs == 0x23 ? 4 : 8; /* 0x23: __USER32_CS */
#else
	return 0;
#endif
}

/*
 * Was this function jumped to at the end of another one that is probed for its
 * return (a tail call)? Then its return address is the kernel's trampoline.
 */
static __always_inline int tail_called(struct pt_regs *ctx, struct task_struct *task)
{
	struct mm_struct *mm = task->mm;
	struct xol_area *area = mm ? mm->uprobes_state.xol_area : 0;
	__u64 to = 0;

	if (!area)
		return 0;
#if defined(__TARGET_ARCH_x86)
	if (bpf_probe_read_user(&to, return_word(ctx) == 4 ? 4 : 8, (void *)ctx->sp))
		return 0;
#else
	to = ctx->regs[30];
#endif
	return to == area->vaddr;
}

#endif
