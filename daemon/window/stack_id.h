/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_STACK_ID_H
#define STACKD_DAEMON_WINDOW_STACK_ID_H

/*
 * Ids of stacks: hashes over a stack's frames, from the leaf on. Equal stacks have the same id in
 * every process and after every start of the daemon. An id is never below STACK_ID_FIRST: the lower
 * ids stand for reasons why there is no stack. Pure functions; any thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "daemon/window/stack.h"

/* Returns a hash over the exact address of each frame within its file. */
uint64_t stack_id_of(struct frame *const *frames, size_t n);
/*
 * Returns a hash over the start of each frame's function: it is equal for two stacks that have the
 * same functions at different addresses within them.
 */
uint64_t stack_functions_id_of(struct frame *const *frames, size_t n);

#endif
