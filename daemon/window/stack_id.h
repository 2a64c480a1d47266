/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_STACK_ID_H
#define STACKD_DAEMON_WINDOW_STACK_ID_H

/*
 * What tells stacks apart: frames in, from the leaf on, a number out, the same in every process and
 * after every start; never one of the ids of stacks that are none. Pure; any thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "daemon/window/stack.h"

/* By the place of each frame. */
uint64_t stack_id_of(struct frame *const *frames, size_t n);
/* By the function that each frame is in, wherever in it. */
uint64_t stack_functions_id_of(struct frame *const *frames, size_t n);

#endif
