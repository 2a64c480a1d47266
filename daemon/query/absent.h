/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_ABSENT_H
#define STACKD_DAEMON_QUERY_ABSENT_H

/*
 * Explains which of the processes and threads that a filter asks for are missing in an answer, and
 * why: in a note if the answer has other threads, or in an error if it has none. No state; any
 * thread.
 */

#include "common/arena.h"
#include "common/probe_kind.h"
#include "daemon/query/aggregate.h"
#include "proto/wire.h"

/*
 * Sets *out to a note about the pids and tids of the filter that no window has; to NULL if there
 * are none. The note is in the memory of the arena. `is_live` is true if the windows were recorded
 * by this daemon; the note may say that a process exists now only if `is_live` is true. Returns 0
 * or -ENOMEM.
 */
int absent_note(struct arena *arena, const struct aggregate *aggregate,
		const struct wire_filter *filter, enum probe_kind kind, bool is_live,
		const char **out);

/* Fills *error for a filter that selected no thread at all. Returns -ENODATA, or -ENOMEM. */
int absent_error(const struct aggregate *aggregate, const struct wire_filter *filter,
		 enum probe_kind kind, bool is_live, struct wire_error *error);

#endif
