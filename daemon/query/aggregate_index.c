/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/aggregate_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct aggregate_task *task_add(struct aggregate *aggregate, struct aggregate_task **set,
				       uint64_t a, uint64_t b)
{
	uint64_t key[2] = { a, b };
	struct aggregate_task *task;

	HASH_FIND(hh, *set, key, sizeof(key), task);
	if (task)
		return task;
	task = arena_alloc(aggregate->arena, sizeof(*task));
	if (!task) {
		aggregate->error = -ENOMEM;
		return NULL;
	}
	memcpy(task->key, key, sizeof(key));
	HASH_ADD(hh, *set, key, sizeof(key), task);
	if (!HASH_HAS(task)) {
		aggregate->error = -ENOMEM;
		return NULL;
	}
	return task;
}

static void tasks_free(struct aggregate_task *set)
{
	struct aggregate_task *task, *next;

	HASH_ITER (hh, set, task, next)
		HASH_DEL(set, task);
}

struct aggregate_wait *aggregate_wait_get(struct aggregate *aggregate, uint64_t uid,
					  int64_t start_ns, bool add)
{
	uint64_t key[2] = { uid, (uint64_t)start_ns };
	struct aggregate_wait *wait;

	HASH_FIND(hh, aggregate->waits, key, sizeof(key), wait);
	if (wait || !add)
		return wait;
	wait = calloc(1, sizeof(*wait));
	if (!wait) {
		aggregate->error = -ENOMEM;
		return NULL;
	}
	memcpy(wait->key, key, sizeof(key));
	HASH_ADD(hh, aggregate->waits, key, sizeof(key), wait);
	if (!HASH_HAS(wait)) {
		free(wait);
		aggregate->error = -ENOMEM;
		return NULL;
	}
	return wait;
}

/* A copy: the window may go before the wait's earlier parts are met. */
static void wait_keep_span(struct aggregate_wait *wait, const struct window_span *span)
{
	if (wait->has_span)
		return;
	wait->span = *span;
	wait->has_span = true;
	stack_ref(span->kernel);
	stack_ref(span->user);
}

static void wait_free(struct aggregate *aggregate, struct aggregate_wait *wait)
{
	HASH_DEL(aggregate->waits, wait);
	stack_unref(wait->span.kernel);
	stack_unref(wait->span.user);
	stack_unref(wait->user);
	free(wait);
}

void aggregate_waits_forget(struct aggregate *aggregate, const struct window *window)
{
	struct aggregate_wait *wait, *next;

	HASH_ITER (hh, aggregate->waits, wait, next)
		if ((int64_t)wait->key[1] >= window->start_ns)
			wait_free(aggregate, wait);
}

void aggregate_spans_index(struct aggregate *aggregate, const struct window *window)
{
	struct aggregate_wait *wait;
	size_t i;

	for (i = 0; i < window->n_spans; i++) {
		wait = aggregate_wait_get(aggregate, window->images[window->spans[i].image].uid,
					  window->spans[i].start_ns, true);
		if (wait)
			wait_keep_span(wait, &window->spans[i]);
	}
}

void aggregate_opens_index(struct aggregate *aggregate, const struct window *last)
{
	struct aggregate_wait *wait;
	size_t i;

	for (i = 0; i < last->n_opens; i++) {
		wait = aggregate_wait_get(aggregate, last->images[last->opens[i].image].uid,
					  last->opens[i].start_ns, true);
		if (!wait)
			continue;
		wait->is_open_at_end = true;
		wait->user = stack_ref(last->opens[i].user);
		wait->is_unseen = last->opens[i].state & STATE_UNSEEN;
	}
}

static void info_update(struct aggregate *aggregate, struct aggregate_image_info *info,
			const struct window_image *image)
{
	memcpy(info->comm, image->comm, sizeof(info->comm));
	info->is_wanted = filter_has_image(aggregate->filter, image, &info->process);
	if (!info->is_wanted)
		return;
	info->thread = task_add(aggregate, &aggregate->threads, (uint64_t)image->tid,
				image->start_boot_ns);
	task_add(aggregate, &aggregate->processes, (uint64_t)info->process.id.pid,
		 info->process.id.start_boot_ns);
}

struct aggregate_image_info *aggregate_image_info_get(struct aggregate *aggregate,
						      const struct window_image *image)
{
	uint64_t key[2] = { image->uid, (uintptr_t)image->process };
	struct aggregate_image_info *info;

	HASH_FIND(hh, aggregate->infos, key, sizeof(key), info);
	if (info) {
		/* A thread may have another name in each window. */
		if (memcmp(info->comm, image->comm, sizeof(info->comm)) != 0)
			info_update(aggregate, info, image);
		return info;
	}
	info = arena_alloc(aggregate->arena, sizeof(*info));
	if (!info)
		return NULL;
	memcpy(info->key, key, sizeof(key));
	HASH_ADD(hh, aggregate->infos, key, sizeof(key), info);
	if (!HASH_HAS(info))
		return NULL;
	info->image = *image;
	process_ref(image->process);
	process_info(image->process, &info->process);
	info_update(aggregate, info, image);
	return info;
}

void aggregate_index_free(struct aggregate *aggregate)
{
	struct aggregate_wait *wait, *next_wait;
	struct aggregate_image_info *info, *next_info;

	HASH_ITER (hh, aggregate->waits, wait, next_wait)
		wait_free(aggregate, wait);
	HASH_ITER (hh, aggregate->infos, info, next_info) {
		HASH_DEL(aggregate->infos, info);
		process_unref(info->image.process);
	}
	tasks_free(aggregate->threads);
	tasks_free(aggregate->processes);
}
