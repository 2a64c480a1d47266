/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_SUMMARY_H
#define STACKD_DAEMON_STORE_SUMMARY_H

/*
 * Summaries on disk: each is one window that was merged from consecutive windows of one tier and
 * one session, which stay on disk. A query about a long range reads a summary in place of its
 * windows, if it covers all of them and the summary can answer it. Summaries are made when the
 * writer has nothing else to do, also those of windows that an earlier run of stackd wrote. A
 * summary is deleted in the transaction that changes one of its windows. The bytes of summaries
 * count as bytes of the tier that has their windows. Used by the writer's thread only.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/store.h"

/* Sessions of always-on probes have numbers below this. */
enum { STORE_ALWAYS_MAX = 16 };

struct tier_row;

/* Which windows were examined already. The indexes are the tier and the number of the session. */
struct store_summaries {
	/* the id of the last window that was examined; later windows may still need a summary */
	int64_t done_to[STORE_TIERS_MAX][STORE_ALWAYS_MAX];
	/* there may be enough windows after done_to for another summary */
	bool is_due[STORE_TIERS_MAX][STORE_ALWAYS_MAX];
};

/*
 * Called in the open transaction when the database was opened. Deletes summaries without windows,
 * and lets all windows be examined. Returns 0 or a negative errno.
 */
int store_summaries_open(struct store *store);

/* Adds the bytes of all summaries to the sums of the tiers. Returns 0 or a negative errno. */
int store_summaries_sum(struct store *store);

/* Called when a tier got another window of the session. */
void store_summary_look(struct store *store, size_t tier, uint64_t session);

/* Lets the window, and the windows of its tier and session after it, be examined again. */
void store_summary_again(struct store *store, const struct tier_row *row);

/*
 * Finds the summary of the session that has this window. Returns 0, -ENOENT (none) or another
 * errno. Sets *id_out to the summary's id, *last_out to the id of its last window, and *size_out to
 * its size in bytes.
 */
int store_summary_find(struct store *store, uint64_t session, int64_t window, int64_t *id_out,
		       int64_t *last_out, int64_t *size_out);

/*
 * summarize.c: makes at most one summary. Returns 1 if there may be more to do, 0 if not, or a
 * negative errno.
 */
int store_summary_step(struct store *store);

#endif
