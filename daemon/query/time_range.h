/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_TIME_RANGE_H
#define STACKD_DAEMON_QUERY_TIME_RANGE_H

/*
 * Determines the time range of a query: makes a range from a request and a session, ends the
 * current window if the range reaches into it, opens the timeline, and reports which parts of the
 * range have windows. Called on worker threads.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/query/answer.h"
#include "daemon/session/recorder.h"
#include "daemon/store/timeline.h"

struct query_range {
	int64_t since; /* start of the range, ns since the epoch */
	int64_t until;
	bool is_to_now;
	/* the request gave a length of time, so `since` was computed from `until` */
	bool is_length;
	/*
	 * the range is a whole session of a client: it has all windows of the session, even if the
	 * clock was set while they were recorded
	 */
	bool is_whole;
	/* the current window was too young to be ended, so the range was moved back */
	bool is_before_now;
	bool is_late;	 /* the current window did not end in time, so its data is missing */
	int64_t late_ns; /* is_late: how long ago the newest window ended; 0: not known */
};

/*
 * Checks the times of a request, which must be ns since the epoch or absent. Returns 0, or -EINVAL
 * with *error.
 */
int query_range_check(int64_t since_ns, int64_t until_ns, struct wire_error *error);

/*
 * Computes the time range of a request that is made at now_ns. ended_ns is when the session ended,
 * INT64_MAX while it runs; the range ends at this time or earlier. Returns 0, or -EINVAL with
 * *error.
 */
int query_range_resolve(const struct wire_snapshot_request *request,
			const struct session_info *info, int64_t ended_ns, int64_t now_ns,
			struct query_range *range, struct wire_error *error);

/*
 * Moves the end of a range that reaches up to now back to newest_ns, the end of the newest window:
 * a query does not end the current window if that is younger than min_length_ns, the setting
 * [window] min_length. If the request gave the length of the range, also moves the start back by
 * the same time. Does nothing if the newest window ended longer ago than that: windows are late
 * then, and the answer reports a gap.
 */
void query_range_align(struct query_range *range, int64_t newest_ns, int64_t min_length_ns);

/*
 * Moves a range that reaches up to now back to newest_ns, the end of the newest window, where the
 * request gave its length and no window is in it: a question about the last second gets the last
 * second that is known, on a host where that is some seconds old. 0 stands for no window.
 */
void query_range_fall_back(struct query_range *range, int64_t newest_ns);

/*
 * Opens the timeline of the answer's session for the range. If the range reaches into the current
 * window, that window is ended first. Adjusts the range to the windows that were found. Returns 0,
 * or a negative errno with *error filled as by query_snapshot().
 */
int query_range_open(struct recorder *recorder, struct answer *answer, struct query_range *range,
		     struct wire_error *error);

/*
 * Opens answer->timeline for the windows of answer->session in [since_ns, until_ns), which are ns
 * since the epoch. Returns 0 or -ENOMEM.
 */
int query_timeline_open(struct recorder *recorder, struct answer *answer, int64_t since_ns,
			int64_t until_ns);

struct slice;

/*
 * Fills answer->reply.snapshot.coverage, except for `complete`. To be called after all windows of
 * the slice were read. Returns 0 or -ENOMEM.
 */
int query_slice_coverage(struct answer *answer, const struct slice *slice,
			 struct timeline_coverage *found);

#endif
