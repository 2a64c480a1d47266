/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_IRQ_CONTEXT_BPF_H
#define STACKD_BPF_IRQ_CONTEXT_BPF_H

/* In go interrupts, softirqs and timers as they come and go; out comes in what context a CPU is. */

#include "layout.h"

/*
 * What runs on a CPU on top of its task, by the tracepoints around it: the kernel's own count of it
 * is a variable that not every kernel shows to programs.
 */
struct irq_context {
	__u32 irq; /* how deep */
	__u32 softirq;
	__u32 timer;
	__u32 timer_irq; /* irq as it was when the timer's function began */
};

static __always_inline void irq_context_enter(__u32 *depth)
{
	++*depth;
}

/* The one that was entered before the programs were there has no mark. */
static __always_inline void irq_context_leave(__u32 *depth)
{
	if (*depth)
		--*depth;
}

/* Where tasks change there is nothing on top of them, and no mark that was missed is to stay. */
static __always_inline void irq_context_clear(struct irq_context *context)
{
	__builtin_memset(context, 0, sizeof(*context));
}

static __always_inline __u32 wake_context(const struct irq_context *context)
{
	if (context->timer && context->irq == context->timer_irq)
		return WAKE_TIMER;
	if (context->irq)
		return WAKE_IRQ;
	return context->softirq ? WAKE_SOFTIRQ : WAKE_TASK;
}

#endif
