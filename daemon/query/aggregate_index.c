/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/aggregate_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Finds the thread or process with this id and start time in the table, or adds it. Returns NULL
 * when out of memory.
 */
static struct aggregate_task *task_add(struct aggregate *aggregate, struct aggregate_task **table,
				       uint64_t id, uint64_t start)
{
	uint64_t key[2] = { id, start };
	struct aggregate_task *task;

	HASH_FIND(hh, *table, key, sizeof(key), task);
	if (task)
		return task;
	task = arena_alloc(aggregate->arena, sizeof(*task));
	if (!task) {
		aggregate->error = -ENOMEM;
		return NULL;
	}
	memcpy(task->key, key, sizeof(key));
	HASH_ADD(hh, *table, key, sizeof(key), task);
	if (!HASH_HAS(task)) {
		aggregate->error = -ENOMEM;
		return NULL;
	}
	return task;
}

struct aggregate_wait *aggregate_wait_find(struct aggregate *aggregate, uint64_t uid,
					   int64_t start_ns)
{
	uint64_t key[2] = { uid, (uint64_t)start_ns };
	struct aggregate_wait *wait;

	HASH_FIND(hh, aggregate->waits, key, sizeof(key), wait);
	return wait;
}

/* Finds a wait in the table of waits, or adds it. Returns NULL when out of memory. */
static struct aggregate_wait *wait_add(struct aggregate *aggregate, uint64_t uid, int64_t start_ns)
{
	struct aggregate_wait *wait = aggregate_wait_find(aggregate, uid, start_ns);

	if (wait)
		return wait;
	wait = calloc(1, sizeof(*wait));
	if (!wait) {
		aggregate->error = -ENOMEM;
		return NULL;
	}
	wait->key[0] = uid;
	wait->key[1] = (uint64_t)start_ns;
	HASH_ADD(hh, aggregate->waits, key, sizeof(wait->key), wait);
	if (!HASH_HAS(wait)) {
		free(wait);
		aggregate->error = -ENOMEM;
		return NULL;
	}
	return wait;
}

static void wait_free(struct aggregate *aggregate, struct aggregate_wait *wait)
{
	HASH_DEL(aggregate->waits, wait);
	stack_unref(wait->span.kernel);
	stack_unref(wait->span.user);
	stack_unref(wait->user);
	free(wait);
}

void aggregate_waits_drop(struct aggregate *aggregate, const struct window *window)
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
		const struct window_span *span = &window->spans[i];

		wait = wait_add(aggregate, window->images[span->image].uid, span->start_ns);
		if (!wait || wait->has_span)
			continue;
		/*
		 * Keep a copy: the wait began in an earlier window, which is read later, when this
		 * window may have been freed.
		 */
		wait->span = *span;
		wait->has_span = true;
		stack_ref(span->kernel);
		stack_ref(span->user);
	}
}

void aggregate_opens_index(struct aggregate *aggregate, const struct window *last)
{
	struct aggregate_wait *wait;
	size_t i;

	for (i = 0; i < last->n_opens; i++) {
		const struct window_open *open = &last->opens[i];

		if (open->count)
			continue;
		wait = wait_add(aggregate, last->images[open->image].uid, open->start_ns);
		if (!wait)
			continue;
		wait->is_open_at_end = true;
		wait->user = stack_ref(open->user);
		wait->is_unseen = open->state & STATE_UNSEEN;
	}
}

/*
 * Checks whether the filter selects the thread under the name that it has in this window. If so,
 * counts the thread and its process.
 */
static void info_update(struct aggregate *aggregate, struct aggregate_image_info *info,
			const struct window_image *image)
{
	const struct process_id *process = &info->process.id;

	memcpy(info->comm, image->comm, sizeof(info->comm));
	info->is_wanted = filter_has_image(aggregate->filter, image, &info->process);
	if (!info->is_wanted)
		return;
	info->thread = task_add(aggregate, &aggregate->threads, (uint64_t)image->tid,
				image->start_boot_ns);
	task_add(aggregate, &aggregate->processes, (uint64_t)process->pid, process->start_boot_ns);
}

struct aggregate_image_info *aggregate_image_info_get(struct aggregate *aggregate,
						      const struct window_image *image)
{
	uint64_t key[2] = { image->uid, (uintptr_t)image->process };
	struct aggregate_image_info *info;

	HASH_FIND(hh, aggregate->infos, key, sizeof(key), info);
	if (info) {
		/* A thread may change its name from one window to the next. */
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
	/* Free only the tables here: the memory of their entries is in the arena. */
	HASH_CLEAR(hh, aggregate->threads);
	HASH_CLEAR(hh, aggregate->processes);
}
