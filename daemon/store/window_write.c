/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base.h"
#include "common/write_error.h"
#include "daemon/store/entry.h"
#include "daemon/store/internal.h"
#include "daemon/store/session_row.h"
#include "daemon/store/window_row.h"

/* Two gaps with the same reason that are at most this far apart become one gap. */
#define NEAR_NS (60 * NS_PER_S)

/* How long the writer waits for other programs before it looks whether it has to stop. */
#define BUSY_AGAIN_NS (100 * NS_PER_MS)

/* The maximum number of rows of the table `gaps`. */
enum { GAPS_MAX = 4096 };

void store_gap_add(struct store_gap *gap, int64_t start_ns, int64_t end_ns, const char *reason)
{
	bool is_near = gap->end_ns > gap->start_ns && start_ns <= gap->end_ns + NEAR_NS &&
		       end_ns >= gap->start_ns - NEAR_NS;

	if (!is_near || strcmp(gap->reason, reason) != 0) {
		*gap = (struct store_gap){ .start_ns = start_ns, .end_ns = end_ns };
		snprintf(gap->reason, sizeof(gap->reason), "%s", reason);
		return;
	}
	if (start_ns < gap->start_ns)
		gap->start_ns = start_ns;
	if (end_ns > gap->end_ns)
		gap->end_ns = end_ns;
}

int store_gap_write(struct store *store)
{
	struct store_gap *gap = &store->gap;
	int r;

	if (gap->end_ns <= gap->start_ns)
		return 0;
	r = store_db_change(&store->db, STATEMENT_GAP_ADD, "iit", gap->start_ns, gap->end_ns,
			    gap->reason);
	if (r)
		return r;
	return store_db_change(&store->db, STATEMENT_GAPS_TRIM, "i", (int64_t)GAPS_MAX);
}

/* Writes the sessions in store->notes; they stay there until the transaction is committed. */
static int sessions_write(struct store *store, size_t *n_out)
{
	struct store_session session;
	size_t n, i;
	int r = 0;

	pthread_mutex_lock(&store->lock);
	n = store->noted;
	pthread_mutex_unlock(&store->lock);
	for (i = 0; i < n && !r; i++) {
		/*
		 * Reading store->notes needs no lock: other threads only append sessions, after the
		 * first n.
		 */
		session = store->notes[i];
		session.run = (uint64_t)store->run;
		r = store_session_write(&store->db, &session);
	}
	*n_out = n;
	return r;
}

static void sessions_written(struct store *store, size_t n)
{
	size_t i;

	if (!n)
		return;
	pthread_mutex_lock(&store->lock);
	for (i = 0; i < n; i++)
		store_session_fini(&store->notes[i]);
	store->noted -= n;
	memmove(store->notes, store->notes + n, store->noted * sizeof(store->notes[0]));
	pthread_mutex_unlock(&store->lock);
}

/* Writes the window and its new stacks and processes, in the open transaction. */
static int window_write_in(struct store *store, const struct window *window, uint32_t row_limit)
{
	struct store_entry entry = store_entry_of(window, (uint64_t)store->run);
	_cleanup_(bytes_fini) struct bytes blob = {};
	struct store_names names;
	int r = store_db_number(&store->db, STATEMENT_WINDOW_NEXT, &entry.id);

	if (r)
		return r;
	names = store_intern_names(store->intern, window, 0);
	r = store_blob_encode(window, entry.run, &names, &blob);
	if (r)
		return r;
	r = store_row_add(&store->db, &entry, &blob);
	if (r)
		return r;
	r = store_tier_add(store, &entry, 0, blob.n, row_limit);
	if (r)
		return r;
	return store_gap_write(store);
}

/* Writes the window and the noted sessions in the open transaction, and commits it. */
static int window_commit(struct store *store, const struct window *window, uint32_t row_limit)
{
	size_t sessions = 0;
	int r = sessions_write(store, &sessions);

	if (r)
		return r;
	r = window_write_in(store, window, row_limit);
	if (r)
		return r;
	r = store_db_change(&store->db, STATEMENT_COMMIT, "");
	if (r)
		return r;
	sessions_written(store, sessions);
	return 0;
}

static int window_try(struct store *store, const struct window *window, uint32_t row_limit)
{
	int r = store_make_room(store, window->bytes);

	if (r)
		return r;
	r = store_db_change(&store->db, STATEMENT_BEGIN, "");
	if (r)
		return r;
	r = window_commit(store, window, row_limit);
	if (!r)
		return 0;
	if (!sqlite3_get_autocommit(store->db.handle))
		store_db_change(&store->db, STATEMENT_ROLLBACK, "");
	store_intern_forget(store->intern);
	store_tiers_sum(store);
	return r;
}

/* Returns why a window cannot be written or has to make room. */
static const char *reason_text(int r)
{
	return r == -ENOSPC  ? "the disk was full"
	       : r == -EFBIG ? "the limit on the size of a file was reached"
			     : strerror(-r);
}

/*
 * Tries again to write a window after a file could not grow. First restarts the database's log,
 * which may be that file; then evicts windows.
 */
