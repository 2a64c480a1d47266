/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_FLEET_BASE_STACK_HASH_H
#define STACKD_FLEET_BASE_STACK_HASH_H

/*
 * The ids of stacks in a fleet. An id is a hash of all that the table stacks says about the stack,
 * so that whoever reads a stack can tell whether it is the one that was sent. Any thread.
 */

#include <stdint.h>

#include "proto/wire.h"

/* Returns the number that the daemon's id of a stack, "0x...", stands for; 0 if it is none. */
uint64_t stack_host_id(const struct wire_stack *stack);

/*
 * Returns the id of a stack, or 0 if there is no memory. The id is the first 8 bytes, the most
 * significant one first, of the SHA-256 of these texts, each with a NUL at its end: the daemon's id
 * as lower-case hexadecimal digits, the number of frames; for each frame its kind, name, module and
 * offset ("-1": none); then the flags. An absent name or module is an empty text.
 */
uint64_t stack_hash(const struct wire_stack *stack);

#endif
