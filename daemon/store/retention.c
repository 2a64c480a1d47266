/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "daemon/store/internal.h"
#include "daemon/store/window_row.h"

enum {
	/* When the disk is full, 1/8 of all windows are evicted at once; at least 4, at most 64. */
	EVICT_FULL_MOST = 64,
	EVICT_FULL_SHARE = 8,
	EVICT_FULL_LEAST = 4,
	/*
	 * When less than 1/24 of the allowed bytes is free, windows are merged or evicted until
	 * 2/24 will be free. There is thus time to do this in small steps, and unused rows need to
	 * be deleted only rarely.
	 */
	ROOM_PARTS = 24,
	/* When less than 1/36 is free, the writer does not pause between these steps. */
	SHORT_PARTS = 36,
	/*
	 * When there is no room for the next window, the queue must not overflow while room is
	 * made. If it has more than QUEUE_BUSY windows, old windows are merged but no longer
	 * folded, because merging frees more bytes in the same time. If it has more than
	 * QUEUE_LONG, the oldest windows on disk are evicted without being merged first.
	 */
	QUEUE_BUSY = STORE_QUEUE_MAX / 16,
	QUEUE_LONG = STORE_QUEUE_MAX / 4,
};

/*
 * Sets goal_bytes: how many bytes the tiers may take, so that the whole database becomes small
 * enough. Assumes that the database shrinks in proportion to store_tiers_bytes(), the bytes that
 * windows take with the rows of stacks, frames and processes, which are deleted when no window uses
 * them.
 */
static void goal_set(struct store *store, int64_t used, int64_t room)
{
	int64_t wanted = room - 2 * room / ROOM_PARTS;

	store->goal_bytes =
		(int64_t)((double)store_tiers_bytes(store) * (double)wanted / (double)used);
	store->is_shrinking = true;
}

/* Deletes all unused rows now, not in steps, because the disk is full. */
static int collect_all(struct store *store)
{
	int r = store_collect_begin(store);

	while (!r && (r = store_collect_step(store)) > 0)
		r = 0;
	store->is_shrinking = false;
	return r;
}

/* If the file is larger than max_size, removes at most 512 unused pages from it. */
static int vacuum(struct store *store)
{
	int64_t pages;
	int r = store_db_number(&store->db, STATEMENT_PAGES, &pages);

	if (r || pages * STORE_PAGE <= (int64_t)store->max_size)
		return r;
	return store_db_run(&store->db, "PRAGMA incremental_vacuum(512)");
}

bool store_is_short(struct store *store)
{
	int64_t room = (int64_t)store_room(store), used;

	return store_db_used_bytes(&store->db, &used) == 0 && used > room - room / SHORT_PARTS;
}

int store_shrink_step(struct store *store, bool may_fold)
{
	int64_t room = (int64_t)store_room(store), used;
	int r;

	if (store->collect.phase != COLLECT_NONE) {
		r = store_collect_step(store);
		/* Room has to be made even if it cannot be found out which tier takes it. */
		if (r < 0 && store_tiers_unweighed(store))
			store->sums[0].weight = 1;
		return r < 0 ? r : 1;
	}
	r = store_db_used_bytes(&store->db, &used);
	if (r || used <= room - room / ROOM_PARTS) {
		store->is_shrinking = false;
		return r;
	}
	/*
	 * If many windows were merged since the last collection, deleting the rows that only they
	 * used may free enough space. Otherwise windows have to be removed. If it is not known yet
	 * which tier exceeds its share, a collection tells it.
	 */
	if (!store->is_shrinking && !store_tiers_unweighed(store) &&
	    store->removed_bytes <= store_tiers_bytes(store) / ROOM_PARTS)
		goal_set(store, used, room);
	if (store->is_shrinking && store_tiers_bytes(store) > store->goal_bytes) {
		r = store_tier_yield(store, may_fold);
		if (r != -ENOENT)
			return r ? r : 1;
	}
	store->is_shrinking = false;
	r = store_collect_begin(store);
	return r ? r : 1;
}

static size_t queue_length(struct store *store)
{
	size_t n;

	pthread_mutex_lock(&store->lock);
	n = store->queued;
	pthread_mutex_unlock(&store->lock);
	return n;
}

/*
 * Frees some space for the next window. Returns 1 if more may be freed, 0 if not, or a negative
 * errno.
 */
static int room_step(struct store *store)
{
	size_t queued = queue_length(store);
	int r = -ENOENT;

	if (queued > QUEUE_LONG)
		r = store_tier_evict(store);
	if (r == -ENOENT)
		return store_shrink_step(store, queued <= QUEUE_BUSY);
	return r ? r : 1;
}

/*
 * Makes room for a window of `size` bytes. This is rarely needed, because store_shrink_step() keeps
 * some room free. It is needed if the database was larger than max_size when it was opened, or
 * grows faster than the steps can follow.
 */
int store_make_room(struct store *store, size_t size)
{
	int64_t room = (int64_t)store_room(store) - (int64_t)(4 * size), used;
	bool is_empty = false;
	int r;

	while ((r = store_db_used_bytes(&store->db, &used)) == 0 && used > room) {
		/* Without windows, nothing can be freed after the unused rows were deleted. */
		if (is_empty && store->collect.phase == COLLECT_NONE)
			break;
		is_empty = !store_tiers_bytes(store);
		r = room_step(store);
		if (r <= 0)
			break;
	}
	return r < 0 ? r : vacuum(store);
}

/*
 * Returns how many windows to evict when the disk is full. These are only a part of all windows,
 * because the disk may be full only for a while, for example because of another program's temporary
 * file.
 */
static int64_t evict_count(struct store *store)
{
	int64_t windows = 0;

	store_db_number(&store->db, STATEMENT_WINDOW_COUNT, &windows);
	windows /= EVICT_FULL_SHARE;
	if (windows < EVICT_FULL_LEAST)
		return EVICT_FULL_LEAST;
	return windows > EVICT_FULL_MOST ? EVICT_FULL_MOST : windows;
}

static int oldest_evict(struct store *store, int64_t n, const char *reason)
{
	int64_t id, end, i;
	int r = 0;

	for (i = 0; i < n && !r; i++) {
		r = store_row_end(&store->db, STATEMENT_WINDOW_OLDEST, &id, &end);
		if (r)
			break;
		r = store_evict_window(store, id, end, reason, &store->stats.evicted_size);
	}
	return r == -ENOENT && i > 0 ? 0 : r;
}

/*
 * Evicts the n oldest windows and deletes all unused rows, in a transaction. The caller rolls back
 * a transaction that is left open by an error.
 */
static int oldest_evict_all(struct store *store, int64_t n, const char *reason)
{
	int r = store_db_run(&store->db, "BEGIN IMMEDIATE");

	if (!r)
		r = oldest_evict(store, n, reason);
	store_collect_cancel(store);
	if (r)
		return r;
	r = collect_all(store);
	if (r)
		return r;
	return store_db_run(&store->db, "COMMIT");
}

/*
 * Evicts several windows at once because the file cannot grow. The database's log was restarted:
 * the deletions have to be written to it.
 */
int store_evict_some(struct store *store, const char *reason)
{
	int r = oldest_evict_all(store, evict_count(store), reason);

	if (r && !sqlite3_get_autocommit(store->db.handle)) {
		store_db_run(&store->db, "ROLLBACK");
		store_tiers_sum(store);
	}
	if (r)
		return r;
	/*
	 * Restart the log again: this moves the deletions to the database file, whose pages can
	 * then be reused.
	 */
	return store_db_run(&store->db, "PRAGMA wal_checkpoint(RESTART)");
}
