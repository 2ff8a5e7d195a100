/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The cold path: writes the cells, the histogram groups and the entries of threads
 * (shares.h) that changed since they were last sent. What was sent is remembered as
 * one sum of monotone counters, and only once its place in the ring was had: a full
 * ring delays a number and never loses it. The sum is of the very values in the
 * record, or of what was read before them.
 *
 * What the loops share lives in a map, not on the stack: the verifier then has
 * nothing to follow from one turn to the next.
 */
#ifndef UPROBETOP_FLUSH_H
#define UPROBETOP_FLUSH_H

struct flush_state {
	__u64 deadline;
	__u64 refused; /* records that did not fit, since the start */
	__u64 cookie;
	__u64 returned; /* of this probe, over CPUs, as read now */
	__u64 group;
	__u32 slot;
	__u32 hist;
	__u32 full;
	__u64 sum[HIST_SUB]; /* of this group, over CPUs */
};

struct sent_groups {
	__u64 calls; /* over all groups */
	__u64 group[HIST_GROUPS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct flush_state);
} flushing SEC(".maps");

/* Index as in cells. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u64);
} sent_cells SEC(".maps");

/* Index: probe_switch.hist. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, struct sent_groups);
} sent_hists SEC(".maps");

static __always_inline struct flush_state *flush_state(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&flushing, &zero);
}

static __always_inline struct record *reserve(struct flush_state *f, __u32 kind, __u32 index)
{
	struct record *r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);

	if (!r) {
		f->full = 1;
		f->refused++;
		return 0;
	}
	r->kind = kind;
	r->index = index;
	r->cookie = f->cookie;
	r->at = bpf_ktime_get_ns();
	return r;
}

/* User space reads when it wants to: nobody is woken. */
static __always_inline void submit(struct record *r)
{
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
}

static long flush_cell(__u32 cpu, void *unused)
{
	struct flush_state *f = flush_state();
	struct record *r;
	struct cell *c;
	__u64 *sent, sum = 0;
	__u32 i;

	if (!f)
		return 1;
	i = cpu * max_probes + f->slot;
	c = bpf_map_lookup_elem(&cells, &i);
	sent = bpf_map_lookup_elem(&sent_cells, &i);
	if (!c || !sent)
		return 1;
	f->returned += c->value[CELL_RETURNED];
	/*
	 * Cheap first look; what counts as sent is summed from the record itself.
	 * Without the extremes: ~min is so large that the sum could come out as
	 * before, and CELL_RETURNED, which follows them, says the same.
	 */
	for (__u32 k = 0; k < CELL_MAX_NS; k++)
		sum += c->value[k];
	if (sum == *sent)
		return 0;
	r = reserve(f, RECORD_CELL, cpu);
	if (!r)
		return 1;
	sum = 0;
	for (__u32 k = 0; k < CELL_FIELDS; k++) {
		__u64 v = *(volatile __u64 *)&c->value[k];

		r->value[k] = v;
		if (k < CELL_MAX_NS)
			sum += v;
	}
	*sent = sum;
	submit(r);
	return 0;
}

/* Adds one CPU's part of the group to the state's sums. */
static long sum_group(__u32 cpu, void *unused)
{
	struct flush_state *f = flush_state();
	struct hist *h;
	__u64 group;
	__u32 i;

	if (!f)
		return 1;
	i = cpu * max_timed + f->hist;
	h = bpf_map_lookup_elem(&hists, &i);
	group = f->group;
	if (!h || group >= HIST_GROUPS)
		return 1;
	if (!h->used[group])
		return 0;
	for (__u32 k = 0; k < HIST_SUB; k++)
		f->sum[k] += h->count[group * HIST_SUB + k];
	return 0;
}

static long flush_group(__u64 group, void *unused)
{
	struct flush_state *f = flush_state();
	struct sent_groups *sent;
	struct record *r;
	__u64 sum = 0;

	if (!f || group >= HIST_GROUPS)
		return 1;
	sent = bpf_map_lookup_elem(&sent_hists, &f->hist);
	if (!sent)
		return 1;
	f->group = group;
	for (__u32 k = 0; k < HIST_SUB; k++)
		f->sum[k] = 0;
	bpf_loop(cpus, sum_group, 0, 0);
	for (__u32 k = 0; k < HIST_SUB; k++)
		sum += f->sum[k];
	group = f->group; /* the verifier of 6.1 has forgotten its bounds */
	if (group >= HIST_GROUPS)
		return 1;
	if (sum == sent->group[group])
		return 0;
	r = reserve(f, RECORD_GROUP, group);
	if (!r)
		return 1;
	for (__u32 k = 0; k < CELL_FIELDS; k++)
		r->value[k] = k < HIST_SUB ? f->sum[k] : 0;
	sent->calls += sum - sent->group[group];
	sent->group[group] = sum;
	submit(r);
	return 0;
}

