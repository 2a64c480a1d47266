/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_WAIT_KIND_H
#define STACKD_CLIENT_RENDER_WAIT_KIND_H

/*
 * What a thread waits for, in words: in go the stacks of a wait, out comes what their
 * functions say. Borrows the stacks; the words are static. Pure.
 */

#include <stddef.h>

#include "proto/wire.h"

/*
 * "a file lock (fcntl)", to stand after "waits for"; NULL where nothing is known. Either stack may
 * be NULL; the program's tells what a futex is to it.
 */
const char *wait_kind(const struct wire_stack *kernel, const struct wire_stack *user);

/*
 * How many frames at the leaf are the scheduler's own, which say nothing about the wait and are
 * missing where a stack was taken while it lasted; never all of them.
 */
size_t scheduler_frames(const struct wire_stack *kernel);

#endif
