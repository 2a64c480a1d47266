/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/drain/tick.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "common/array.h"
#include "common/base.h"
#include "daemon/base/activity.h"
#include "daemon/base/log.h"
#include "daemon/base/thread.h"
#include "daemon/drain/ring.h"

struct tick_ring {
	const struct drain_ring *ring;
	int wake_fd;
};

struct tick {
	pthread_t thread;
	pthread_mutex_t lock; /* guards all members that follow */
	pthread_cond_t stopping;
	bool is_stopping;
	struct tick_ring *rings;
	size_t n_rings;
	size_t capacity;
};

/* Wakes each drain whose ring buffer has records. Called with the lock held. */
static void drains_wake(const struct tick *tick)
{
	size_t i;

	for (i = 0; i < tick->n_rings; i++)
		if (drain_ring_has_records(tick->rings[i].ring) &&
		    eventfd_write(tick->rings[i].wake_fd, 1) < 0)
			log_err(-errno, "wake a drain");
}

static void *tick_run(void *data)
{
	struct activity activity = { .thread = "tick", .work = "waking readers of rings" };
	struct tick *tick = data;

	thread_set_urgent();
	activity_watch(&activity);
	pthread_mutex_lock(&tick->lock);
	while (!tick->is_stopping) {
		int64_t end = clock_ns(CLOCK_MONOTONIC) + TICK_NS;

		activity_end(&activity);
		if (thread_wait_until(&tick->stopping, &tick->lock, end) != -ETIMEDOUT)
			continue;
		activity_begin(&activity);
		drains_wake(tick);
	}
	pthread_mutex_unlock(&tick->lock);
	activity_unwatch(&activity);
	return NULL;
}

static void tick_free(struct tick *tick)
{
	pthread_cond_destroy(&tick->stopping);
	pthread_mutex_destroy(&tick->lock);
	free(tick->rings);
	free(tick);
}

int tick_start(struct tick **out)
{
	struct tick *tick = calloc(1, sizeof(*tick));
	int r;

	if (!tick)
		return -ENOMEM;
	pthread_mutex_init(&tick->lock, NULL);
	pthread_cond_init(&tick->stopping, NULL);
	r = thread_start(&tick->thread, "tick", tick_run, tick);
	if (r) {
		tick_free(tick);
		return r;
	}
	*out = tick;
	return 0;
}

struct tick *tick_stop(struct tick *tick)
{
	if (!tick)
		return NULL;
	pthread_mutex_lock(&tick->lock);
	tick->is_stopping = true;
	pthread_cond_signal(&tick->stopping);
	pthread_mutex_unlock(&tick->lock);
	pthread_join(tick->thread, NULL);
	tick_free(tick);
	return NULL;
}

int tick_add(struct tick *tick, const struct drain_ring *ring, int wake_fd)
{
	int r;

	pthread_mutex_lock(&tick->lock);
	r = array_reserve(tick->rings, tick->capacity, tick->n_rings + 1);
	if (!r)
		tick->rings[tick->n_rings++] = (struct tick_ring){ ring, wake_fd };
	pthread_mutex_unlock(&tick->lock);
	return r;
}

void tick_remove(struct tick *tick, const struct drain_ring *ring)
{
	size_t i;

	pthread_mutex_lock(&tick->lock);
	for (i = 0; i < tick->n_rings; i++)
		if (tick->rings[i].ring == ring)
			tick->rings[i--] = tick->rings[--tick->n_rings];
	pthread_mutex_unlock(&tick->lock);
}
