/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "common/write_error.h"
#include "daemon/base/activity.h"
#include "daemon/base/log.h"
#include "daemon/base/thread.h"
#include "daemon/store/entry.h"
#include "daemon/store/internal.h"
#include "daemon/store/session_row.h"
#include "daemon/store/summary.h"
#include "daemon/store/window_row.h"

/* When opening the file failed, the writer tries again after this time. */
#define OPEN_AGAIN_NS (30 * NS_PER_S)

/*
 * The shortest time between two attempts to restart the log. An attempt may fail because a query
 * reads the database.
 */
#define LOG_AGAIN_NS (5 * NS_PER_S)

/*
 * WORK_NS: how long the writer merges old windows before it looks for new ones. WORK_SHARE: after
 * that, it sleeps this many times as long if no window arrives. FAILED_AGAIN_NS: if merging has
 * failed, the writer tries again after this time.
 */
#define WORK_NS		(20 * NS_PER_MS)
#define FAILED_AGAIN_NS (30 * NS_PER_S)

/* How long a reader has to keep the log from being truncated to be a problem. */
#define LOG_HELD_NS (30 * NS_PER_S)

/*
 * A log longer than LOG_MAX bytes is truncated, one longer than LOG_FIRST before windows that wait
 * are written. While a reader keeps it from being truncated, it may take what max_size leaves, or
 * LOG_FIRST if that is more.
 */
enum { GAPS_MAX = 4096, LOG_MAX = 5 << 20, LOG_FIRST = 16 << 20, WORK_SHARE = 3 };

/* How long the writer waits for other programs before it looks whether it has to stop. */
#define BUSY_AGAIN_NS (100 * NS_PER_MS)

/* Adds the gap in store->gap, if any, to the table `gaps`; keeps only its newest GAPS_MAX rows. */
static int gap_write(struct store *store)
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
	if (!r)
		r = store_row_add(&store->db, &entry, &blob);
	if (!r)
		r = store_tier_add(store, &entry, 0, blob.n, row_limit);
	return r ? r : gap_write(store);
}