static int window_squeeze(struct store *store, const struct window *window, uint32_t row_limit)
{
	char reason[sizeof(store->gap.reason)];
	int r;

	store_db_run(&store->db, "PRAGMA wal_checkpoint(RESTART)");
	r = window_try(store, window, row_limit);
	if (!store_is_full(r))
		return r;
	snprintf(reason, sizeof(reason), "dropped: %s", reason_text(r));
	if (store_evict_some(store, reason))
		return r;
	store_set_notice(store, STORE_NOTICE_DROPPED, "%s: the oldest windows were %s", store->path,
			 reason);
	return window_try(store, window, row_limit);
}

/*
 * Writes the window. If a file cannot grow, makes room and tries again. If the file is damaged,
 * begins a new one and tries again.
 */
static int window_write(struct store *store, struct window *window)
{
	/*
	 * The window was folded once already, in memory. If the first tier is short of space, fold
	 * the window again here, to fewer rows.
	 */
	bool is_folded = window->session < SESSION_FIRST_ID && store->sums[0].level;
	uint32_t row_limit = is_folded ? store_tier_rows(store, 0) : 0;
	struct window *folded = NULL;
	int r;

	if (is_folded && store_tier_fold(store, 0, window, &folded) == 0)
		window = folded;
	r = window_try(store, window, row_limit);
	if (store_is_full(r))
		r = window_squeeze(store, window, row_limit);
	else if (r == -EUCLEAN && store_file_renew(store) == 0)
		r = window_try(store, window, row_limit);
	window_unref(folded);
	return r;
}

/*
 * Reports that a window has to wait for the program that has this lock, and notes for the windows
 * that the queue turns away why. Returns -EBUSY.
 */
static int busy_note(struct store *store, enum store_lock lock)
{
	char who[LOCK_OWNER_TEXT];

	pthread_mutex_lock(&store->lock);
	store->busy = lock == STORE_LOCK_READ
			      ? "not written: another program read the database for long"
			      : "not written: another program had locked the database";
	pthread_mutex_unlock(&store->lock);
	store_lock_owner(store, lock, who);
	if (lock == STORE_LOCK_READ)
		store_set_problem(store, STORE_PROBLEM_FILE,
				  "%s: %s has read it for so long that its log is full; windows "
				  "wait in memory, at most %d",
				  store->path, who, STORE_QUEUE_MAX);
	else
		store_set_problem(store, STORE_PROBLEM_FILE,
				  "%s: locked by %s; windows wait in memory, at most %d",
				  store->path, who, STORE_QUEUE_MAX);
	return -EBUSY;
}

static void window_written(struct store *store, const struct window *window)
{
	int64_t end = window->end_ns + window->real_offset_ns;

	store->gap = (struct store_gap){};
	store->written_real_ns = end;
	if (window->session < SESSION_FIRST_ID)
		store->written_always_ns[window->kind] = end;
	store_set_problem(store, STORE_PROBLEM_FILE, NULL);
	pthread_mutex_lock(&store->lock);
	store->stats.written += window->merged_from;
	store->busy = NULL;
	pthread_mutex_unlock(&store->lock);
	store_count(store);
}

static void window_dropped(struct store *store, const struct window *window, int r)
{
	char reason[sizeof(store->gap.reason)];

	/* Only this thread changes store->busy. */
	if (r == -EBUSY && store->busy)
		snprintf(reason, sizeof(reason), "%s", store->busy);
	else
		snprintf(reason, sizeof(reason), "not written: %s", reason_text(r));
	store_gap_add(&store->gap, window->start_ns + window->real_offset_ns,
		      window->end_ns + window->real_offset_ns, reason);
	pthread_mutex_lock(&store->lock);
	store->stats.dropped_write += window->merged_from;
	pthread_mutex_unlock(&store->lock);
}

/*
 * Opens the file if that is due, and writes the window. Returns 0; -EBUSY if another program is in
 * the way; or another errno.
 */
static int window_place(struct store *store, struct window *window)
{
	int r = 0;

	store_file_follow(store);
	if (!store->db.handle && clock_ns(CLOCK_MONOTONIC) >= store->open_next_ns)
		r = store_file_try(store);
	if (!store->db.handle)
		return r == -EBUSY ? r : -EIO;
	r = store_log_limit(store);
	if (r == -EBUSY)
		return busy_note(store, STORE_LOCK_READ);
	r = window_write(store, window);
	if (r == -EBUSY)
		return busy_note(store, STORE_LOCK_WRITE);
	if (r)
		store_set_problem(store, STORE_PROBLEM_FILE, "%s: a window was not written: %s",
				  store->path, write_error_text(r));
	return r;
}

/* True unless the store has to stop. Sleeps first. */
static bool may_try_again(struct store *store)
{
	bool is_stopping;

	usleep(BUSY_AGAIN_NS / NS_PER_US);
	pthread_mutex_lock(&store->lock);
	is_stopping = store->is_stopping;
	pthread_mutex_unlock(&store->lock);
	return !is_stopping;
}

void store_window_take(struct store *store, struct window *window)
{
	int r;

	/* Other programs lose no windows here: the next ones wait in the queue. */
	do
		r = window_place(store, window);
	while (r == -EBUSY && may_try_again(store));
	if (r)
		window_dropped(store, window, r);
	else
		window_written(store, window);
}
