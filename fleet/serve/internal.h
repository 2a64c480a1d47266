/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_FLEET_SERVE_INTERNAL_H
#define STACKD_FLEET_SERVE_INTERNAL_H

/*
 * Private to the files that answer a Snapshot: snapshot.c checks the request and reads the tables,
 * snapshot_reply.c makes the reply. Used by one thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "fleet/serve/answer.h"
#include "fleet/serve/groups.h"
#include "fleet/serve/headers.h"

/* The most patterns in a list of a filter, as in the daemon. */
enum { FILTER_LIST_MAX = 32 };

/*
 * HOSTS_MAX: how many hosts a filter may select; TWICE_MAX: how many windows of an answer may have
 * been sent twice. Each takes a part of a query's length, which a server limits to 256 KiB.
 */
enum { HOSTS_MAX = 2000, TWICE_MAX = 1000, QUERY_BYTES = 250 * 1024 };

struct snapshot {
	struct fleet_answer *answer;
	const struct fleet_question *asked;
	const struct wire_snapshot_request *request;
	int64_t now;
	struct wire_filter filter; /* the request's, without hosts */
	struct wire_strs hosts;
	struct groups_question question;
	struct header_question range;
	struct wire_span middles; /* of the windows of an overview's samples */
	struct headers headers;
	struct groups groups;
	bool with_idle;
	bool lacks_open;   /* rows do not count the waits that had not ended */
	int64_t behind_ns; /* how long before now the range ends */
};

/*
 * Sets reply->parts: how much time all groups have in each part of the time, but those that are
 * hidden as idle. In an overview of the first rows of each part, sets group.is_first of these.
 * Returns 0 or -ENOMEM.
 */
int snapshot_parts_make(struct snapshot *snapshot, struct group **groups, size_t n);

/*
 * True if the filter asks for what sums of several processes do not have, and rows were sent as
 * such sums.
 */
bool snapshot_lacks_processes(const struct snapshot *snapshot);

/* Makes answer->reply.snapshot of what was read. Returns 0 or a negative errno. */
int snapshot_reply_make(struct snapshot *snapshot);

#endif
