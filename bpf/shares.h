/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * By thread: for a watched probe, what each thread did of it. A thread adds to an
 * entry of its own; one that finds no room adds to the entry of the others, which
 * is made when watching begins. So the entries of a probe together are what its
 * cells counted meanwhile.
 *
 * At each tick, flush_shares writes the entries that changed into the ring buffer
 * `records`. As in flush.h, what was sent is remembered, and only once its place in
 * the ring was had.
 */
#ifndef UPROBETOP_SHARES_H
#define UPROBETOP_SHARES_H

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct share_key);
	__type(value, struct share);
} shares SEC(".maps");

/* One entry a watched probe, of the thread OTHERS. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1024);
	__type(key, struct share_key);
	__type(value, struct share);
} other_shares SEC(".maps");

/*
 * A thread found no room: until the next tick nobody tries, which would cost more
 * than all the rest.
 */
volatile __u32 shares_full;

static const struct share no_share;

/* A thread's name is read again now and then: many are named after they began. */
enum { NAMED_EVERY = 64 };

/* The current thread's entry, or that of the others; 0: the probe is not watched any more. */
static __always_inline struct share *share_of(__u64 cookie)
{
	__u64 id = ids_of(bpf_get_current_task_btf());
	struct share_key key = { .cookie = cookie, .tgid = id >> 32, .tid = id };
	struct share *s = bpf_map_lookup_elem(&shares, &key);

	if (!s && !shares_full) {
		if (bpf_map_update_elem(&shares, &key, &no_share, BPF_NOEXIST))
			shares_full = 1;
		else
			s = bpf_map_lookup_elem(&shares, &key);
	}
	if (!s) {
		key.tgid = key.tid = OTHERS;
		return bpf_map_lookup_elem(&other_shares, &key);
	}
	if (s->hits < NAMED_EVERY || s->hits % NAMED_EVERY == 0)
		bpf_get_current_comm(s->comm, sizeof(s->comm));
	return s;
}

static __noinline void share_hit(__u64 cookie)
{
	struct share *s = share_of(cookie);

	if (s)
		increase(&s->hits, 1);
}

/* The returns come last: with them the entry has changed, see flush_share. */
static __noinline void share_return(__u64 cookie, __u64 latency)
{
	struct share *s = share_of(cookie);
	__u64 b = bucket_of(latency) / SHARE_WIDTH;

	if (!s || b >= SHARE_BUCKETS)
		return;
	increase(&s->count[b], 1);
	increase(&s->sum_ns, latency);
	/* Of the others, two may do so at once: user space holds it against the buckets. */
	if (latency > s->max_ns)
		s->max_ns = latency;
	increase(&s->returned, 1);
}

/*
 * Writes an entry if it has changed, once a pass: a thread that never rests keeps
 * nobody waiting.
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
	struct share_args a = *args;

	a.deadline = bpf_ktime_get_ns() + a.budget_ns;
	a.count = a.more = 0;
	bpf_for_each_map_elem(&shares, flush_share, &a, 0);
	if (!a.more)
		bpf_for_each_map_elem(&other_shares, flush_share, &a, 0);
	if (!a.more)
		shares_full = 0;
	*args = a;
	return 0;
}

#endif
