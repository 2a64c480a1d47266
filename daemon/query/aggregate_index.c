/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/aggregate_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct seen *seen_add(struct aggregate *aggregate, struct seen **set, uint64_t a, uint64_t b)
{
	uint64_t key[2] = { a, b };
	struct seen *seen;

	HASH_FIND(hh, *set, key, sizeof(key), seen);
	if (seen)
		return seen;
	seen = arena_alloc(aggregate->arena, sizeof(*seen));
	if (!seen) {
		aggregate->error = -ENOMEM;
		return NULL;
	}
	memcpy(seen->key, key, sizeof(key));
	HASH_ADD(hh, *set, key, sizeof(key), seen);
	if (!HASH_HAS(seen)) {
		aggregate->error = -ENOMEM;
		return NULL;
	}
	return seen;
}

static void seen_free(struct seen *set)
{
	struct seen *seen, *next;

	HASH_ITER (hh, set, seen, next)
		HASH_DEL(set, seen);
}

struct span_entry *span_get(struct aggregate *aggregate, uint64_t uid, int64_t start_ns, bool add)
{
	uint64_t key[2] = { uid, (uint64_t)start_ns };
	struct span_entry *entry;

	HASH_FIND(hh, aggregate->spans, key, sizeof(key), entry);
	if (entry || !add)
		return entry;
	entry = calloc(1, sizeof(*entry));
	if (!entry) {
		aggregate->error = -ENOMEM;
		return NULL;
	}
	memcpy(entry->key, key, sizeof(key));
	HASH_ADD(hh, aggregate->spans, key, sizeof(key), entry);
	if (!HASH_HAS(entry)) {
		free(entry);
		aggregate->error = -ENOMEM;
		return NULL;
	}
	return entry;
}

/* A copy: the window may go before the wait's earlier parts are met. */
static void span_keep(struct span_entry *entry, const struct window_span *span)
{
	if (entry->has_span)
		return;
	entry->span = *span;
	entry->has_span = true;
	stack_ref(span->kernel);
	stack_ref(span->user);
}

static void span_free(struct aggregate *aggregate, struct span_entry *entry)
{
	HASH_DEL(aggregate->spans, entry);
	stack_unref(entry->span.kernel);
	stack_unref(entry->span.user);
	stack_unref(entry->user);
	free(entry);
}

void spans_forget(struct aggregate *aggregate, const struct window *window)
{
	struct span_entry *entry, *next;

	HASH_ITER (hh, aggregate->spans, entry, next)
		if ((int64_t)entry->key[1] >= window->start_ns)
			span_free(aggregate, entry);
}

void spans_index(struct aggregate *aggregate, const struct window *window)
{
	struct span_entry *entry;
	size_t i;

	for (i = 0; i < window->n_spans; i++) {
		entry = span_get(aggregate, window->images[window->spans[i].image].uid,
				 window->spans[i].start_ns, true);
		if (entry)
			span_keep(entry, &window->spans[i]);
	}
}

void opens_index(struct aggregate *aggregate, const struct window *last)
{
	struct span_entry *entry;
	size_t i;

	for (i = 0; i < last->n_opens; i++) {
		entry = span_get(aggregate, last->images[last->opens[i].image].uid,
				 last->opens[i].start_ns, true);
		if (!entry)
			continue;
		entry->is_open_at_end = true;
		entry->user = stack_ref(last->opens[i].user);
		entry->is_unseen = last->opens[i].state & STATE_UNSEEN;
	}
}

static void info_look(struct aggregate *aggregate, struct image_info *info,
		      const struct window_image *image)
{
	memcpy(info->comm, image->comm, sizeof(info->comm));
	info->is_wanted = filter_has_image(aggregate->filter, image, &info->process);
	if (!info->is_wanted)
		return;
	info->thread = seen_add(aggregate, &aggregate->threads, (uint64_t)image->tid,
				image->start_boot_ns);
	seen_add(aggregate, &aggregate->processes, (uint64_t)info->process.id.pid,
		 info->process.id.start_boot_ns);
}

struct image_info *info_get(struct aggregate *aggregate, const struct window_image *image)
{
	uint64_t key[2] = { image->uid, (uintptr_t)image->process };
	struct image_info *info;

	HASH_FIND(hh, aggregate->infos, key, sizeof(key), info);
	if (info) {
		/* A thread may have another name in each window. */
		if (memcmp(info->comm, image->comm, sizeof(info->comm)) != 0)
			info_look(aggregate, info, image);
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
	info_look(aggregate, info, image);
	return info;
}

void index_free(struct aggregate *aggregate)
{
	struct span_entry *entry, *next_entry;
	struct image_info *info, *next_info;

	HASH_ITER (hh, aggregate->spans, entry, next_entry)
		span_free(aggregate, entry);
	HASH_ITER (hh, aggregate->infos, info, next_info) {
		HASH_DEL(aggregate->infos, info);
		process_unref(info->image.process);
	}
	seen_free(aggregate->threads);
	seen_free(aggregate->processes);
}
