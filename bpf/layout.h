/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the kernel side and the Go side share. bpf2go makes the Go types and
 * constants from it: nothing here is typed twice.
 */
#ifndef UPROBETOP_LAYOUT_H
#define UPROBETOP_LAYOUT_H

#include <linux/types.h>

/*
 * A probe's cookie is its slot (low 32 bits: the index into every map) and the
 * slot's generation (high 32 bits), so that a late program run, or a frame left
 * on some thread's stack, of a probe that is gone never counts for the probe
 * that uses the slot now.
 */
struct probe_switch {
	__u64 cookie;
	__u64 slow_ns; /* calls that take at least this long are reported one by one */
	__u32 flags;   /* enum switch_flags */
	__u32 hist;    /* index into hists; only with SWITCH_TIMED */
};

enum switch_flags {
	SWITCH_ON = 1,    /* hits count */
	SWITCH_TIMED = 2, /* hits leave a frame for their return */
	SWITCH_CALLS = 4, /* slow calls are reported: entries remember the thread's state */
	SWITCH_ENDED = 8, /* the numbers are final: returns change nothing any more */
	SWITCH_WATCHED = 16, /* hits and returns are counted by thread as well */
};

/* Cgroups that a filter can name. */
enum filter_size { MAX_CGROUPS = 64 };

/*
 * A cell is what one CPU saw of one probe: counters, all but the two extremes
 * monotone. What they mean, and that the ledger balances,
 * is said in design terms:
 *
 *   hits = returned + in flight + unwound + missed,  in flight = pushed - popped
 *
 * Pushed and popped count frames, each where it happens; they are summed over
 * CPUs, because a call may start on one and end on another.
 */
enum cell_field {
	CELL_HITS = 0,
	CELL_RETURNED,
	CELL_SUM_NS,
	CELL_PUSHED,
	CELL_POPPED,
	CELL_UNWOUND_JUMP,
	CELL_UNWOUND_EXEC,
	CELL_UNWOUND_EXIT,
	CELL_ORPHANS,
	CELL_FILTERED,
	CELL_MISSED_DEPTH,
	CELL_MISSED_NO_SLOT,
	CELL_HELD_BACK,  /* slow calls that the rate limit did not let be reported */
	CELL_CALLS_LOST, /* and those that did not fit into the ring */
	CELL_CALLS_BUSY, /* or found it locked for too long (Linux >= 6.15) */
	CELL_CALLEES_NS, /* part of CELL_SUM_NS: in other timed functions, called directly */
	CELL_MAX_NS,
	CELL_MIN_NS_NOT, /* ~min, so that both extremes only grow, from 0 */
	CELL_FIELDS,
};

struct cell {
	__u64 value[CELL_FIELDS];
};

/*
 * A histogram: runs ("groups") of 16 buckets, as probes/hist describes them.
 * used[g] is set, by a plain store of 1, before the first count in group g: the
 * flush skips what nobody ever used.
 */
enum hist_size {
	HIST_SUB = 16,
	HIST_GROUPS = 34,
	HIST_BUCKETS = HIST_GROUPS * HIST_SUB,
};

struct hist {
	__u64 count[HIST_BUCKETS];
	__u8 used[40];
};

/*
 * A frame is a hit whose return has not come. The kernel keeps at most 64
 * pending returns a thread (MAX_URETPROBE_DEPTH), so no more frames are needed.
 */
enum stack_size { STACK_FRAMES = 64 };

struct frame {
	__u64 cookie;
	__u64 sp;      /* user stack pointer at entry */
	__u64 start;   /* CLOCK_MONOTONIC, ns */
	__u64 callees; /* in other timed functions that this call called itself, ns */
};

struct stack {
	__u64 depth;
	__u64 below; /* arguments of a loop that unwinds; see pairing.h */
	__u64 cause;
	struct frame frame[STACK_FRAMES];
};

/*
 * A record in the ring buffer `records`: counters of one probe, cumulative, and
 * where they belong. RECORD_CELL: a cell, index = CPU. RECORD_GROUP: a histogram
 * group summed over CPUs, index = group, in the first HIST_SUB values.
 * RECORD_TICK: every record of this flush has been written; value[0] = records
 * that did not fit, since the start (each was sent again), value[1] = processes
 * that were to be followed and could not be, since the start.
 */
enum record_kind {
	RECORD_CELL = 1,
	RECORD_GROUP,
	RECORD_TICK,
	RECORD_CALL,
	RECORD_SHARE,
	RECORD_INSIDE,     /* a struct call that has not returned; see inside.h */
	RECORD_ENUMERATED, /* and the end of them; of its struct call only `at` says something */
};

