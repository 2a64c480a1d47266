/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_IRQ_CONTEXT_BPF_H
#define STACKD_BPF_IRQ_CONTEXT_BPF_H

/* Keeps track of the context that a CPU runs in: a task, an interrupt, a softirq or a timer. */

#include "layout.h"

/*
 * The nesting of contexts on top of a CPU's task, counted by tracepoints around it: not every
 * kernel lets programs read its own count.
 */
struct irq_context {
	__u32 irq;	 /* nesting depth of interrupts */
	__u32 softirq;	 /* nesting depth of softirqs */
	__u32 timer;	 /* nesting depth of functions of expired timers */
	__u32 timer_irq; /* value of irq when the timer's function began */
};

static __always_inline void irq_context_enter(__u32 *depth)
{
	++*depth;
}

/* A context that was entered before the programs were attached was not counted. */
static __always_inline void irq_context_leave(__u32 *depth)
{
	if (*depth)
		--*depth;
}

/* At a task switch nothing runs on top of the task: clears what a missed exit left. */
static __always_inline void irq_context_clear(struct irq_context *context)
{
	__builtin_memset(context, 0, sizeof(*context));
}

/* Returns enum wake_context of a wakeup on this CPU now. */
static __always_inline __u32 wake_context(const struct irq_context *context)
{
	if (context->timer && context->irq == context->timer_irq)
		return WAKE_TIMER;
	if (context->irq)
		return WAKE_IRQ;
	return context->softirq ? WAKE_SOFTIRQ : WAKE_TASK;
}

#endif
