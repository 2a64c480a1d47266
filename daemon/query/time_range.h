/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_TIME_RANGE_H
#define STACKD_DAEMON_QUERY_TIME_RANGE_H

/*
 * The stretch of time a question is about: in go a request and a session, out come times, a cut
 * where the range reaches into the open window, and what of it is covered. A plain value.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/query/answer.h"
#include "daemon/query/range_windows.h"
#include "daemon/session/recorder.h"

struct query_range {
	int64_t since; /* ns since the epoch */
	int64_t until;
	bool is_to_now;
	bool is_length; /* counted back from now */
	bool is_whole;	/* all of a session, whatever the clock said */
	bool is_late;	/* the open window could not be had in time */
};

/* Times as they came, since the epoch or absent. 0, or -EINVAL with *error. */
int query_range_check(int64_t since_ns, int64_t until_ns, struct wire_error *error);

/* 0, or -EINVAL with *error. A session that has ended ends the range. */
int query_range_resolve(const struct wire_snapshot_request *request, struct session *session,
			struct query_range *range, struct wire_error *error);

/* The session's windows in answer->list, and those after them in ->later; as query_snapshot(). */
int query_range_windows(struct recorder *recorder, struct session *session,
			struct query_range *range, struct answer *answer, struct wire_error *error);

/* answer->reply.snapshot.coverage, but `complete`, and what it was made of. 0 or -ENOMEM. */
int query_range_coverage(struct recorder *recorder, struct answer *answer,
			 const struct query_range *range, struct query_coverage *found);

#endif
