/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_TIER_H
#define STACKD_DAEMON_STORE_TIER_H

/*
 * The tiers of the windows on disk, see [store] tiers: which windows each of them has, and how much
 * room it takes. The table `window_tiers` has a row for each window. Owned by the writer's thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/entry.h"
#include "daemon/store/store.h"

struct store;

enum { STORE_LEVEL_MAX = 2 };

/* The sums over the windows of one tier. */
struct tier_sums {
	uint64_t windows;
	int64_t bytes; /* size of the encoded windows */
	/*
	 * end of the last window that was merged or evicted early, for lack of room, in ns since
	 * the epoch; INT64_MIN: none
	 */
	int64_t early_ns;
	/* how often the tier halved the rows of its windows, at most STORE_LEVEL_MAX times */
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
 * Adds the rows of windows that have none, removes those of windows that are gone, works out the
 * tier of each window by the settings, and adds up the sums. Called when the database was opened or
 * replaced. Returns 0 or a negative errno.
 */
int store_tiers_open(struct store *store);

/* Adds up the sums anew, after a rollback. Returns 0 or a negative errno. */
int store_tiers_sum(struct store *store);

/*
 * Adds the row of a window that is written with an encoded size. length_ns: the length of the
 * windows into which it was merged; 0: it was not. Runs in the open transaction, like the functions
 * that follow.
 */
int store_tier_add(struct store *store, const struct store_entry *entry, int64_t length_ns,
		   size_t size, uint32_t row_limit);

/* Deletes a window. Returns 0 or a negative errno. */
int store_tier_drop(struct store *store, int64_t id);

/* Moves a window as it is to the next tier. */
int store_tier_move(struct store *store, const struct tier_row *row);

/* Reads the row of a window. Returns 0, -ENOENT or another errno. */
int store_tier_get(struct store *store, int64_t id, struct tier_row *out);

/*
 * Finds the oldest window of a tier that may have more rows than its level allows. Returns 0,
 * -ENOENT or another errno.
 */
int store_tier_widest(struct store *store, size_t tier, struct tier_row *out);

/* Changes the size and row_limit of a window that was folded. */
int store_tier_resize(struct store *store, const struct tier_row *row, int64_t size,
		      uint32_t row_limit);

/* Returns the max_rows to which a tier folds its windows; 0: it does not. */
uint32_t store_tier_rows(const struct store *store, size_t tier);

/* Lets tiers that have much room again double the rows of their new windows. */
void store_tiers_relax(struct store *store);

/* Finds the oldest window of a tier. Returns 0, -ENOENT or another errno. */
int store_tier_oldest(struct store *store, size_t tier, struct tier_row *out);

/* Notes that windows left a tier early, the last of which ended at end_ns. */
int store_tier_note_early(struct store *store, size_t tier, int64_t end_ns);

/*
 * Returns the tier that exceeds its share by most, among those with windows that are not in the
 * mask `skipped`. Returns the number of tiers if there is none.
 */
size_t store_tier_over(const struct store *store, unsigned int skipped);

/* Sets the tiers of the stats. */
void store_tiers_count(struct store *store);

#endif
