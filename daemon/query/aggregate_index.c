/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/aggregate_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct seen *seen_add(struct merge *merge, struct seen **set, uint64_t a, uint64_t b)
{
	uint64_t key[2] = { a, b };
	struct seen *seen;

	HASH_FIND(hh, *set, key, sizeof(key), seen);
	if (seen)
		return seen;
	seen = arena_alloc(merge->arena, sizeof(*seen));
	if (!seen) {
		merge->error = -ENOMEM;
		return NULL;
	}
	memcpy(seen->key, key, sizeof(key));
	HASH_ADD(hh, *set, key, sizeof(key), seen);
	if (!HASH_HAS(seen)) {
		merge->error = -ENOMEM;
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

struct span_entry *span_get(struct merge *merge, uint64_t uid, int64_t start_ns, bool add)
{
	uint64_t key[2] = { uid, (uint64_t)start_ns };
	struct span_entry *entry;

	HASH_FIND(hh, merge->spans, key, sizeof(key), entry);
	if (entry || !add)
		return entry;
	entry = calloc(1, sizeof(*entry));
	if (!entry) {
		merge->error = -ENOMEM;
		return NULL;
	}
	memcpy(entry->key, key, sizeof(key));
	HASH_ADD(hh, merge->spans, key, sizeof(key), entry);
	if (!HASH_HAS(entry)) {
		free(entry);
		merge->error = -ENOMEM;
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

static void span_free(struct merge *merge, struct span_entry *entry)
{
	HASH_DEL(merge->spans, entry);
	stack_unref(entry->span.kernel);
	stack_unref(entry->span.user);
	stack_unref(entry->user);
	free(entry);
}

void spans_forget(struct merge *merge, const struct window *window)
{
	struct span_entry *entry, *next;

	HASH_ITER (hh, merge->spans, entry, next)
		if ((int64_t)entry->key[1] >= window->start_ns)
			span_free(merge, entry);
}

void spans_index(struct merge *merge, const struct window *window)
{
	struct span_entry *entry;
	size_t i;

	for (i = 0; i < window->n_spans; i++) {
		entry = span_get(merge, window->images[window->spans[i].image].uid,
				 window->spans[i].start_ns, true);
		if (entry)
			span_keep(entry, &window->spans[i]);
	}
}

void opens_index(struct merge *merge, const struct window *last)
{
	struct span_entry *entry;
	size_t i;

	for (i = 0; i < last->n_opens; i++) {
		entry = span_get(merge, last->images[last->opens[i].image].uid,
				 last->opens[i].start_ns, true);
		if (!entry)
			continue;
		entry->is_open_at_end = true;
		entry->user = stack_ref(last->opens[i].user);
		entry->is_unseen = last->opens[i].state & STATE_UNSEEN;
	}
}

static void info_look(struct merge *merge, struct image_info *info,
		      const struct window_image *image)
{
	memcpy(info->comm, image->comm, sizeof(info->comm));
	info->is_wanted = filter_has_image(merge->filter, image, &info->process);
	if (!info->is_wanted)
		return;
	info->thread = seen_add(merge, &merge->threads, (uint64_t)image->tid, image->start_boot_ns);
	seen_add(merge, &merge->processes, (uint64_t)info->process.id.pid,
		 info->process.id.start_boot_ns);
}

struct image_info *info_get(struct merge *merge, const struct window_image *image)
{
	uint64_t key[2] = { image->uid, (uintptr_t)image->process };
	struct image_info *info;

	HASH_FIND(hh, merge->infos, key, sizeof(key), info);
	if (info) {
		/* A thread may have another name in each window. */
		if (memcmp(info->comm, image->comm, sizeof(info->comm)) != 0)
			info_look(merge, info, image);
		return info;
	}
	info = arena_alloc(merge->arena, sizeof(*info));
	if (!info)
		return NULL;
	memcpy(info->key, key, sizeof(key));
	HASH_ADD(hh, merge->infos, key, sizeof(key), info);
	if (!HASH_HAS(info))
		return NULL;
	info->image = *image;
	process_ref(image->process);
	process_info(image->process, &info->process);
	info_look(merge, info, image);
	return info;
}

void index_free(struct merge *merge)
{
	struct span_entry *entry, *next_entry;
	struct image_info *info, *next_info;

	HASH_ITER (hh, merge->spans, entry, next_entry)
		span_free(merge, entry);
	HASH_ITER (hh, merge->infos, info, next_info) {
		HASH_DEL(merge->infos, info);
		process_unref(info->image.process);
	}
	seen_free(merge->threads);
	seen_free(merge->processes);
}
