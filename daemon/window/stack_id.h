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

/* Identifies the function of a frame. */
struct stack_function {
	uint64_t kind; /* enum frame_kind */
	uint64_t file_id;
	uint64_t start; /* file offset of its first instruction; of a pseudo frame, a hash */
};

struct stack_function stack_function_of(const struct frame *frame);

/*
 * Do what stack_functions_id_of() does, for frames that need not be in memory at the same time.
 * stack_functions_begin() returns the state of a hash without frames, stack_functions_add() the
 * state after the next frame, and stack_functions_end() the id.
 */
uint64_t stack_functions_begin(void);
uint64_t stack_functions_add(uint64_t state, const struct stack_function *function);
uint64_t stack_functions_end(uint64_t state);

#endif
