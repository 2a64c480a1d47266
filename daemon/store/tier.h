/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_TIER_H
#define STACKD_DAEMON_STORE_TIER_H

/*
 * The tiers of windows on disk (see the setting [store] tiers): which windows each tier has, and
 * how much space it takes. The table `window_tiers` has a row for each window. Used by the writer's
 * thread only, except for the first two functions.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/db.h"
#include "daemon/store/entry.h"
#include "daemon/store/store.h"

struct store;

/* The sums over the windows of one tier. */
struct tier_sums {
	uint64_t windows;
	int64_t bytes; /* size of the encoded windows and of their summaries */
	/*
	 * the last collection found that these take `weight` times `bytes` on disk, together with
	 * the stacks, frames and processes to which they refer; 0: not known. A row to which
	 * several tiers refer counts for each of them in equal parts.
	 */
	double weight;
	/*
	 * end of the last window that was merged or evicted before it was old enough, because room
	 * was short; in ns since the epoch; INT64_MIN: none
	 */
	int64_t early_ns;
	/*
	 * how often the tier has halved the number of rows that its windows may have, at most
	 * STORE_LEVEL_MAX times
	 */
	unsigned int level;
	int64_t folded_to; /* windows up to this id have no more rows than `level` allows */
};

/* A row of the table `window_tiers`. */
struct tier_row {
	int64_t id;
	size_t tier;
	uint64_t session;
	int64_t start_ns; /* in ns since the epoch, like end_ns */
	int64_t end_ns;
	int64_t size;
	uint32_t row_limit;
};

/*
 * Returns the index of the tier that has windows of this length; length_ns is the value of this
 * name in the table `window_tiers`. `n` is the number of tiers, at least 1. Any thread may call
 * this.
 */
size_t store_tier_of(const struct store_tier *tiers, size_t n, int64_t length_ns);

/*
 * Reads from the database the time early_ns of a tier (see struct tier_sums). Called by the thread
 * to which the connection belongs.
 */
int64_t store_tier_early(struct store_db *db, size_t tier);

/*
 * Called when the database was opened or replaced. Makes the table `window_tiers` match the table
 * `windows` by adding and removing rows. Works out the tier of each window from the settings, and
 * then the sums of each tier. Returns 0 or a negative errno.
 */
int store_tiers_open(struct store *store);

/*
 * Computes the sums of all tiers from the database. Called when it was opened, and after a
 * rollback. Returns 0 or a negative errno.
 */
int store_tiers_sum(struct store *store);

/*
 * Adds the row of a window whose encoded size is `size` bytes. length_ns is the length of the
 * windows in its tier; 0 for the first tier. This function and those that follow run in the open
 * transaction.
 */
int store_tier_add(struct store *store, const struct store_entry *entry, int64_t length_ns,
		   size_t size, uint32_t row_limit);

/* Deletes a window. Returns 0 or a negative errno. */
int store_tier_drop(struct store *store, int64_t id);

/* Deletes a window, notes why, and counts it. */
int store_evict_window(struct store *store, int64_t id, int64_t end_ns, const char *reason,
		       uint64_t *counter);

/* Deletes the summary of a window, if there is one. Returns 0 or a negative errno. */
int store_tier_drop_summary(struct store *store, const struct tier_row *row);

/* Moves a window to the next tier without changing it. */
int store_tier_move(struct store *store, const struct tier_row *row);

/* Reads the row of a window. Returns 0, -ENOENT or another errno. */
int store_tier_get(struct store *store, int64_t id, struct tier_row *out);

/*
 * Finds the oldest window of a tier that may have more rows than the tier allows now. Returns 0,
 * -ENOENT or another errno.
 */
int store_tier_widest(struct store *store, size_t tier, struct tier_row *out);

/* Stores the new size and row_limit of a window that was folded. */
int store_tier_resize(struct store *store, const struct tier_row *row, int64_t size,
		      uint32_t row_limit);

/* Returns the number of rows to which a tier folds its windows; 0: it does not fold them. */
uint32_t store_tier_rows(const struct store *store, size_t tier);

/* If a tier has much free space again, doubles the number of rows that its new windows may have. */
void store_tiers_relax(struct store *store);

/*
 * Reads the entries of the windows of a tier and a session whose ids are at least first_id, the
 * oldest `max` of them, to out[]; leaves out unreadable entries. Returns 0 or a negative errno.
 */
int store_tier_entries(struct store *store, size_t tier, uint64_t session, int64_t first_id,
		       size_t max, struct store_entry *out, size_t *n_out);

/* Finds the oldest window of a tier. Returns 0, -ENOENT or another errno. */
int store_tier_oldest(struct store *store, size_t tier, struct tier_row *out);

/*
 * Notes in the database that windows of a tier were merged or evicted before they were old enough.
 * end_ns is the end of the last of these windows.
 */
int store_tier_note_early(struct store *store, size_t tier, int64_t end_ns);

/*
 * Adds `bytes` (which may be negative) to the size of the tier's encoded windows and summaries.
 */
void store_tier_resized(struct store *store, size_t tier, int64_t bytes);

/* Returns how many bytes the tables may take, which is a little less than max_size. */
uint64_t store_room(const struct store *store);

/*
 * Estimates how many bytes the tier's windows and summaries take on disk, together with the stacks,
 * frames and processes to which they refer. store_tiers_bytes() estimates it for all tiers.
 */
int64_t store_tier_bytes(const struct store *store, size_t tier);
int64_t store_tiers_bytes(const struct store *store);

/*
 * True if no tier has a weight, although there are windows: no collection has run yet since the
 * database was made.
 */
bool store_tiers_unweighed(const struct store *store);

/*
 * Called at the end of a collection, which has found that tier i takes shared[i] bytes besides its
 * encoded windows and summaries, most of them in stacks, frames and processes; these windows and
 * summaries have encoded[i] bytes. Some may have been removed since. Sets the weights of the tiers
 * and writes them to the database. Returns 0 or a negative errno.
 */
int store_tiers_weigh(struct store *store, const double *shared, const double *encoded);

/*
 * Returns the index of the tier whose windows take the most bytes in proportion to the tier's share
 * of the disk. Leaves out empty tiers, and tier i if bit i of `skipped` is set. If no tier is left,
 * returns the number of tiers.
 */
size_t store_tier_over(const struct store *store, unsigned int skipped);

/* Updates the tiers in store->stats. */
void store_tiers_count(struct store *store);

#endif
