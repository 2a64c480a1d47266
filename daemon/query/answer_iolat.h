/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_ANSWER_IOLAT_H
#define STACKD_DAEMON_QUERY_ANSWER_IOLAT_H

/*
 * Rows of I/O for an answer: in comes what was merged and the request's order, out come wire rows,
 * with the arena's memory. Used by the query files only.
 */

#include <stdint.h>

#include "daemon/query/answer.h"

struct snapshot_question;

/* Fills snapshot.rows, shown and rest. 0 or -ENOMEM. */
int answer_iolat_rows(struct answer *answer, const struct snapshot_question *question,
		      const struct answer_row_options *options);

/*
 * The value below which so many hundredths of the counts are, taken to lie evenly in their bucket
 * (see IO_BUCKETS); at most max_ns. -1 where nothing is counted.
 */
int64_t io_percentile(const uint64_t *buckets, unsigned int percent, uint64_t max_ns);

#endif
