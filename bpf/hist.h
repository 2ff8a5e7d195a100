/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Counts a latency: the log-linear histogram that probes/hist reads. */
#ifndef UPROBETOP_HIST_H
#define UPROBETOP_HIST_H

/*
 * Linux >= 6.10; elsewhere the extremes can miss a value if a thread is
 * preempted between the comparison and the store. User space holds them against
 * the histogram, which has counted that value.
 */
extern void bpf_preempt_disable(void) __ksym __weak;
extern void bpf_preempt_enable(void) __ksym __weak;

/* 64 bits throughout: halves cost shifts, over which the verifier of 6.1 loses bounds. */
static __always_inline __u64 log2_u64(__u64 v)
{
	__u64 r = 0, s;

	s = (v > 0xffffffff) << 5; v >>= s; r |= s;
	s = (v > 0xffff) << 4; v >>= s; r |= s;
	s = (v > 0xff) << 3; v >>= s; r |= s;
	s = (v > 0xf) << 2; v >>= s; r |= s;
	s = (v > 0x3) << 1; v >>= s; r |= s;
	return r | (v >> 1);
}

static __always_inline __u64 bucket_of(__u64 ns)
{
	__u64 e;

	if (ns < HIST_SUB)
		return ns;
	e = log2_u64(ns);
	if (e >= HIST_GROUPS + 2)
		return (HIST_GROUPS - 1) * HIST_SUB;
	return (e - 3) * HIST_SUB + ((ns >> (e - 4)) & (HIST_SUB - 1));
}

/* Raises value[field] to v. Rare: the extremes settle soon. */
static __noinline void raise(struct cell *c, __u32 field, __u64 v)
{
	if (!c)
		return;
	if (bpf_preempt_disable)
		bpf_preempt_disable();
	if (field == CELL_MAX_NS && v > c->value[CELL_MAX_NS])
		c->value[CELL_MAX_NS] = v;
	if (field == CELL_MIN_NS_NOT && v > c->value[CELL_MIN_NS_NOT])
		c->value[CELL_MIN_NS_NOT] = v;
	if (bpf_preempt_enable)
		bpf_preempt_enable();
}

static __always_inline void record_latency(__u32 slot, struct cell *c, __u64 ns)
{
	__u32 i = bpf_get_smp_processor_id() * max_timed + slot;
	struct hist *h = slot < max_timed ? bpf_map_lookup_elem(&hists, &i) : 0;
	__u64 b = bucket_of(ns);

	if (!h || b >= HIST_BUCKETS)
		return;
	if (!h->used[b / HIST_SUB])
		h->used[b / HIST_SUB] = 1;
	increase(&h->count[b], 1);
	add(c, CELL_SUM_NS, ns);
	if (ns > c->value[CELL_MAX_NS])
		raise(c, CELL_MAX_NS, ns);
	if (~ns > c->value[CELL_MIN_NS_NOT])
		raise(c, CELL_MIN_NS_NOT, ~ns);
}

#endif
