/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_SNAPSHOT_INTERNAL_H
#define STACKD_DAEMON_QUERY_SNAPSHOT_INTERNAL_H

/*
 * Private to the files that answer a Snapshot request: snapshot_request.c checks the request,
 * snapshot.c aggregates the windows and fills the head of the reply, snapshot_rows.c and
 * answer_iolat.c make its rows. No state of its own; each answer is made by one thread.
 */

#include <stdbool.h>
#include <stddef.h>

#include "daemon/query/answer.h"
#include "daemon/query/group_rows.h"
#include "daemon/query/time_range.h"

/* The order of the rows; equal rows are ordered by key, so that an answer can be repeated. */
enum snapshot_order {
	SNAPSHOT_BY_TOTAL,
	SNAPSHOT_BY_MAX,
	SNAPSHOT_BY_COUNT,
	SNAPSHOT_BY_WINDOW, /* oldest first; iolat only */
};

/* A request that has been checked; borrows the request's strings. */
struct snapshot_question {
	struct filter filter;
	struct query_range range;
	struct aggregate_options options;
	enum group_by group;
	enum snapshot_order order;
	size_t top; /* the most rows to show; SIZE_MAX: all */
	bool is_reversed;
	bool with_idle;
};

/* Checks a request about this session. 0, or a negative errno with *error as query_snapshot(). */
int snapshot_question_init(struct snapshot_question *question,
			   const struct wire_snapshot_request *request, struct session *session,
			   struct wire_error *error);

/*
 * Fill snapshot.rows, and .shown, .rest and .idle with the sums of the rows shown, left out and
 * hidden as idle. The first makes a row of each group, the second one of all groups that have the
 * key question->group in common. 0 or -ENOMEM.
 */
int snapshot_rows(struct answer *answer, const struct snapshot_question *question,
		  struct answer_stacks *stacks);
int snapshot_grouped_rows(struct answer *answer, const struct snapshot_question *question,
			  struct answer_stacks *stacks);

/* For qsort(): the larger one first. Evaluates its arguments twice. */
#define COMPARE_DESCENDING(a, b) (((a) < (b)) - ((a) > (b)))

/* Adds one row with this total to the sums of rows that are shown, left out or hidden. */
void snapshot_rest_add(struct wire_rest *rest, int64_t total_ns);

#endif
