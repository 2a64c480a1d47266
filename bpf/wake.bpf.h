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

static __always_inline bool is_irq_entry(__u64 ip)
{
	return ip >= (__u64)&__irqentry_text_start && ip < (__u64)&__irqentry_text_end;
}

static __always_inline bool is_softirq_entry(__u64 ip)
{
	return ip >= (__u64)&__softirqentry_text_start && ip < (__u64)&__softirqentry_text_end;
}

struct irq_look {
	const struct scratch *stack;
	__u32 n; /* number of frames */
	__u32 has_irq;
};

/*
 * One iteration of bpf_loop(): looks whether a frame is the entry of an interrupt. In a plain loop,
 * the verifier would follow too many paths.
 */
static long irq_look_step(__u32 i, void *context)
{
	struct irq_look *look = context;

	if (i >= look->n || i >= STACK_DEPTH)
		return 1;
	if (is_irq_entry(look->stack->ip[i])) {
		look->has_irq = 1;
		return 1;
	}
	return 0;
}

/*
 * True if a softirq runs as part of what the current task does: the kernel runs it at once, as when
 * a task sends to a local socket. `r` is the size of the softirq's stack in bytes, as
 * bpf_get_stack() returned it. The stack shows it: softirqs that run at the end of an interrupt, on
 * the stack of whichever task was interrupted, have the interrupt's entry below them. Others may be
 * an interrupt's all the same, which came while the task had softirqs disabled: see
 * irq_context_raise().
 */
static __always_inline bool wake_is_own_softirq(const struct scratch *s, long r)
{
	struct irq_look look = { .stack = s };

	/* A stack that fills the buffer may have had more frames. */
	if (r <= 0 || r >= 8 * STACK_DEPTH)
		return false;
	look.n = (__u32)r / 8;
	bpf_loop(STACK_DEPTH, irq_look_step, &look, 0);
	return !look.has_irq;
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
		if (is_irq_entry(s->ip[i]) || is_softirq_entry(s->ip[i]))
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
