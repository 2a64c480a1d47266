/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_REASON_FIND_H
#define STACKD_DAEMON_WINDOW_REASON_FIND_H

/*
 * Finds out for which reason a thread waits, from its state and from the functions in its stacks.
 * Any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "common/wait_reason.h"
#include "daemon/window/stack.h"

/* The maximum number of frames of a stack that reason_find() looks at, from the leaf on. */
enum { REASON_FRAMES = 32 };

/*
 * Returns the reason of a wait with this task state and these stacks, each of which may be NULL;
 * REASON_UNKNOWN if no function in them is known. Keeps the result for a stack in stack->reason.
 * Frames that a query has not loaded are not looked at.
 */
enum wait_reason reason_find(uint32_t state, struct stack *kernel, struct stack *user);

/*
 * True if functions in a user stack, whose frames have their names, show that the thread waits for
 * what its program has made, such as a lock of a database. See STACK_IS_OF_PROGRAM.
 */
bool reason_is_of_program(const struct stack *user);

#endif
