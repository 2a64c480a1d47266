/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/aggregate_set.h"

#include <errno.h>
#include <stdlib.h>

enum { SLOTS_MIN = 16, MARK = 1, USED = 2, SAMPLE_BIT = 40 };

/* Returns a hash of `id` and `start`. All bits of the hash are well mixed. */
static uint64_t mix(uint64_t id, uint64_t start)
{
	uint64_t hash = id * UINT64_C(0x9e3779b97f4a7c15) ^ start;

	hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	hash = (hash ^ hash >> 27) * UINT64_C(0x94d049bb133111eb);
	return hash ^ hash >> 31;
}

/* True if the set keeps members with this hash: one in 2^shift members is kept. */
static bool is_kept(const struct aggregate_set *set, uint64_t hash)
{
	return !(hash >> SAMPLE_BIT & ((UINT64_C(1) << set->shift) - 1));
}

/*
 * Returns the slot that has the hash or, if there is none, the free slot in which the hash would be
 * stored.
 */
static uint64_t *slot_of(const struct aggregate_set *set, uint64_t hash)
{
	size_t i = (size_t)(hash >> 2) & (set->capacity - 1);

	while (set->slots[i] && (set->slots[i] ^ hash) > MARK)
		i = (i + 1) & (set->capacity - 1);
	return &set->slots[i];
}

/*
 * Moves the members into a table with this capacity, but drops those that are no longer kept after
 * an increase of `shift`.
 */
static int resize(struct aggregate_set *set, size_t capacity)
{
	struct aggregate_set next = { .capacity = capacity, .shift = set->shift };
	size_t i;

	next.slots = calloc(capacity, sizeof(*next.slots));
	if (!next.slots)
		return -ENOMEM;
	for (i = 0; i < set->capacity; i++) {
		if (!set->slots[i] || !is_kept(set, set->slots[i]))
			continue;
		*slot_of(&next, set->slots[i]) = set->slots[i];
		next.n++;
	}
	free(set->slots);
	*set = next;
	return 0;
}

/* Makes room for one more member. */
static int reserve(struct aggregate_set *set)
{
	if (set->n >= AGGREGATE_SET_MAX) {
		set->shift++;
		return resize(set, set->capacity);
	}
	if (2 * (set->n + 1) <= set->capacity)
		return 0;
	return resize(set, set->capacity ? 2 * set->capacity : SLOTS_MIN);
}

int aggregate_set_add(struct aggregate_set *set, uint64_t id, uint64_t start, bool is_marked)
{
	uint64_t hash = (mix(id, start) & ~(uint64_t)MARK) | USED, *slot;
	int r = reserve(set);

	if (r)
		return r;
	if (!is_kept(set, hash))
		return 0;
	slot = slot_of(set, hash);
	set->n += !*slot;
	*slot = hash | (*slot & MARK) | (is_marked ? MARK : 0);
	return 0;
}

uint64_t aggregate_set_count(const struct aggregate_set *set)
{
	return (uint64_t)set->n << set->shift;
}

uint64_t aggregate_set_marked(const struct aggregate_set *set)
{
	uint64_t n = 0;
	size_t i;

	for (i = 0; i < set->capacity; i++)
		n += set->slots[i] & MARK;
	return n << set->shift;
}

void aggregate_set_fini(struct aggregate_set *set)
{
	free(set->slots);
	*set = (struct aggregate_set){};
}
