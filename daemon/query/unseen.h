/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_UNSEEN_H
#define STACKD_DAEMON_QUERY_UNSEEN_H

/*
 * Explains which processes and threads that a filter asks for are not in an answer, and why: as a
 * note if other threads are in it, as an error if none is. No state; any thread.
 */

#include "common/arena.h"
#include "common/probe_kind.h"
#include "daemon/query/aggregate.h"
#include "proto/wire.h"

/*
 * Sets *out to a note, in the arena's memory, about the ids of the filter that no window has; NULL
 * if there are none. is_live: the windows are of this host and running daemon, so that a process
 * that exists now may be looked for. 0 or -ENOMEM.
 */
int unseen_note(struct arena *arena, const struct aggregate *aggregate,
		const struct wire_filter *filter, enum probe_kind kind, bool is_live,
		const char **out);

/* Fills *error for a filter that selected no thread at all. Returns -ENODATA, or -ENOMEM. */
int unseen_error(const struct aggregate *aggregate, const struct wire_filter *filter,
		 enum probe_kind kind, bool is_live, struct wire_error *error);

#endif
