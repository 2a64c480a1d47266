/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_WAIT_KIND_H
#define STACKD_CLIENT_RENDER_WAIT_KIND_H

/*
 * Says in words what a thread waits for, by the functions in the stacks of its wait. Borrows the
 * stacks; the words are static. Pure.
 */

#include <stddef.h>

#include "proto/wire.h"

/*
 * Returns words such as "a file lock (fcntl)", to stand after "waits for"; NULL if no function is
 * known. Either stack may be NULL. The user stack shows what a program uses a futex for.
 */
const char *wait_kind(const struct wire_stack *kernel, const struct wire_stack *user);

/*
 * Returns how many frames at the leaf are the scheduler's, at most all but one. They say nothing
 * about the wait, and are missing in stacks that are taken while the thread sleeps.
 */
size_t scheduler_frames(const struct wire_stack *kernel);

#endif
