/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * By thread: for a watched probe, what each thread did of it. A thread adds to an
 * entry of its own; one that finds no room adds to the entry of the others, which
 * is made when watching begins. So the entries of a probe together are what its
 * cells counted meanwhile.
 *
 * The entries that changed travel at each tick: flush_shares in flush.h.
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
 * One number, not 0: a thread found no room. Until the next tick nobody tries, which
 * would cost more than all the rest. A map, because session.bpf.c shares it.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} shares_full SEC(".maps");

static const struct share no_share;

/* A thread's name is read again now and then: many are named after they began. */
enum { NAMED_EVERY = 64 };

static __always_inline volatile __u32 *no_room(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&shares_full, &zero);
}

/* The current thread's entry, or that of the others; 0: the probe is not watched any more. */
static __always_inline struct share *share_of(__u64 cookie)
{
	__u64 id = ids_of(bpf_get_current_task_btf());
	struct share_key key = { .cookie = cookie, .tgid = id >> 32, .tid = id };
	struct share *s = bpf_map_lookup_elem(&shares, &key);
	volatile __u32 *full = s ? 0 : no_room();

	if (full && !*full) {
		/* Of threads that share an entry, those outside, another one can be faster. */
		bpf_map_update_elem(&shares, &key, &no_share, BPF_NOEXIST);
		s = bpf_map_lookup_elem(&shares, &key);
		if (!s)
			*full = 1;
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

/* The returns come last: with them the entry has changed, see flush_share in flush.h. */
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

#endif
