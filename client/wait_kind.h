/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_WAIT_KIND_H
#define STACKD_CLIENT_WAIT_KIND_H

/*
 * What a thread waits for, in words: in goes the kernel stack of a wait, out comes what its
 * functions say. Borrows the stack; the words are static. Pure.
 */

#include <stddef.h>

#include "proto/wire.h"

/* "a file lock (fcntl)", to stand after "waits for"; NULL where nothing is known. */
const char *wait_kind(const struct wire_stack *kernel);

/*
 * How many frames at the leaf are the scheduler's own, which say nothing about the wait and are
 * missing where a stack was taken while it lasted; never all of them.
 */
size_t scheduler_frames(const struct wire_stack *kernel);

#endif
