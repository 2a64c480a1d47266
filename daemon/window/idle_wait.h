/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_IDLE_WAIT_H
#define STACKD_DAEMON_WINDOW_IDLE_WAIT_H

/*
 * Decides whether a wait is idle, such as that of a server that waits for work. Pure functions; any
 * thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "bpf/shared.h"
#include "daemon/window/stack.h"

/* Bits of a task's state in the kernel, from include/linux/sched.h. */
enum {
	TASK_UNINTERRUPTIBLE = 0x2,
	TASK_STOPPED = 0x4, /* with a prefix of two underscores there, as the next one */
	TASK_TRACED = 0x8,
	TASK_NOLOAD = 0x400,
};

/* True if ps shows the state as D: a signal does not end the wait. */
static inline bool wait_is_uninterruptible(uint32_t state)
{
	return !(state & (STATE_PREEMPTED | STATE_NEW)) &&
	       (state & (TASK_UNINTERRUPTIBLE | STATE_FROZEN)) && !(state & TASK_NOLOAD);
}

static inline bool stack_is_of_idle(const struct stack *stack)
{
	return stack && stack->is_idle && !(stack->flags & STACK_IS_AMBIGUOUS);
}

/* True if the thread waits for something certain, although it may sleep in epoll_wait(). */
static inline bool stack_is_of_program(const struct stack *stack)
{
	return stack && stack->flags & STACK_IS_OF_PROGRAM && !(stack->flags & STACK_IS_AMBIGUOUS);
}

/*
 * True if a wait is normal idling: of a kernel thread that waits for work, or of a thread that
 * sleeps in one of the functions that the settings list. Never true for a thread in uninterruptible
 * sleep (D), for one that is stopped, traced or frozen, whatever it did before that, for one that
 * waits for a CPU, or for one that waits for a lock of its program or the answer to a request.
 * `kernel` and `user` may be NULL.
 */
static inline bool wait_is_idle(uint32_t state, bool is_kernel, const struct stack *kernel,
				const struct stack *user)
{
	if (state & (STATE_PREEMPTED | STATE_NEW) || wait_is_uninterruptible(state))
		return false;
	if (state & (TASK_STOPPED | TASK_TRACED))
		return false;
	if (kernel && kernel->flags & STACK_IS_FROZEN)
		return false;
	if (stack_is_of_program(user))
		return false;
	return is_kernel || state & STATE_IDLE || stack_is_of_idle(kernel) ||
	       stack_is_of_idle(user);
}

#endif
