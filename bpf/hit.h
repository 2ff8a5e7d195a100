/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What every program needs that runs at a hit: sizes, counters, and whose hits count. */
#ifndef UPROBETOP_HIT_H
#define UPROBETOP_HIT_H

#include "ids.h"

/* Set before loading. */
volatile const __u32 max_probes = 1024; /* slots: cells has max_probes a CPU */
volatile const __u32 max_timed = 256;   /* histograms: hists has max_timed a CPU */
volatile const __u32 cpus = 1;          /* possible CPUs */
volatile const __u32 filtered = 0;      /* only hits that one of these lets through count */
volatile const __u32 by_process = 0;    /* processes in `admitted` */
volatile const __u32 by_thread = 0;     /* threads in `admitted_threads` */
volatile const __u32 by_cgroup = 0;     /* so many cgroups, and those below them */
volatile const __u32 follow = 0;        /* what admitted processes start is admitted */
volatile const __u64 tick_ns = 0;       /* the longest time between two ticks of a busy CPU */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct probe_switch);
} switches SEC(".maps");

/* Index: cpu * max_probes + slot. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct cell);
} cells SEC(".maps");

/* Index: cpu * max_timed + probe_switch.hist. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, struct hist);
} hists SEC(".maps");

/* Processes whose hits count, if `by_process`; the value says nothing. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, __u8);
} admitted SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u8);
} admitted_threads SEC(".maps");

/* Directories of cgroup v2. */
struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, MAX_CGROUPS);
	__type(key, __u32);
	__type(value, __u32);
} cgroups SEC(".maps");

/*
 * Tests build this with faults, to show what they do: PLAIN_ADDS adds as if
 * nobody could preempt us, LOSE_POP=n leaves out every n-th frame taken off. (An
 * emulator takes interrupts only where a block of instructions ends: the branch
 * between reading and writing is such a place. A real CPU needs none.)
 */
static __always_inline void increase(__u64 *to, __u64 n)
{
#ifdef PLAIN_ADDS
	__u64 was = *(volatile __u64 *)to;

	if (was != ~0ULL)
		*(volatile __u64 *)to = was + n;
#else
	__sync_fetch_and_add(to, n);
#endif
}

static __always_inline void add(struct cell *c, __u64 field, __u64 n)
{
#ifdef LOSE_POP
	if (field == CELL_POPPED && c->value[CELL_HITS] % LOSE_POP == 0)
		return;
#endif
	increase(&c->value[field], n);
}

static __always_inline struct cell *cell_of(__u32 slot)
{
	__u32 i = bpf_get_smp_processor_id() * max_probes + slot;

	if (slot >= max_probes)
		return 0;
	return bpf_map_lookup_elem(&cells, &i);
}

/* The switch of a cookie's slot, unless the slot has another probe now. */
static __always_inline struct probe_switch *switch_of(__u64 cookie)
{
	__u32 slot = cookie;
	struct probe_switch *sw = bpf_map_lookup_elem(&switches, &slot);

	return sw && sw->cookie == cookie ? sw : 0;
}

/*
 * Where a frame that is unwound counts. Nowhere once its probe is off: the call may
 * have returned unseen, and stays in flight, as it was when we last looked.
 */
static __always_inline struct cell *cell_of_frame(struct frame *f)
{
	struct probe_switch *sw = switch_of(f->cookie);

	return sw && (sw->flags & SWITCH_ON) ? cell_of(f->cookie) : 0;
}

/* Is the current thread on one of the lists? A function: see uprobetop.bpf.c of stack. */
static __noinline int listed(void)
{
	__u64 id = by_process || by_thread ? ids_of(bpf_get_current_task_btf()) : 0;
	__u32 tgid = id >> 32, tid = id;

	if (by_process && bpf_map_lookup_elem(&admitted, &tgid))
		return 1;
	if (by_thread && bpf_map_lookup_elem(&admitted_threads, &tid))
		return 1;
	for (__u32 i = 0; i < MAX_CGROUPS && i < by_cgroup; i++)
		if (bpf_current_task_under_cgroup(&cgroups, i) == 1)
			return 1;
	return 0;
}

/* Does the current thread's hit count? */
static __always_inline int admits(void) { return !filtered || listed(); }

#endif
