/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_ANSWER_IOLAT_H
#define STACKD_DAEMON_QUERY_ANSWER_IOLAT_H

/*
 * Makes the rows of an answer about the probe iolat from groups of operations, in the order that
 * the request asks for. The memory is that of the arena. Used only in daemon/query; one thread.
 */

#include <stdint.h>

#include "daemon/query/answer.h"

struct snapshot_question;

/*
 * Selects and sorts the groups of the rows. Sets reply.snapshot.shown to the sums of these rows,
 * and .rest to the sums of the rows that are left out. Returns 0 or -ENOMEM.
 */
int answer_iolat_rows(struct answer *answer, const struct snapshot_question *question);

/* Sets *row to the row of a group. Returns 0 or -ENOMEM. */
int answer_iolat_row(struct answer *answer, const struct aggregate_io_group *group,
		     struct answer_stacks *stacks, struct wire_row *row);

/*
 * Estimates a percentile of the lengths of operations, in ns, from IO_BUCKETS_N buckets. Assumes
 * that the lengths in a bucket are spread evenly. Returns at most max_ns, or -1 if the buckets are
 * empty.
 */
int64_t io_percentile(const uint64_t *buckets, unsigned int percent, uint64_t max_ns);

#endif
