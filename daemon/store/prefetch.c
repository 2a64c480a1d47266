/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/prefetch.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/base.h"

/* Ready at a time; each may be some MiB. */
enum { AHEAD = 4 };

struct ready {
	struct window *window;
	int r;
};

struct store_ahead {
	struct store_reader *reader;
	const struct store_entry *entries;
	pthread_t thread;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t changed;
	struct ready ready[AHEAD]; /* of entry i in the place i % AHEAD */
	size_t loaded;		   /* entries from here on are */
	size_t taken;		   /* and of these, those from here on are taken */
	bool is_stopping;
};

/* Waits for a free place; false when there is no more to do. */
static bool place_wait(struct store_ahead *ahead)
{
	bool is_more;

	pthread_mutex_lock(&ahead->lock);
	while (!ahead->is_stopping && ahead->loaded && ahead->taken - ahead->loaded == AHEAD)
		pthread_cond_wait(&ahead->changed, &ahead->lock);
	is_more = !ahead->is_stopping && ahead->loaded;
	pthread_mutex_unlock(&ahead->lock);
	return is_more;
}

static void *ahead_run(void *data)
{
	struct store_ahead *ahead = data;
	struct ready ready;
	bool is_partial;
	size_t i;

	while (place_wait(ahead)) {
		i = ahead->loaded - 1;
		ready = (struct ready){};
		ready.r = store_reader_load(ahead->reader, &ahead->entries[i], &ready.window,
					    &is_partial);
		pthread_mutex_lock(&ahead->lock);
		ahead->ready[i % AHEAD] = ready;
		ahead->loaded = i;
		pthread_cond_broadcast(&ahead->changed);
		pthread_mutex_unlock(&ahead->lock);
	}
	return NULL;
}

int store_ahead_start(struct store_reader *reader, const struct store_entry *entries, size_t n,
		      struct store_ahead **out)
{
	struct store_ahead *ahead = calloc(1, sizeof(*ahead));
	int r;

	if (!ahead)
		return -ENOMEM;
	ahead->reader = reader;
	ahead->entries = entries;
	ahead->loaded = ahead->taken = n;
	pthread_mutex_init(&ahead->lock, NULL);
	pthread_cond_init(&ahead->changed, NULL);
	r = -pthread_create(&ahead->thread, NULL, ahead_run, ahead);
	if (r) {
		pthread_cond_destroy(&ahead->changed);
		pthread_mutex_destroy(&ahead->lock);
		free(ahead);
		return r;
	}
	pthread_setname_np(ahead->thread, "ahead");
	*out = ahead;
	return 0;
}

struct store_ahead *store_ahead_free(struct store_ahead *ahead)
{
	size_t i;

	if (!ahead)
		return NULL;
	pthread_mutex_lock(&ahead->lock);
	ahead->is_stopping = true;
	pthread_cond_broadcast(&ahead->changed);
	pthread_mutex_unlock(&ahead->lock);
	pthread_join(ahead->thread, NULL);
	for (i = ahead->loaded; i < ahead->taken; i++)
		window_unref(ahead->ready[i % AHEAD].window);
	pthread_cond_destroy(&ahead->changed);
	pthread_mutex_destroy(&ahead->lock);
	free(ahead);
	return NULL;
}

int store_ahead_get(struct store_ahead *ahead, const struct store_entry *entry, struct window **out)
{
	struct ready ready;

	if (!ahead->taken || entry != &ahead->entries[ahead->taken - 1])
		return -ESPIPE;
	pthread_mutex_lock(&ahead->lock);
	while (ahead->loaded == ahead->taken)
		pthread_cond_wait(&ahead->changed, &ahead->lock);
	ready = ahead->ready[--ahead->taken % AHEAD];
	pthread_cond_broadcast(&ahead->changed);
	pthread_mutex_unlock(&ahead->lock);
	if (!ready.r)
		*out = ready.window;
	return ready.r;
}