static int window_try(struct store *store, const struct window *window, uint32_t row_limit)
{
	int r = store_make_room(store, window->bytes);
	size_t sessions = 0;

	if (!r)
		r = store_db_change(&store->db, STATEMENT_BEGIN, "");
	if (r)
		return r;
	r = sessions_write(store, &sessions);
	if (!r)
		r = window_write_in(store, window, row_limit);
	if (!r)
		r = store_db_change(&store->db, STATEMENT_COMMIT, "");
	if (!r) {
		sessions_written(store, sessions);
		return 0;
	}
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
 * True if the writer may go on waiting for the end of queries: no window waits to be written, or
 * the log has become so long that it has to be truncated first.
 */
static bool log_may_wait(void *userdata)
{
	struct store *store = userdata;
	bool is_wanted;

	pthread_mutex_lock(&store->lock);
	is_wanted = store->queued || store->is_stopping;
	pthread_mutex_unlock(&store->lock);
	return !is_wanted || store_file_bytes(store->path, "-wal") > LOG_FIRST;
}

/* Returns how many bytes the log may have; a longer one is truncated before windows are written. */
static uint64_t log_limit(const struct store *store)
{
	uint64_t bytes = store_file_bytes(store->path, "");
	uint64_t rest = store->max_size > bytes ? store->max_size - bytes : 0;

	return rest > LOG_FIRST ? rest : LOG_FIRST;
}

/* True if a reader has kept the log from being truncated for so long that this is a problem. */
static bool log_is_held(const struct store *store)
{
	return store->log_busy_ns && clock_ns(CLOCK_MONOTONIC) - store->log_busy_ns >= LOG_HELD_NS;
}

/*
 * Truncates the database's write-ahead log if it has become long. SQLite itself starts the log over
 * only at a moment without readers: when one query followed the other without a pause, the log grew
 * to 200 MiB in 5 minutes. This function waits until all queries that read now have finished, but
 * not longer than log_may_wait() allows. It does not wait for queries that begin later.
 */
static void log_restart(struct store *store, int64_t now)
{
	char who[LOCK_OWNER_TEXT];
	int r = 0;

	if (now < store->log_next_ns)
		return;
	store->log_next_ns = now + LOG_AGAIN_NS;
	if (store_file_bytes(store->path, "-wal") > LOG_MAX)
		r = store_db_truncate_log(&store->db, log_may_wait, store);
	if (r != -EBUSY) {
		store->log_busy_ns = 0;
		store_set_problem(store, STORE_PROBLEM_LOG, NULL);
		if (r)
			log_err(r, "%s: cannot restart the log of the database", store->path);
		return;
	}
	if (!store->log_busy_ns)
		store->log_busy_ns = now;
	if (!log_is_held(store))
		return;
	store_lock_owner(store, STORE_LOCK_READ, who);
	store_set_problem(store, STORE_PROBLEM_LOG,
			  "%s: %s has read it for long, so that its log cannot be emptied and may "
			  "take more than max_size",
			  store->path, who);
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

/* Opens the file. If another program is in the way, the next attempt is due at once. */
static int file_try(struct store *store)
{
	int r = store_file_open(store);

	store->open_next_ns = r == -EBUSY ? 0 : clock_ns(CLOCK_MONOTONIC) + OPEN_AGAIN_NS;
	return r;
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
		r = file_try(store);
	if (!store->db.handle)
		return r == -EBUSY ? r : -EIO;
	if (store_file_bytes(store->path, "-wal") > log_limit(store))
		r = store_db_truncate_log(&store->db, log_may_wait, store);
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

/*
 * Notes in the row of this run in the table `runs` that stackd is running now or, if is_over, that
 * it was stopped.
 */
static void run_alive(struct store *store, bool is_over)
{
	int r = store_db_change(&store->db, is_over ? STATEMENT_RUN_END : STATEMENT_RUN_ALIVE, "ii",
				store->run, clock_ns(CLOCK_REALTIME));

	if (r)
		log_err(r, "%s: cannot note that stackd is running", store->path);
}

/*
 * Makes a checkpoint, and syncs the log: windows committed before it survive a power cut. The
 * checkpoint syncs the log only if it copies something, which a reader may keep it from.
 */
static void store_sync(struct store *store)
{
	int r;

	run_alive(store, false);
	r = store_db_run(&store->db, "PRAGMA wal_checkpoint(PASSIVE)");
	if (!r)
		r = store_db_sync_log(&store->db);
	if (r) {
		log_err(r, "%s: cannot sync the file", store->path);
		return;
	}
	pthread_mutex_lock(&store->lock);
	if (store->written_real_ns)
		store->stats.synced_ns = store->written_real_ns;
	memcpy(store->stats.synced_always_ns, store->written_always_ns,
	       sizeof(store->stats.synced_always_ns));
	pthread_mutex_unlock(&store->lock);
}

/*
 * Takes the oldest window from the queue; if the queue is empty, waits for a window until until_ns
 * (CLOCK_MONOTONIC). Returns NULL if none came. Sets *is_stopping to whether the store has to stop
 * and the queue is empty.
 */
static struct window *queue_wait(struct store *store, int64_t until_ns, bool *is_stopping)
{
	struct window *window = NULL;
	int r = 0;

	pthread_mutex_lock(&store->lock);
	while (!store->queued && !store->is_stopping && !r)
		r = thread_wait_until(&store->wake, &store->lock, until_ns);
	if (store->queued) {
		window = store->queue[store->first];
		store->first = (store->first + 1) % STORE_QUEUE_MAX;
		store->queued--;
		store->queued_bytes -= window->bytes;
	}
	if (store->missed.end_ns > store->missed.start_ns) {
		store_gap_add(&store->gap, store->missed.start_ns, store->missed.end_ns,
			      store->missed.reason);
		store->missed = (struct store_gap){};
	}
	*is_stopping = store->is_stopping && !window;
	pthread_mutex_unlock(&store->lock);
	return window;
}

/*
 * Does one step of the work that is not urgent: frees space, deletes unused rows, merges old
 * windows. Returns true if there is more to do.
 */
static bool work_step(struct store *store)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);
	int r;

	if (now < store->failed_next_ns)
		return false;
	r = store_shrink_step(store);
	if (!r)
		r = store_compact_step(store);
	if (!r)
		r = store_summary_step(store);
	if (r < 0) {
		log_err(r, "%s: cannot merge old windows", store->path);
		store->failed_next_ns = now + FAILED_AGAIN_NS;
	}
	return r > 0;
}

/*
 * Does the work that is due between two windows: syncs, truncates the log, and calls work_step()
 * for at most WORK_NS if the queue is empty. Returns for how long the writer may sleep if no window
 * arrives. If there is more work to do, that is WORK_SHARE times as long as the writer has just
 * worked, so that it does not keep a CPU busy. It does not sleep if there is hardly room for the
 * next windows.
 */
static int64_t writer_idle(struct store *store, bool is_queue_empty)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC), took = 0;
	bool is_more = false;

	store_join_flush(store, false);
	if (!store->db.handle)
		return NS_PER_S;
	if (now >= store->sync_next_ns) {
		store->sync_next_ns = now + store->sync_every_ns;
		store_sync(store);
		store_tiers_relax(store);
	}
	log_restart(store, now);
	now = clock_ns(CLOCK_MONOTONIC);
	/* Merging would only make a log longer that cannot be emptied. */
	while (is_queue_empty && !log_is_held(store) && took < WORK_NS &&
	       (is_more = work_step(store)))
		took = clock_ns(CLOCK_MONOTONIC) - now;
	if (took)
		store_tiers_count(store);
	pthread_mutex_lock(&store->lock);
	store->stats.is_working = is_more || !is_queue_empty;
	pthread_mutex_unlock(&store->lock);
	if (!is_more)
		return NS_PER_S;
	return store_is_short(store) ? 0 : WORK_SHARE * took;
}

static void writer_stop(struct store *store)
{
	store_join_flush(store, true);
	/* Closing a file that was overwritten would write the log to it. */
	store_file_follow(store);
	if (!store->db.handle)
		return;
	gap_write(store);
	run_alive(store, true);
	store_file_close(store);
}

void *store_writer_run(void *data)
{
	struct activity activity = {
		.thread = "store",
		.work = "writing to disk",
		.kind = ACTIVITY_OTHER,
	};
	struct store *store = data;
	int64_t sleep_ns = NS_PER_S;
	bool is_stopping = false;
	struct window *window;

	file_try(store);
	pthread_mutex_lock(&store->lock);
	store->has_tried = true;
	pthread_cond_broadcast(&store->tried);
	pthread_mutex_unlock(&store->lock);
	activity_watch(&activity);
	while (!is_stopping) {
		activity_end(&activity);
		window = queue_wait(store, clock_ns(CLOCK_MONOTONIC) + sleep_ns, &is_stopping);
		activity_begin(&activity);
		if (window)
			store_join_take(store, window);
		else
			store_file_follow(store);
		/*
		 * If a window has just been written, look into the queue again without sleeping: it
		 * may have more windows, which are to be written before old ones are merged.
		 */
		sleep_ns = writer_idle(store, !window);
		if (window)
			sleep_ns = 0;
	}
	writer_stop(store);
	activity_unwatch(&activity);
	return NULL;
}
