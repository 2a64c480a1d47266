/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/window/frame_cache.h"

#include <stdlib.h>

#include "common/base.h"

/*
 * After this time a frame is looked up again. This marks the file's symbols as used, so that they
 * stay loaded for places that are not in the cache.
 */
#define KEEP_NS (30 * NS_PER_S)

enum { ENTRIES = 8192 }; /* a power of 2; together with the frames, at most about 2 MiB */

struct cached_frame {
	struct code_place place;
	struct frame *frame; /* NULL: the entry is free */
	int64_t since_ns;
	bool is_signal;
};

/* Each place has one entry that it may be in. */
struct frame_cache {
	struct stack_table *stacks;
	struct cached_frame entries[ENTRIES];
};

struct frame_cache *frame_cache_new(struct stack_table *stacks)
{
	struct frame_cache *cache = calloc(1, sizeof(*cache));

	if (cache)
		cache->stacks = stacks;
	return cache;
}

struct frame_cache *frame_cache_free(struct frame_cache *cache)
{
	size_t i;

	for (i = 0; cache && i < ENTRIES; i++)
		if (cache->entries[i].frame)
			stack_table_drop_frame(cache->stacks, cache->entries[i].frame);
	free(cache);
	return NULL;
}

static size_t entry_of(const struct code_place *place)
{
	uint64_t hash = (place->file ^ place->offset) * UINT64_C(0x9e3779b97f4a7c15);

	return hash >> 32 & (ENTRIES - 1);
}

static bool is_same(const struct code_place *a, const struct code_place *b)
{
	return a->file == b->file && a->offset == b->offset && a->is_call == b->is_call;
}

struct frame *frame_cache_get(const struct frame_cache *cache, const struct code_place *place,
			      int64_t now_ns, bool *is_signal_out)
{
	const struct cached_frame *entry = &cache->entries[entry_of(place)];

	if (!entry->frame || !is_same(&entry->place, place) || now_ns - entry->since_ns > KEEP_NS)
		return NULL;
	*is_signal_out = entry->is_signal;
	return entry->frame;
}

void frame_cache_put(struct frame_cache *cache, const struct code_place *place, struct frame *frame,
		     int64_t now_ns, bool is_signal)
{
	struct cached_frame *entry = &cache->entries[entry_of(place)];
	struct frame *old = entry->frame;

	stack_table_ref_frame(cache->stacks, frame);
	*entry = (struct cached_frame){ *place, frame, now_ns, is_signal };
	if (old)
		stack_table_drop_frame(cache->stacks, old);
}
