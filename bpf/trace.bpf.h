/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_TRACE_BPF_H
#define STACKD_BPF_TRACE_BPF_H

/*
 * By what a walk of a user stack went on: in go words of the stack as it reads them, to be compared
 * later by again.bpf.h. Owned by the walk.
 */

#include <linux/types.h>

#include <bpf/bpf_helpers.h>

enum {
	TRACE_WORDS = 128,
	TRACE_PARTS = 8,
	TRACE_BYTES = 8192,
	TRACE_GAP = 512, /* what lies between two words of a part at most: dearer than a call */
};

/*
 * The words of the stack that led a walk on, by their places in the parts of the stack they are
 * in, one part behind the other.
 */
struct unwind_trace {
	__u64 value[TRACE_WORDS];
	__u64 from[TRACE_PARTS]; /* addresses */
	__u16 at[TRACE_WORDS];	 /* in words */
	__u16 part[TRACE_PARTS]; /* where it begins, in bytes */
	__u32 n, n_parts;
	__u32 bytes;	  /* of all parts */
	__u32 is_partial; /* there was more */
	__u32 has_bp;	  /* the first frame's bp counts */
	__u32 pad;
};

/* The walk goes on by this word. */
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
