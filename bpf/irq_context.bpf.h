/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_IRQ_CONTEXT_BPF_H
#define STACKD_BPF_IRQ_CONTEXT_BPF_H

/* Keeps track of what a CPU runs: a task, an interrupt, a softirq or a timer. */

#include "layout.h"

/*
 * How deeply interrupts, softirqs and timers are nested on top of a CPU's task. Programs at the
 * tracepoints around them count this, as not every kernel lets programs read its own count.
 */
struct irq_context {
	__u32 irq;	 /* nesting depth of interrupts */
	__u32 softirq;	 /* nesting depth of softirqs */
	__u32 timer;	 /* nesting depth of functions of expired timers */
	__u32 timer_irq; /* value of irq when the innermost timer's function began */
};

static __always_inline void irq_context_enter(__u32 *depth)
{
	++*depth;
}

/*
 * Decrements *depth when the CPU leaves an interrupt, a softirq or a timer. *depth is 0 already if
 * the CPU entered it before the programs were attached.
 */
static __always_inline void irq_context_leave(__u32 *depth)
{
	if (*depth)
		--*depth;
}

/*
 * Clears the depths at a task switch: nothing runs on top of the task then, but the programs may
 * have missed the end of an interrupt.
 */
static __always_inline void irq_context_clear(struct irq_context *context)
{
	__builtin_memset(context, 0, sizeof(*context));
}

/* Returns the context, an enum wake_context, of a wakeup that happens on this CPU now. */
static __always_inline __u32 wake_context(const struct irq_context *context)
{
	if (context->timer && context->irq == context->timer_irq)
		return WAKE_TIMER;
	if (context->irq)
		return WAKE_IRQ;
	return context->softirq ? WAKE_SOFTIRQ : WAKE_TASK;
}

#endif
