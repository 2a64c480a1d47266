/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/base/activity.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct activity *watched; /* guarded by `lock` */

void activity_watch(struct activity *activity)
{
	pthread_mutex_lock(&lock);
	activity->next = watched;
	watched = activity;
	pthread_mutex_unlock(&lock);
}

void activity_unwatch(struct activity *activity)
{
	struct activity **at;

	pthread_mutex_lock(&lock);
	for (at = &watched; *at && *at != activity; at = &(*at)->next)
		;
	if (*at)
		*at = activity->next;
	pthread_mutex_unlock(&lock);
}

size_t activity_list_stuck(int64_t least_ns, struct activity_stuck *out, size_t max)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);
	const struct activity *activity;
	size_t n = 0;

	pthread_mutex_lock(&lock);
	for (activity = watched; activity && n < max; activity = activity->next) {
		int64_t begun = atomic_load(&activity->begun_ns);

		if (!begun || now - begun < least_ns)
			continue;
		out[n++] = (struct activity_stuck){
			.thread = activity->thread,
			.work = activity->work,
			.kind = activity->kind,
			.ns = now - begun,
		};
	}
	pthread_mutex_unlock(&lock);
	return n;
}
