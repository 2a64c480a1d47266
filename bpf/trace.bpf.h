/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_TRACE_BPF_H
#define STACKD_BPF_TRACE_BPF_H

/*
 * Records the words of a user stack that a walk depended on. As long as they have not changed, the
 * stack has not changed either (see ustack_cache.bpf.h). The trace is part of struct unwind_walk.
 */

#include <linux/types.h>

#include <bpf/bpf_helpers.h>

enum {
	TRACE_WORDS = 128,
	TRACE_PARTS = 8,
	TRACE_BYTES = 8192,
	/*
	 * a word that lies more than this number of bytes above the last recorded range of the
	 * stack begins a new range
	 */
	TRACE_GAP = 512,
};

/*
 * The words of the user stack that a walk depended on, grouped into ranges of the stack ("parts").
 * To compare the words later, each range is copied by one read. The copies of all ranges are stored
 * one after the other.
 */
struct unwind_trace {
	__u64 value[TRACE_WORDS];
	__u64 from[TRACE_PARTS]; /* stack address at which each range begins */
	__u16 at[TRACE_WORDS];	 /* position of each word in the copy, in words */
	__u16 part[TRACE_PARTS]; /* position of each part in the copy, in bytes */
	__u32 n, n_parts;
	__u32 bytes;	  /* size of all parts together, in bytes */
	__u32 is_partial; /* 1: the walk also depended on data that this struct lacks */
	__u32 has_bp;	  /* 1: the walk depended on the value of bp in the first frame */
	__u32 pad;
};

/*
 * Records in the trace that the walk depends on a word of the stack: it read `value` at the address
 * `from`.
 */
static __always_inline void trace_add(struct unwind_trace *t, __u64 from, __u64 value)
{
	__u32 i = t->n, part = (t->n_parts - 1) & (TRACE_PARTS - 1), begin = t->part[part];
	__u64 at = from - t->from[part] + begin;

	if (t->is_partial)
		return;
	if (!t->n_parts || at < begin || at > t->bytes + TRACE_GAP) {
		if (t->n_parts == TRACE_PARTS)
			t->is_partial = 1;
		part = t->n_parts++ & (TRACE_PARTS - 1);
		at = t->bytes;
		t->from[part] = from;
		t->part[part] = (__u16)at;
	}
	if (i >= TRACE_WORDS || at >= TRACE_BYTES - 8 || from & 7)
		t->is_partial = 1;
	t->value[i & (TRACE_WORDS - 1)] = value;
	t->at[i & (TRACE_WORDS - 1)] = (__u16)(at / 8);
	t->n = i + 1;
	if (at + 8 > t->bytes)
		t->bytes = (__u32)at + 8;
}

#endif
