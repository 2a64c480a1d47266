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

/* What was asked, and what was not recorded in the range. All 0: all was. */
struct absent_range {
	enum probe_kind kind;
	bool is_live;	/* the windows were recorded by this daemon */
	bool is_always; /* the session is always on, so that the budget holds for it */
	/* which I/O is not recorded, see ABOVE in note_words.h; NULL: all is */
	const char *above;
	int64_t all_from_ns; /* some waits that are shorter were not recorded; 0: all were */
	int64_t gaps_ns;     /* length of the gaps in the range */
	bool is_late;	     /* the newest data is missing, as stackd is too busy */
	int64_t late_ns;     /* that of this time, if it is late; 0: not known */
	uint64_t lost;	     /* number of lost events */
	/* number of operations that were counted without their process, as rows were too many */
	uint64_t shared;
};

/*
 * Sets *out to a note about the pids and tids of the filter that no window has; to NULL if there
 * are none. The note is in the memory of the arena. It may say that a process exists now only if
 * range->is_live. Where something was not recorded, it says that, and what, instead of saying that
 * a process did nothing. Returns 0 or -ENOMEM.
 */
int absent_note(struct arena *arena, const struct aggregate *aggregate,
		const struct wire_filter *filter, const struct absent_range *range,
		const char **out);

/* Fills *error for a filter that selected no thread at all. Returns -ENODATA, or -ENOMEM. */
int absent_error(const struct aggregate *aggregate, const struct wire_filter *filter,
		 const struct absent_range *range, struct wire_error *error);

#endif
