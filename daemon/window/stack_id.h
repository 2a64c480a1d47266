/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_STACK_ID_H
#define STACKD_DAEMON_WINDOW_STACK_ID_H

/*
 * Ids of stacks: hashes over a stack's frames, beginning with the leaf. Equal stacks have the same
 * id in every process and in every run of the daemon. An id is at least STACK_ID_FIRST: lower
 * values say why there is no stack (enum stack_reason). Pure functions; any thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "daemon/window/stack.h"

/* Returns a hash over the address of each frame within its file. */
uint64_t stack_id_of(struct frame *const *frames, size_t n);
/*
 * Returns a hash over the start address of each frame's function. Two stacks with the same
 * functions have the same hash, even if the addresses within the functions differ.
 */
uint64_t stack_functions_id_of(struct frame *const *frames, size_t n);

#endif
