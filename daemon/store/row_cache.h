/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_ROW_CACHE_H
#define STACKD_DAEMON_STORE_ROW_CACHE_H

/*
 * The numbers of some rows of a database table, by the hash of their content, so that the writer
 * need not look each row up in the database. One thread at a time.
 */

#include <stdint.h>

#include "daemon/store/id_set.h"

/*
 * The maximum number of rows in a cache. A full cache is emptied; its rows are in the database.
 */
enum { ROW_CACHE_MAX = 16384 };

struct row_key {
	uint64_t hash;
	uint64_t more; /* tells rows with the same hash apart */
};

struct row_cache_slot {
	struct row_key key;
	int64_t number; /* 0: the slot is free. Numbers of rows begin at 1 */
};

/* An empty cache is all zeros. */
struct row_cache {
	struct row_cache_slot *slots;
	uint32_t n, allocated; /* number of slots in use, and of all slots */
};

/* Returns the number of the row, 0 if it is not in the cache. */
int64_t row_cache_find(const struct row_cache *cache, const struct row_key *key);

/*
 * Adds a row, which must not be in the cache. Does nothing when out of memory: the row is in the
 * database, too.
 */
void row_cache_add(struct row_cache *cache, const struct row_key *key, int64_t number);

/* Removes all rows whose numbers are not in the set. */
void row_cache_keep(struct row_cache *cache, const struct id_set *numbers);

/* Removes all rows and frees the memory. */
void row_cache_clear(struct row_cache *cache);

#endif
