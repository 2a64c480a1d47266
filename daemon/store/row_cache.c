/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/row_cache.h"

#include <stdlib.h>

#include "common/base.h"

/*
 * The number of slots doubles from SLOTS_LEAST to SLOTS_MOST. At most 4/5 of the slots are in use,
 * so that a search looks at few of them.
 */
enum { SLOTS_LEAST = 320, SLOTS_MOST = ROW_CACHE_MAX / 4 * 5 };

/* Returns the slot of the row. If the cache does not have it, returns the free slot for it. */
static struct row_cache_slot *slot_of(const struct row_cache *cache, const struct row_key *key)
{
	uint64_t mixed = (key->hash ^ key->more) * UINT64_C(0x9e3779b97f4a7c15);
	size_t i = (mixed >> 32) * cache->allocated >> 32;

	for (;; i = i + 1 == cache->allocated ? 0 : i + 1) {
		struct row_cache_slot *slot = &cache->slots[i];

		if (!slot->number || (slot->key.hash == key->hash && slot->key.more == key->more))
			return slot;
	}
}

int64_t row_cache_find(const struct row_cache *cache, const struct row_key *key)
{
	return cache->n ? slot_of(cache, key)->number : 0;
}

/*
 * Moves the rows, or those in the set `keep` if it is not NULL, to new slots. Returns false and
 * changes nothing when out of memory.
 */
static bool slots_move(struct row_cache *cache, uint32_t allocated, const struct id_set *keep)
{
	struct row_cache moved = {
		.slots = calloc(allocated, sizeof(*moved.slots)),
		.allocated = allocated,
	};

	if (!moved.slots)
		return false;
	for (uint32_t i = 0; i < cache->allocated; i++) {
		const struct row_cache_slot *slot = &cache->slots[i];

		if (!slot->number || (keep && !id_set_has(keep, slot->number)))
			continue;
		*slot_of(&moved, &slot->key) = *slot;
		moved.n++;
	}
	free(cache->slots);
	*cache = moved;
	return true;
}

void row_cache_add(struct row_cache *cache, const struct row_key *key, int64_t number)
{
	uint32_t more = cache->allocated ? cache->allocated * 2 : SLOTS_LEAST;

	if (cache->n >= ROW_CACHE_MAX)
		row_cache_clear(cache);
	if (cache->n >= cache->allocated / 5 * 4 &&
	    !slots_move(cache, more < SLOTS_MOST ? more : SLOTS_MOST, NULL))
		return;
	*slot_of(cache, key) = (struct row_cache_slot){ *key, number };
	cache->n++;
}

void row_cache_keep(struct row_cache *cache, const struct id_set *numbers)
{
	if (cache->n && !slots_move(cache, cache->allocated, numbers))
		row_cache_clear(cache);
}

void row_cache_clear(struct row_cache *cache)
{
	free(cache->slots);
	*cache = (struct row_cache){};
}
