/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "common/base.h"
#include "daemon/base/log.h"
#include "daemon/store/internal.h"

/*
 * The shortest time between two attempts to restart the log. An attempt may fail because a query
 * reads the database.
 */
#define LOG_AGAIN_NS (5 * NS_PER_S)

/* How long a reader has to keep the log from being truncated to be a problem. */
#define LOG_HELD_NS (30 * NS_PER_S)

/*
 * A log longer than LOG_MAX bytes is truncated, one longer than LOG_FIRST before windows that wait
 * are written. While a reader keeps it from being truncated, it may take what max_size leaves, or
 * LOG_FIRST if that is more.
 */
enum { LOG_MAX = 5 << 20, LOG_FIRST = 16 << 20 };

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

int store_log_limit(struct store *store)
{
	uint64_t bytes = store_file_bytes(store->path, "");
	uint64_t rest = store->max_size > bytes ? store->max_size - bytes : 0;

	if (store_file_bytes(store->path, "-wal") <= (rest > LOG_FIRST ? rest : LOG_FIRST))
		return 0;
	return store_db_truncate_log(&store->db, log_may_wait, store);
}

bool store_log_is_held(const struct store *store)
{
	return store->log_busy_ns && clock_ns(CLOCK_MONOTONIC) - store->log_busy_ns >= LOG_HELD_NS;
}

void store_log_restart(struct store *store, int64_t now)
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
	if (!store_log_is_held(store))
		return;
	store_lock_owner(store, STORE_LOCK_READ, who);
	store_set_problem(store, STORE_PROBLEM_LOG,
			  "%s: %s has read it for long, so that its log cannot be emptied and may "
			  "take more than max_size",
			  store->path, who);
}
