/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "common/base.h"
#include "daemon/base/activity.h"
#include "daemon/base/log.h"
#include "daemon/base/thread.h"
#include "daemon/store/internal.h"

/*
 * WORK_NS: how long the writer merges old windows before it looks for new ones. WORK_SHARE: after
 * that, it sleeps this many times as long if no window arrives. FAILED_AGAIN_NS: if merging has
 * failed, the writer tries again after this time.
 */
enum { WORK_SHARE = 3 };
#define WORK_NS		(20 * NS_PER_MS)
#define FAILED_AGAIN_NS (30 * NS_PER_S)

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

/* Does the step for work_step(). Returns a positive number if there is more to do. */
static int work_do(struct store *store)
{
	int r = store_shrink_step(store, true);

	if (r)
		return r;
	r = store_compact_step(store);
	if (r)
		return r;
	return store_summary_step(store);
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
	r = work_do(store);
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
	store_log_restart(store, now);
	now = clock_ns(CLOCK_MONOTONIC);
	/* Merging would only make a log longer that cannot be emptied. */
	while (is_queue_empty && !store_log_is_held(store) && took < WORK_NS &&
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
	store_gap_write(store);
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

	store_file_try(store);
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
