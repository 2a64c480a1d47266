/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_IRQ_CONTEXT_BPF_H
#define STACKD_BPF_IRQ_CONTEXT_BPF_H

/* Keeps track of what a CPU runs: a task, an interrupt, a softirq or a timer; and for whom. */

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
	__u32 is_own;	 /* not 0: the current task alone has raised the softirq that runs */
	/*
	 * Softirqs that have been raised and have not begun, a bit for each number: by the current
	 * task since it was switched to, and by anyone else. A softirq may be in both.
	 */
	__u32 raised_by_task;
	__u32 raised_by_others;
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
 * have missed the end of an interrupt. A softirq that the previous task has raised is another's
 * from here on.
 */
static __always_inline void irq_context_clear(struct irq_context *context)
{
	context->raised_by_others |= context->raised_by_task;
	__builtin_memset(context, 0, __builtin_offsetof(struct irq_context, raised_by_others));
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

/*
 * Notes who raises a softirq: the current task, also by a softirq of its own, or another. Runs with
 * interrupts disabled.
 */
static __always_inline void irq_context_raise(struct irq_context *context, __u32 number)
{
	__u32 bit = 1U << (number & 31), by = wake_context(context);

	if (by == WAKE_TASK || (by == WAKE_SOFTIRQ && context->is_own))
		context->raised_by_task |= bit;
	else
		context->raised_by_others |= bit;
}

/* Begins a softirq. An interrupt may raise another one meanwhile. */
static __always_inline void irq_context_enter_softirq(struct irq_context *context, __u32 number)
{
	__u32 bit = 1U << (number & 31);

	irq_context_enter(&context->softirq);
	context->is_own = context->raised_by_task & ~context->raised_by_others & bit;
	__sync_fetch_and_and(&context->raised_by_task, ~bit);
	__sync_fetch_and_and(&context->raised_by_others, ~bit);
}

#endif
