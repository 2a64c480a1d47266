/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_ANSWER_IOLAT_H
#define STACKD_DAEMON_QUERY_ANSWER_IOLAT_H

/*
 * Makes the rows of an iolat answer from its groups of operations, in the order that was asked for.
 * Memory is the arena's. Private to the query room; one thread.
 */

#include <stdint.h>

#include "daemon/query/answer.h"

struct snapshot_question;

/* Fills snapshot.rows, and .shown and .rest with the sums of rows shown and left out. 0, -ENOMEM.
 */
int answer_iolat_rows(struct answer *answer, const struct snapshot_question *question,
		      struct answer_stacks *stacks);

/*
 * Estimates a percentile of lengths from IO_BUCKETS_N buckets, supposing that the lengths in a
 * bucket are spread evenly. At most max_ns; -1 if the buckets are empty.
 */
int64_t io_percentile(const uint64_t *buckets, unsigned int percent, uint64_t max_ns);

#endif
