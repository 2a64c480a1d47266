/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_TIMELINE_INTERNAL_H
#define STACKD_DAEMON_STORE_TIMELINE_INTERNAL_H

/*
 * Shared by the files behind timeline.h: timeline.c, which lists windows, and timeline_coverage.c,
 * which finds gaps.
 */

#include "daemon/store/prefetch.h"
#include "daemon/store/reader.h"
#include "daemon/store/timeline.h"

struct timeline {
	struct timeline_source source;
	struct timeline_session session;
	struct store_select select; /* selects the session's windows on disk */
	/* the session's windows in memory; windows[i] is NULL if window i ended before the range */
	struct timeline_list memory;
	/*
	 * Windows in memory that begin before this time of CLOCK_MONOTONIC are left out: a window
	 * on disk includes them, because it was made by joining or merging them with earlier
	 * windows.
	 */
	int64_t memory_from_ns;
	struct timeline_list range; /* windows that overlap the range */
	struct timeline_list later; /* windows after the range, see timeline_read_later() */
	/* `range` lacks the oldest windows on disk, because a list cannot have all of them */
	bool is_truncated;
	size_t n_bad; /* number of windows on disk that could not be loaded */
	/*
	 * thread that loads the windows of `range` or `later` before they are asked for; NULL: none
	 */
	struct store_prefetch *prefetch;
};

/*
 * Finds, in memory and on disk, the session's last window that began before at_ns; it may lie
 * outside the range. Returns false if there is no such window, or on an error.
 */
bool timeline_before(struct timeline *timeline, int64_t at_ns, struct store_entry *out);

#endif
