/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_ANSWER_SPAWNS_H
#define STACKD_DAEMON_QUERY_ANSWER_SPAWNS_H

/*
 * Translates the processes that began and ended in windows into structs of the wire protocol. No
 * state; any thread.
 */

#include "common/arena.h"
#include "proto/wire.h"

struct window_spawns;

/*
 * Sets *out to the processes that began and ended in the windows of an answer, with at most
 * WINDOW_SPAWNS_MAX rows. Sets it to NULL if no window has this. Returns 0 or -ENOMEM.
 */
int answer_spawns(struct arena *arena, const struct window_spawns *spawns,
		  const struct wire_spawns **out);

#endif
