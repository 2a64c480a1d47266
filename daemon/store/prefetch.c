/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/prefetch.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/base.h"
#include "daemon/base/answer_time.h"
#include "daemon/base/thread.h"

/*
 * The maximum number of windows that are loaded before the query takes them. A window may take
 * several MiB.
 */
enum { READY_MAX = 4 };

struct ready {
	struct window *window;
	int r;
};

struct store_prefetch {
	struct store_reader *reader;
	const struct store_entry *entries;
	pthread_t thread;
	pthread_mutex_t lock; /* protects the members that follow it */
	pthread_cond_t changed;
	/* loaded windows; the window of entries[i] is at index i % READY_MAX */
	struct ready ready[READY_MAX];
	size_t loaded; /* the windows of entries from this index on are loaded */
	size_t taken;  /* the windows of entries from this index on were returned to the caller */
	bool is_stopping;
	bool is_paused;	 /* the thread must not begin to load a window */
	bool is_loading; /* the thread loads a window now */
};

/*
 * Waits until the ring has room for another window and the thread is not paused. Returns false if
 * all windows are loaded, or if the thread has to stop. Otherwise sets is_loading.
 */
static bool place_wait(struct store_prefetch *prefetch)
{
	bool is_more;

	pthread_mutex_lock(&prefetch->lock);
	while (!prefetch->is_stopping && prefetch->loaded &&
	       (prefetch->is_paused || prefetch->taken - prefetch->loaded == READY_MAX))
		pthread_cond_wait(&prefetch->changed, &prefetch->lock);
	is_more = !prefetch->is_stopping && prefetch->loaded;
	prefetch->is_loading = is_more;
	pthread_mutex_unlock(&prefetch->lock);
	return is_more;
}

static void *prefetch_run(void *data)
{
	struct store_prefetch *prefetch = data;
	struct answer_time time;
	struct ready ready;
	size_t i;

	answer_time_begin(&time);
	while (place_wait(prefetch)) {
		i = prefetch->loaded - 1;
		ready = (struct ready){};
		if (prefetch->entries[i].id)
			ready.r = store_reader_load(prefetch->reader, &prefetch->entries[i],
						    &ready.window);
		pthread_mutex_lock(&prefetch->lock);
		prefetch->ready[i % READY_MAX] = ready;
		prefetch->loaded = i;
		prefetch->is_loading = false;
		pthread_cond_broadcast(&prefetch->changed);
		pthread_mutex_unlock(&prefetch->lock);
	}
	answer_time_end(&time);
	return NULL;
}

int store_prefetch_start(struct store_reader *reader, const struct store_entry *entries, size_t n,
			 struct store_prefetch **out)
{
	struct store_prefetch *prefetch = calloc(1, sizeof(*prefetch));
	int r;

	if (!prefetch)
		return -ENOMEM;
	prefetch->reader = reader;
	prefetch->entries = entries;
	prefetch->loaded = prefetch->taken = n;
	pthread_mutex_init(&prefetch->lock, NULL);
	pthread_cond_init(&prefetch->changed, NULL);
	r = thread_start(&prefetch->thread, "ahead", prefetch_run, prefetch);
	if (r) {
		pthread_cond_destroy(&prefetch->changed);
		pthread_mutex_destroy(&prefetch->lock);
		free(prefetch);
		return r;
	}
	*out = prefetch;
	return 0;
}

struct store_prefetch *store_prefetch_free(struct store_prefetch *prefetch)
{
	size_t i;

	if (!prefetch)
		return NULL;
	pthread_mutex_lock(&prefetch->lock);
	prefetch->is_stopping = true;
	pthread_cond_broadcast(&prefetch->changed);
	pthread_mutex_unlock(&prefetch->lock);
	pthread_join(prefetch->thread, NULL);
	for (i = prefetch->loaded; i < prefetch->taken; i++)
		window_unref(prefetch->ready[i % READY_MAX].window);
	pthread_cond_destroy(&prefetch->changed);
	pthread_mutex_destroy(&prefetch->lock);
	free(prefetch);
	return NULL;
}

void store_prefetch_pause(struct store_prefetch *prefetch)
{
	if (!prefetch)
		return;
	pthread_mutex_lock(&prefetch->lock);
	prefetch->is_paused = true;
	while (prefetch->is_loading)
		pthread_cond_wait(&prefetch->changed, &prefetch->lock);
	pthread_mutex_unlock(&prefetch->lock);
}

/* Takes the entries of windows in memory that are next, for which the query does not ask. */
static void memory_skip(struct store_prefetch *prefetch)
{
	while (prefetch->taken && !prefetch->entries[prefetch->taken - 1].id) {
		while (prefetch->loaded == prefetch->taken)
			pthread_cond_wait(&prefetch->changed, &prefetch->lock);
		prefetch->taken--;
		pthread_cond_broadcast(&prefetch->changed);
	}
}

int store_prefetch_get(struct store_prefetch *prefetch, const struct store_entry *entry,
		       struct window **out)
{
	struct ready ready;

	pthread_mutex_lock(&prefetch->lock);
	if (prefetch->is_paused)
		pthread_cond_broadcast(&prefetch->changed);
	prefetch->is_paused = false;
	memory_skip(prefetch);
	if (!prefetch->taken || entry != &prefetch->entries[prefetch->taken - 1]) {
		pthread_mutex_unlock(&prefetch->lock);
		return -ESPIPE;
	}
	while (prefetch->loaded == prefetch->taken)
		pthread_cond_wait(&prefetch->changed, &prefetch->lock);
	ready = prefetch->ready[--prefetch->taken % READY_MAX];
	pthread_cond_broadcast(&prefetch->changed);
	pthread_mutex_unlock(&prefetch->lock);
	if (!ready.r)
		*out = ready.window;
	return ready.r;
}
