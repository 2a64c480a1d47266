/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/base/log.h"
#include "daemon/base/thread.h"
#include "daemon/store/internal.h"
#include "daemon/store/session_row.h"

/* How long store_stop() waits for a disk that does not answer. */
enum { STOP_S = 4 };

/*
 * The default time between two syncs. A power cut may lose the windows that were written in this
 * time; kill -9 loses none.
 */
#define SYNC_EVERY_NS (30 * NS_PER_S)

static struct store *store_free(struct store *store)
{
	while (store->noted)
		store_session_fini(&store->notes[--store->noted]);
	while (store->queued) {
		window_unref(store->queue[store->first]);
		store->first = (store->first + 1) % STORE_QUEUE_MAX;
		store->queued--;
	}
	store_join_free(store);
	pthread_cond_destroy(&store->tried);
	pthread_cond_destroy(&store->wake);
	pthread_mutex_destroy(&store->lock);
	free(store->path);
	free(store->lock_path);
	free(store);
	return NULL;
}

static struct store *store_new(const struct store_options *options)
{
	struct store *store = calloc(1, sizeof(*store));
	size_t i;

	if (!store)
		return NULL;
	pthread_mutex_init(&store->lock, NULL);
	pthread_cond_init(&store->wake, NULL);
	pthread_cond_init(&store->tried, NULL);
	store->path = strdup(options->path);
	if (asprintf(&store->lock_path, "%s.lock", options->path) < 0)
		store->lock_path = NULL;
	if (!store->path || !store->lock_path)
		return store_free(store);
	snprintf(store->boot_id, sizeof(store->boot_id), "%s", options->boot_id);
	store->max_size = options->max_size;
	memcpy(store->tiers, options->tiers, sizeof(store->tiers));
	store->n_tiers = options->n_tiers;
	/* What is older than max_age passes through all tiers: it is evicted from the last one. */
	for (i = 0; i < store->n_tiers; i++)
		if (store->tiers[i].keep_ns > options->max_age_ns)
			store->tiers[i].keep_ns = options->max_age_ns;
	store->fold = options->fold;
	store->window_ns = options->window_ns;
	store->now = options->now ? options->now : clock_ns;
	store->is_read_only = options->is_read_only;
	store->sync_every_ns = options->sync_every_ns ? options->sync_every_ns : SYNC_EVERY_NS;
	store->lock_fd = -1;
	store->stats.is_read_only = options->is_read_only;
	store->stats.max_size = options->max_size;
	store->stats.oldest_ns = store->stats.newest_ns = store->stats.synced_ns = INT64_MIN;
	for (i = 0; i < PROBE_KIND_N; i++)
		store->written_always_ns[i] = store->stats.synced_always_ns[i] = INT64_MIN;
	return store;
}

int store_start(const struct store_options *options, struct store **out)
{
	struct store *store = store_new(options);
	int r = 0;

	if (!store)
		return -ENOMEM;
	if (!store->is_read_only)
		r = thread_start(&store->thread, "store", store_writer_run, store);
	if (r) {
		store_free(store);
		return r;
	}
	store->has_thread = !store->is_read_only;
	*out = store;
	return 0;
}

void store_wait(struct store *store, int64_t timeout_ns)
{
	int64_t until = clock_ns(CLOCK_MONOTONIC) + timeout_ns;
	int r = 0;

	if (!store || !store->has_thread)
		return;
	pthread_mutex_lock(&store->lock);
	while (!store->has_tried && !r)
		r = thread_wait_until(&store->tried, &store->lock, until);
	pthread_mutex_unlock(&store->lock);
	if (r)
		log_warning("%s: the disk does not answer; earlier windows cannot be read yet",
			    store->path);
}

/* Ends the thread. Returns false if it has not ended after STOP_S. */
static bool thread_end(struct store *store)
{
	struct timespec deadline;

	pthread_mutex_lock(&store->lock);
	store->is_stopping = true;
	pthread_cond_signal(&store->wake);
	pthread_mutex_unlock(&store->lock);
	clock_gettime(CLOCK_MONOTONIC, &deadline);
	deadline.tv_sec += STOP_S;
	return pthread_clockjoin_np(store->thread, NULL, CLOCK_MONOTONIC, &deadline) == 0;
}

