/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/base/key_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS_MIN = 64, CACHE_LINE = 64 };

uint64_t key_index_hash(const void *key, size_t size)
{
	const char *at = key;
	uint64_t hash = size, word;

	for (; size; size -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 32;
	}
	hash *= UINT64_C(0xd6e8feb86659fd93);
	return hash ^ hash >> 32;
}

void *key_index_find(const struct key_index *index, const void *key, uint64_t hash)
{
	size_t i = (size_t)hash & (index->capacity - 1);

	if (!index->capacity)
		return NULL;
	for (; index->slots[i].item; i = (i + 1) & (index->capacity - 1))
		if (index->slots[i].hash == hash &&
		    (!index->key_size || memcmp(index->slots[i].item, key, index->key_size) == 0))
			return index->slots[i].item;
	return NULL;
}

void key_index_fetch(const struct key_index *index, uint64_t hash)
{
	if (index->capacity)
		__builtin_prefetch(&index->slots[hash & (index->capacity - 1)]);
}

void key_index_fetch_item(const struct key_index *index, uint64_t hash)
{
	const struct key_index_slot *slot;

	if (!index->capacity)
		return;
	slot = &index->slots[hash & (index->capacity - 1)];
	if (slot->hash != hash || !slot->item)
		return;
	__builtin_prefetch(slot->item, 1);
	__builtin_prefetch((const char *)slot->item + CACHE_LINE, 1);
	__builtin_prefetch((const char *)slot->item + 2 * CACHE_LINE, 1);
	__builtin_prefetch((const char *)slot->item + 3 * CACHE_LINE, 1);
}

static void slot_fill(struct key_index *index, void *item, uint64_t hash)
{
	size_t i = (size_t)hash & (index->capacity - 1);

	while (index->slots[i].item)
		i = (i + 1) & (index->capacity - 1);
	index->slots[i] = (struct key_index_slot){ hash, item };
}

int key_index_reserve(struct key_index *index, size_t n)
{
	struct key_index next = { .capacity = index->capacity ? index->capacity : SLOTS_MIN };
	size_t i;

	/* At least a quarter of the slots is free, so that a search ends after few steps. */
	while (4 * n > 3 * next.capacity)
		next.capacity *= 2;
	if (next.capacity == index->capacity)
		return 0;
	next.slots = calloc(next.capacity, sizeof(*next.slots));
	if (!next.slots)
		return -ENOMEM;
	for (i = 0; i < index->capacity; i++)
		if (index->slots[i].item)
			slot_fill(&next, index->slots[i].item, index->slots[i].hash);
	free(index->slots);
	index->slots = next.slots;
	index->capacity = next.capacity;
	return 0;
}

int key_index_add(struct key_index *index, void *item, uint64_t hash)
{
	int r = key_index_reserve(index, index->n + 1);

	if (r)
		return r;
	slot_fill(index, item, hash);
	index->n++;
	return 0;
}

void *key_index_next(const struct key_index *index, size_t *at)
{
	while (*at < index->capacity)
		if (index->slots[(*at)++].item)
			return index->slots[*at - 1].item;
	return NULL;
}

void key_index_clear(struct key_index *index)
{
	if (index->slots)
		memset(index->slots, 0, index->capacity * sizeof(*index->slots));
	index->n = 0;
}

void key_index_fini(struct key_index *index)
{
	free(index->slots);
	*index = (struct key_index){ .key_size = index->key_size };
}