static __always_inline void flush_probe(struct flush_state *f)
{
	struct probe_switch *sw = bpf_map_lookup_elem(&switches, &f->slot);
	struct sent_groups *sent;

	if (!sw || !sw->cookie) /* the slot has no probe */
		return;
	f->cookie = sw->cookie;
	f->hist = sw->hist;
	f->returned = 0;
	bpf_loop(cpus, flush_cell, 0, 0);
	if (f->full || !(sw->flags & SWITCH_TIMED))
		return;
	/* Nothing new in the histogram if as many calls were sent as returned. */
	sent = bpf_map_lookup_elem(&sent_hists, &f->hist);
	if (sent && sent->calls != f->returned)
		bpf_loop(HIST_GROUPS, flush_group, 0, 0);
}

static long flush_slot(__u32 i, struct flush_args *args)
{
	struct flush_state *f = flush_state();

	/* The first slot is always done: a run makes progress. */
	if (!f || (i && bpf_ktime_get_ns() >= f->deadline))
		return 1;
	f->slot = args->next;
	flush_probe(f);
	if (f->full)
		return 1;
	args->next++;
	return 0;
}

SEC("syscall")
int flush(struct flush_args *args)
{
	struct flush_state *f = flush_state();
	struct flush_args a = *args;
	struct record *r;

	if (!f)
		return 0;
	f->deadline = bpf_ktime_get_ns() + a.budget_ns;
	f->full = 0;
	a.next = a.first;
	if (a.first < a.last)
		bpf_loop(a.last - a.first, flush_slot, &a, 0);
	if (a.next >= a.last && !f->full) {
		f->cookie = 0;
		r = reserve(f, RECORD_TICK, 0);
		if (r) {
			for (__u32 k = 2; k < CELL_FIELDS; k++)
				r->value[k] = 0;
			r->value[0] = f->refused;
			r->value[1] = unfollowed[FIRST] > unfollowed[AGAIN] ? unfollowed[FIRST] : unfollowed[AGAIN];
			submit(r);
		}
	}
	*args = a;
	return 0;
}

/*
 * Writes an entry of a thread if it has changed, once a pass: a thread that never
 * rests keeps nobody waiting.
 */
static long flush_share(void *map, struct share_key *key, struct share *s, struct share_args *a)
{
	/* Before it is read for the record: what comes between is sent again. */
	__u64 sum = s->hits + s->returned + s->sum_ns;
	struct share_record *r;

	if (sum == s->sent || s->pass == a->pass)
		return 0;
	/* The first is always sent: a run makes progress. */
	r = a->count && bpf_ktime_get_ns() >= a->deadline ? 0 : bpf_ringbuf_reserve(&records, sizeof(*r), 0);
	if (!r) {
		a->more = 1;
		return 1;
	}
	r->kind = RECORD_SHARE;
	r->unused = 0;
	r->cookie = key->cookie;
	r->at = bpf_ktime_get_ns();
	r->tgid = key->tgid;
	r->tid = key->tid;
	if (bpf_probe_read_kernel(&r->share, sizeof(r->share), s)) {
		bpf_ringbuf_discard(r, BPF_RB_NO_WAKEUP);
		return 0;
	}
	s->sent = sum;
	s->pass = a->pass;
	a->count++;
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("syscall")
int flush_shares(struct share_args *args)
{
	volatile __u32 *full = no_room();
	struct share_args a = *args;

	a.deadline = bpf_ktime_get_ns() + a.budget_ns;
	a.count = a.more = 0;
	bpf_for_each_map_elem(&shares, flush_share, &a, 0);
	if (!a.more)
		bpf_for_each_map_elem(&other_shares, flush_share, &a, 0);
	if (full && !a.more)
		*full = 0;
	*args = a;
	return 0;
}

#endif
