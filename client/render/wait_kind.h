/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_WAIT_KIND_H
#define STACKD_CLIENT_RENDER_WAIT_KIND_H

/*
 * Finds out what a thread waits for, from the functions in its stacks, and says it in words.
 * Borrows the stacks; the words are static. Pure functions, any thread.
 */

#include <stddef.h>

#include "proto/wire.h"

/*
 * Returns words that can follow "waits for", such as "a file lock (fcntl)"; NULL if no function of
 * the stacks is known. Each stack may be NULL. The user stack is needed to say for what a program
 * uses a futex.
 */
const char *wait_kind(const struct wire_stack *kernel, const struct wire_stack *user);

/*
 * Returns how many frames of the scheduler a stack begins with, counted from the leaf. If all
 * frames are of the scheduler, does not count the last one. Frames of the scheduler say nothing
 * about the wait, and are missing in stacks that are taken while the thread sleeps.
 */
size_t scheduler_frames(const struct wire_stack *kernel);

#endif
