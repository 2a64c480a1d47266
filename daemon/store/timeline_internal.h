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
	/*
	 * The session's windows in memory, sorted by start_ns. windows[i] is NULL if window i ended
	 * before the range.
	 */
	struct timeline_list memory;
	struct timeline_list range; /* windows that overlap the range */
	struct timeline_list later; /* windows after the range, see timeline_read_later() */
	/* `range` lacks the oldest windows on disk, because a list cannot have all of them */
	bool is_truncated;
	size_t n_bad;	/* number of windows on disk that could not be loaded */
	int disk_error; /* why the list of windows on disk could not be read; 0: it was */
	/*
	 * the windows in whose place `range` has summaries, in the order of the summaries: the
	 * first ones are those of the first summary
	 */
	struct store_entry *summarized;
	size_t n_summarized;
	bool has_bad_summary; /* a summary could not be loaded */
	/*
	 * thread that loads the windows of `range` or `later` before they are asked for; NULL: none
	 */
	struct store_prefetch *prefetch;
};

/*
 * Takes out of entries[n], which are windows on disk, those that are not to be listed because the
 * windows in memory are listed in their place. Returns the number of entries that are left. If the
 * timeline lists a window on disk in place of windows in memory, sets their is_replaced[], an array
 * of timeline->memory.n flags.
 */
size_t timeline_choose(struct timeline *timeline, struct store_entry *entries, size_t n,
		       bool *is_replaced);

/*
 * Sets *out to pointers to the entries of the windows [first, end) of the range; for a summary, to
 * the entries of the windows in whose place it is. The caller frees *out. Returns 0 or -ENOMEM.
 */
int timeline_windows(const struct timeline *timeline, size_t first, size_t end,
		     const struct store_entry ***out, size_t *n_out);

/*
 * Finds, in memory and on disk, the session's last window that began before at_ns; it may lie
 * outside the range. Returns false if there is no such window, or on an error.
 */
bool timeline_before(struct timeline *timeline, int64_t at_ns, struct store_entry *out);

#endif
