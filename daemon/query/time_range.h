/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_TIME_RANGE_H
#define STACKD_DAEMON_QUERY_TIME_RANGE_H

/*
 * The time that a query is about: turns a request and a session into a range, ends the open window
 * where the range reaches into it, opens the timeline, and says what of the range it covers. Called
 * on a worker thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/query/answer.h"
#include "daemon/session/recorder.h"
#include "daemon/store/timeline.h"

struct query_range {
	int64_t since; /* ns since the epoch */
	int64_t until;
	bool is_to_now;
	bool is_length; /* counted back from now */
	bool is_whole;	/* all of a session, whatever the clock showed */
	bool is_late;	/* the open window did not end in time */
};

/* Checks times of a request, since the epoch or absent. Returns 0, or -EINVAL with *error. */
int query_range_check(int64_t since_ns, int64_t until_ns, struct wire_error *error);

/*
 * Makes the range of a request at the time now_ns, about a session that ended at ended_ns, which is
 * INT64_MAX while it runs: the range ends there at the latest. Returns 0, or -EINVAL with *error.
 */
int query_range_resolve(const struct wire_snapshot_request *request,
			const struct session_info *info, int64_t ended_ns, int64_t now_ns,
			struct query_range *range, struct wire_error *error);

/*
 * Opens the timeline of the answer's session for the range, after ending the open window if the
 * range reaches into it; fits the range to the windows. Returns as query_snapshot().
 */
int query_range_open(struct recorder *recorder, struct answer *answer, struct query_range *range,
		     struct wire_error *error);

/* Opens answer->timeline for windows of its session in [since_ns, until_ns). 0 or -ENOMEM. */
int query_timeline_open(struct recorder *recorder, struct answer *answer, int64_t since_ns,
			int64_t until_ns);

/*
 * Fills answer->reply.snapshot.coverage, but not `complete`, once the windows were looked at.
 * Returns 0 or -ENOMEM.
 */
int query_range_coverage(struct answer *answer, const struct query_range *range,
			 struct timeline_coverage *found);

#endif
