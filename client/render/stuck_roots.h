/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_STUCK_ROOTS_H
#define STACKD_CLIENT_RENDER_STUCK_ROOTS_H

/*
 * Finds the threads that hold others up: each is the last one in the chains of holders of waits for
 * locks. Main thread.
 */

#include <stddef.h>

#include "client/render/render.h"

enum { STUCK_ROOTS = 3 };

/*
 * Prints at most STUCK_ROOTS lines, each about a thread and how many wait for locks behind it, the
 * one with the most first. Returns how many lines it has printed.
 */
size_t render_stuck_roots(const struct view *view, const struct wire_snapshot_reply *reply);

#endif
