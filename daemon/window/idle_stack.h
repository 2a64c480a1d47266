/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_IDLE_STACK_H
#define STACKD_DAEMON_WINDOW_IDLE_STACK_H

/* Decides by its functions whether a stack is that of a thread that waits for work. Any thread. */

#include <stdbool.h>

#include "daemon/window/stack.h"

/*
 * The maximum number of functions above a wait that is idle only in the main loop of a thread, see
 * idle_stack(). Two of them are those of libc that start each thread.
 */
enum { IDLE_LOOP_MAX = 6 };

/*
 * True if the stack, whose frames have their names, shows a thread that waits for work. `functions`
 * is a list of names that ends with NULL. The stack is idle if
 * - one of them is a function of a kernel stack, or the innermost function of a user stack, or
 * - one of them is the function that called libc's own functions for waiting, which are the
 *   innermost of a user stack, and there are at most IDLE_LOOP_MAX functions above it. Threads of
 *   pools call pthread_cond_wait in this way. A thread that calls it deeper in its stack may wait
 *   for a lock or for an answer, or
 * - the runtime of a language waits there in a thread of its own: Go, the JVM, node, Tokio.
 */
bool idle_stack(char *const *functions, const struct stack *stack);

#endif
