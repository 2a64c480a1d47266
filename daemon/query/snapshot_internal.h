/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_SNAPSHOT_INTERNAL_H
#define STACKD_DAEMON_QUERY_SNAPSHOT_INTERNAL_H

/*
 * Private to the files that answer a Snapshot request: snapshot_request.c checks the request,
 * snapshot.c aggregates the windows and fills everything in the reply but the rows, snapshot_rows.c
 * and answer_iolat.c select the rows, and ranges.c has the queries, for one range or several. No
 * state of its own; each answer is made by one thread.
 */

#include <stdbool.h>
#include <stddef.h>

#include "daemon/query/answer.h"
#include "daemon/query/time_range.h"

/*
 * The order of the rows. Rows that compare equal are sorted by key, so that the same request gets
 * the same order again.
 */
enum snapshot_order {
	SNAPSHOT_BY_TOTAL,
	SNAPSHOT_BY_MAX,
	SNAPSHOT_BY_COUNT,
	SNAPSHOT_BY_WINDOW, /* by start of the window, oldest first; only for iolat */
	SNAPSHOT_BY_BYTES,  /* only for iolat */
};

/* A Snapshot request that has been checked; borrows the strings of the request. */
struct snapshot_question {
	struct filter filter;
	struct query_range range;
	struct aggregate_options options;
	enum snapshot_order order;
	size_t top; /* the maximum number of rows to show; SIZE_MAX for all rows */
	bool is_reversed;
	/*
	 * the request is for an overview, which divides the time into parts, such as "blocked" (see
	 * wire_part). `top` is then the number of rows to show for each part
	 */
	bool by_parts;
	bool has_parts; /* the answer has the sums of the parts, too */
	/*
	 * the range is one of several in the request: if it has no data, there is an answer that
	 * says so, and no error
	 */
	bool is_of_ranges;
	struct timeline_summaries summaries; /* the summaries that are read */
	bool with_idle;
	/* the answer is a part of an overview, about the time that its waits are about */
	bool follows_waits;
	bool has_requests_once; /* iolat: no rows for the parts of requests, such as the queue */
	bool has_idle_last;	/* idle rows come after all others */
};

/* A part of the range of a question that gets an answer of its own. */
struct slice {
	size_t first; /* the windows [first, end) of the range are its windows */
	size_t end;
	int64_t since_ns; /* in ns since the epoch, like until_ns */
	int64_t until_ns;
};

/* A question whose range is answered in slices, the newest first. */
struct slices {
	struct snapshot_question question;
	struct slice *v; /* the slices, the oldest first */
	size_t n;	 /* number of slices that were not answered yet */
};

/*
 * Divides a range into slices. A range without windows is one slice. each_ns is WIRE_ABSENT: one
 * slice; 0: a slice for each window; else the length of the slices, which begin at multiples of it
 * since the epoch. A window belongs to the slice in which its middle lies. A slice without windows
 * is left out: its time belongs to the slice after it. The caller frees slices->v. Returns 0 or
 * -ENOMEM.
 */
int slices_make(const struct timeline_list *list, int64_t each_ns, struct slices *slices);
struct slices *slices_free(struct slices *slices);

/*
 * Checks a Snapshot request about this session and translates it to *question. Returns 0, or a
 * negative errno with *error filled as by query_snapshot().
 */
int snapshot_question_init(struct snapshot_question *question,
			   const struct wire_snapshot_request *request, struct session *session,
			   struct wire_error *error);

/*
 * True if the answer of summaries (see timeline_summarize()) is that of the windows, but for small
 * rows that are within "(others)". A summary has the largest rows of its windows. So it answers a
 * question that has no filter and asks for some of the rows by stack with the most time, or for
 * I/O by operation, of which a summary has all. In an overview, I/O is by process, and so few rows
 * are asked for that summaries have them, too.
 */
bool snapshot_may_summarize(const struct snapshot_question *question,
			    const struct session_info *info);

/*
 * Selects and sorts the groups of the rows of the answer. Also sets the sums of the reply: .shown
 * over these rows, .rest over the rows that are left out, and .idle over the rows that are hidden
 * as idle. Returns 0 or -ENOMEM.
 */
int snapshot_rows(struct answer *answer, const struct snapshot_question *question);

/* The question that a Snapshot request is a part of. */
enum snapshot_part { SNAPSHOT_ALONE, SNAPSHOT_OF_OVERVIEW, SNAPSHOT_OF_RANGES };

/*
 * Makes the answer to a Snapshot request that has no member `ranges`. Returns the same as
 * query_snapshot().
 */
int snapshot_answer(struct recorder *recorder, const struct query_peer *peer,
		    const struct wire_snapshot_request *request, enum snapshot_part part,
		    struct answer **out, struct wire_error *error);

/*
 * Adds a note for each kind of event that the probe of answer->session cannot see. The probe iolat
 * may miss a large part of all events. Returns 0 or -ENOMEM.
 */
int snapshot_blind_notes(struct answer *answer);

/* Replaces an answer whose member has_next is set by that of the slice before it. */
int snapshot_next(struct recorder *recorder, const struct query_peer *peer,
		  const struct wire_snapshot_request *request, struct answer **answer);

/* The maximum number of ranges in a request. */
enum { RANGES_MAX = 256 };

/* Returns how many requests were refused because they had more than RANGES_MAX ranges. */
int64_t ranges_refused(void);

/* Compares two numbers for qsort(), the larger one first. Evaluates its arguments twice. */
#define COMPARE_DESCENDING(a, b) (((a) < (b)) - ((a) > (b)))

/* Sets the members `shown`, `rest` and `idle` of the reply to sums over no row. */
void snapshot_rests_init(struct wire_snapshot_reply *reply);

/*
 * Counts a row with the time total_ns in *rest: adds 1 to its number of rows, and total_ns to its
 * time, of which sampled_ns is an estimate. *rest is one of the members `shown`, `rest` and `idle`
 * of the reply.
 */
void snapshot_rest_add(struct wire_rest *rest, int64_t total_ns, int64_t sampled_ns);

#endif