void store_end(struct store *store)
{
	if (!store || !store->has_thread)
		return;
	store->has_thread = false;
	store->is_hanging = !thread_end(store);
	if (!store->is_hanging)
		return;
	pthread_mutex_lock(&store->lock);
	log_warning("%s: %s; the last windows are lost", store->path,
		    store->busy ? store->busy : "the disk does not answer");
	pthread_mutex_unlock(&store->lock);
}

struct store *store_stop(struct store *store)
{
	store_end(store);
	/* Do not free what the thread still uses. The process exits soon. */
	return !store || store->is_hanging ? store : store_free(store);
}

size_t store_add(struct store *store, struct window *window)
{
	size_t bytes;

	if (!store || store->is_read_only)
		return 0;
	pthread_mutex_lock(&store->lock);
	if (store->queued == STORE_QUEUE_MAX) {
		store->stats.dropped_queue++;
		store_gap_add(&store->missed, window->start_ns + window->real_offset_ns,
			      window->end_ns + window->real_offset_ns,
			      store->busy ? store->busy : "not written: the disk was too slow");
	} else {
		store->queue[(store->first + store->queued++) % STORE_QUEUE_MAX] =
			window_ref(window);
		store->queued_bytes += window->bytes;
		pthread_cond_signal(&store->wake);
	}
	bytes = store->queued_bytes;
	pthread_mutex_unlock(&store->lock);
	return bytes;
}

void store_add_session(struct store *store, const struct store_session *session)
{
	if (!store || store->is_read_only)
		return;
	pthread_mutex_lock(&store->lock);
	if (store->noted < STORE_NOTES_MAX &&
	    store_session_copy(session, &store->notes[store->noted]) == 0)
		store->noted++;
	else
		store->stats.dropped_queue++;
	pthread_mutex_unlock(&store->lock);
}

void store_set_window(struct store *store, int64_t window_ns)
{
	if (!store)
		return;
	pthread_mutex_lock(&store->lock);
	store->window_ns = window_ns;
	pthread_mutex_unlock(&store->lock);
}

uint64_t store_current_run(struct store *store)
{
	struct store_stats stats = {};

	if (store)
		store_stats(store, &stats);
	return stats.run;
}

const char *store_path(const struct store *store)
{
	return store->path;
}

/* Says why a database cannot be read. */
static const char *reader_error(int r)
{
	switch (r) {
	case -EUCLEAN:
		return "it is damaged, or no database";
	case -ENODATA:
		return "it has no windows";
	case -EPROTONOSUPPORT:
		return "it was written by another version of stackd";
	default:
		return strerror(-r);
	}
}

int store_reader_begin(struct store *store, struct store_reader **out)
{
	bool is_ours;
	int r;

	if (!store)
		return -ENODATA;
	pthread_mutex_lock(&store->lock);
	is_ours = store->is_read_only || store->stats.is_writing;
	pthread_mutex_unlock(&store->lock);
	if (!is_ours)
		return -ENODATA;
	r = store_reader_open(store->path, out);
	/* Without a writer, only readers notice what is wrong with the file. */
	if (store->is_read_only && r)
		store_set_problem(store, STORE_PROBLEM_FILE, "%s: cannot be read: %s", store->path,
				  reader_error(r));
	else if (store->is_read_only)
		store_set_problem(store, STORE_PROBLEM_FILE, NULL);
	return r;
}

void store_reader_end(struct store *store, struct store_reader *reader)
{
	if (!reader)
		return;
	pthread_mutex_lock(&store->lock);
	store->stats.damaged += store_reader_damaged(reader);
	if (store_reader_damaged(reader))
		store->stats.damaged_ns = clock_ns(CLOCK_REALTIME);
	pthread_mutex_unlock(&store->lock);
	store_reader_close(reader);
}
