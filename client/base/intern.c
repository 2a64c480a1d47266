/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/base/intern.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "client/base/term.h"
#include "common/arena.h"
#include "common/array.h"
#include "common/base.h"
#include "common/hash_table.h"

struct entry {
	UT_hash_handle hh;
	size_t number;
	size_t size;
	char key[];
};

struct intern {
	uint64_t seed;
	struct arena *arena; /* has the entries: they stay apart from memory that comes and goes */
	struct entry *table;
	struct entry **entries; /* by number */
	size_t n, capacity;
	size_t bytes;
};

/* The seed differs from run to run, so that nobody can choose names that collide. */
static uint64_t random_seed(void)
{
	uint64_t seed = 0;

	return getrandom(&seed, sizeof seed, GRND_NONBLOCK) == sizeof seed
		       ? seed
		       : (uint64_t)(uintptr_t)__builtin_frame_address(0);
}

static unsigned int hash_bytes(uint64_t seed, const char *key, size_t size)
{
	uint64_t h = seed ^ size, word;

	for (; size > 0; key += sizeof word) {
		size_t n = size < sizeof word ? size : sizeof word;

		word = 0;
		memcpy(&word, key, n);
		size -= n;
		h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 32;
	}
	/* Mix the bits a second time, as hash_words() does. */
	h *= UINT64_C(0xd6e8feb86659fd93);
	return (unsigned int)(h ^ h >> 32);
}

struct intern *intern_new(void)
{
	struct intern *set = must(calloc(1, sizeof(*set)));

	set->seed = random_seed();
	set->arena = must(arena_new());
	return set;
}

void intern_free(struct intern *set)
{
	if (!set)
		return;
	HASH_CLEAR(hh, set->table);
	arena_free(set->arena);
	free(set->entries);
	free(set);
}

/* Adds a key that the set does not have. */
static struct entry *entry_add(struct intern *set, unsigned int hash, const void *key, size_t size)
{
	struct entry *entry = must(arena_alloc(set->arena, sizeof(*entry) + size + 1));

	entry->number = set->n;
	entry->size = size;
	memcpy(entry->key, key, size);
	entry->key[size] = '\0';
	if (array_reserve(set->entries, set->capacity, set->n + 1) < 0)
		must(NULL);
	set->entries[set->n++] = entry;
	set->bytes += size;
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, set->table, entry->key, size, hash, entry);
	must(HASH_HAS(entry) ? entry : NULL);
	return entry;
}

size_t intern_add(struct intern *set, const void *key, size_t size, bool *is_new_out)
{
	unsigned int hash = hash_bytes(set->seed, key, size);
	struct entry *entry;

	HASH_FIND_BYHASHVALUE(hh, set->table, key, size, hash, entry);
	if (is_new_out)
		*is_new_out = !entry;
	if (!entry)
		entry = entry_add(set, hash, key, size);
	return entry->number;
}

bool intern_find(const struct intern *set, const void *key, size_t size, size_t *number_out)
{
	unsigned int hash = hash_bytes(set->seed, key, size);
	struct entry *entry;

	HASH_FIND_BYHASHVALUE(hh, set->table, key, size, hash, entry);
	if (entry)
		*number_out = entry->number;
	return entry != NULL;
}

size_t intern_count(const struct intern *set)
{
	return set->n;
}

const char *intern_key(const struct intern *set, size_t number, size_t *size_out)
{
	if (size_out)
		*size_out = set->entries[number]->size;
	return set->entries[number]->key;
}

size_t intern_bytes(const struct intern *set)
{
	return set->bytes;
}