struct record {
	__u32 kind;
	__u32 index;
	__u64 cookie;
	__u64 at; /* CLOCK_MONOTONIC, ns: when it was read */
	__u64 value[CELL_FIELDS];
};

/* What the scheduler knows of a thread, since the thread began. Times in ns. */
enum thread_field {
	THREAD_ON_CPU = 0,
	THREAD_WAITING, /* ready to run, no CPU was free */
	THREAD_VOLUNTARY,
	THREAD_INVOLUNTARY,
	THREAD_MINOR_FAULTS,
	THREAD_MAJOR_FAULTS,
	THREAD_FIELDS,
};

/* What a call was at its entry, for its report; kept beside its frame. */
struct context {
	__u64 start; /* of the frame that it belongs to */
	__u64 args[3];
	__u64 thread[THREAD_FIELDS];
	__u64 updated; /* sched_clock, ns: of when thread[THREAD_ON_CPU] is */
};

struct contexts {
	struct context of[STACK_FRAMES];
};

/*
 * A record in the ring buffer `calls`: one call, RECORD_CALL. It begins as every
 * record does. A RECORD_INSIDE is a call as far as it has come.
 */
struct call {
	__u32 kind;
	__u32 cpu; /* on which it returned */
	__u64 cookie;
	__u64 at; /* CLOCK_MONOTONIC at the return, or when it was looked at, ns */
	__u64 start;
	__u64 callees;
	__u32 tgid; /* ids.h: 0 if the process is outside uprobetop's PID namespace */
	__u32 tid;
	__u64 known; /* enum call_known */
	__u64 args[3];
	__u64 result;
	__u64 thread[THREAD_FIELDS]; /* during the call */
	char comm[16];
	__s64 unaccounted; /* on a CPU at the return and not yet in THREAD_ON_CPU, less the same at the entry, ns */
	__u64 tick;        /* either is at most this, ns */
};

enum call_known {
	KNOWN_ENTRY = 1,   /* args and thread: the call began after it was asked for */
	KNOWN_WAITING = 2, /* the kernel keeps THREAD_WAITING (CONFIG_SCHED_INFO) */
	KNOWN_UPDATE = 4,  /* unaccounted is known (CONFIG_FAIR_GROUP_SCHED, and one clock for all) */
};

/*
 * At most so many calls of one probe are reported in one window of about 0.13 s:
 * a person reads fewer, and a program that is slow everywhere is not made slower.
 */
enum call_limit {
	CALLS_WINDOW_SHIFT = 27, /* window = time >> this */
	CALLS_PER_WINDOW = 128,
};

struct call_budget {
	__u64 window;
	__u64 used;
};

/*
 * What one thread did of a watched probe. Its histogram has the buckets of struct
 * hist, SHARE_WIDTH of them in one: 4 an octave.
 */
enum share_size {
	SHARE_WIDTH = 4,
	SHARE_BUCKETS = HIST_BUCKETS / SHARE_WIDTH,
};

enum share_thread { OTHERS = 0xffffffff }; /* tgid and tid of those that found no room */

struct share_key {
	__u64 cookie;
	__u32 tgid;
	__u32 tid;
};

struct share {
	char comm[16];
	__u64 hits;
	__u64 returned;
	__u64 sum_ns;
	__u64 max_ns;
	__u64 count[SHARE_BUCKETS];
	__u64 sent; /* a sum of what was sent last, and the pass in which it was */
	__u64 pass;
};

/*
 * A record in the ring buffer `records`: an entry, cumulative, RECORD_SHARE. It
 * begins as every record does; `sent` and `pass` say nothing in it.
 */
struct share_record {
	__u32 kind;
	__u32 unused;
	__u64 cookie;
	__u64 at; /* CLOCK_MONOTONIC, ns: when it was read */
	__u32 tgid;
	__u32 tid;
	struct share share;
};

/*
 * One run of flush_shares. The runs of one tick have one number, never used before,
 * and go on until none has more.
 */
struct share_args {
	__u64 pass;
	__u64 budget_ns;
	__u64 deadline; /* the kernel's own */
	__u32 count;    /* likewise: records of this run */
	__u32 more;     /* out: an entry is still to be sent */
};

/*
 * One run of the flush: cells of the slots first ≤ slot < last. It stops where
 * budget_ns is used up or the ring is full; `next` is the slot to go on with.
 * A run that reaches `last` ends the tick, with a RECORD_TICK.
 */
struct flush_args {
	__u32 first;
	__u32 last;
	__u64 budget_ns;
	__u32 next; /* out */
	__u32 unused;
};

#endif
