/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_WAKE_BPF_H
#define STACKD_BPF_WAKE_BPF_H

/* Finds where an interrupt's part of a stack ends, and hashes a path of wakers. */

#include "stack.bpf.h"

/*
 * Bounds of the sections with the entry functions of interrupts and softirqs
 * (include/linux/interrupt.h).
 */
extern const void __irqentry_text_start __ksym __weak;
extern const void __irqentry_text_end __ksym __weak;
extern const void __softirqentry_text_start __ksym __weak;
extern const void __softirqentry_text_end __ksym __weak;

static __always_inline bool is_entry(__u64 ip)
{
	if (ip >= (__u64)&__irqentry_text_start && ip < (__u64)&__irqentry_text_end)
		return true;
	return ip >= (__u64)&__softirqentry_text_start && ip < (__u64)&__softirqentry_text_end;
}

/*
 * Removes from a stack the callers of an interrupt's entry function, which are the interrupted
 * code. `r` is the size of the stack in bytes, as bpf_get_stack() returned it. Returns the size of
 * the rest.
 */
static __always_inline long wake_truncate(const struct scratch *s, long r)
{
	__u32 i;

	for (i = 0; i < STACK_DEPTH; i++) {
		if (r < 8 * (long)(i + 1))
			break;
		if (is_entry(s->ip[i]))
			return 8 * (long)(i + 1);
	}
	return r;
}

/* Returns a hash of a path of wakers, so that equal paths have one id. */
static __always_inline __u64 wake_path(const struct wake_link *links)
{
	const __u64 *words = (const __u64 *)links;
	__u64 h = hash_seed;
	__u32 i;

	for (i = 0; i < WAKE_LINKS * sizeof(*links) / 8; i++)
		h = hash_mix(h, words[i]);
	return h;
}

#endif
