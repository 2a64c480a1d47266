/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BASE_KEY_INDEX_H
#define STACKD_DAEMON_BASE_KEY_INDEX_H

/*
 * A hash table that finds structs by a key at their beginning. The hashes are stored in the table
 * itself, so that a search reads a struct only if its key is most likely the right one: if the
 * structs are large, each of them that is read is a cache miss. Does not own the structs. One
 * thread.
 *
 * Keys of 8 bytes have different hashes if they are different. If key_size is 0, the hash alone
 * therefore identifies an item, and key_index_find() ignores the key.
 */

#include <stddef.h>
#include <stdint.h>

struct key_index_slot {
	uint64_t hash;
	void *item; /* NULL: the slot is free */
};

struct key_index {
	size_t key_size; /* size of the key in bytes, a multiple of 8, or 0; set by the caller */
	struct key_index_slot *slots;
	size_t capacity; /* number of slots, a power of two */
	size_t n;	 /* number of items */
};

/* Returns the hash of a key of `size` bytes; `size` is a multiple of 8. */
uint64_t key_index_hash(const void *key, size_t size);

/* Returns the item with this key, of which `hash` is the hash; NULL if there is none. */
void *key_index_find(const struct key_index *index, const void *key, uint64_t hash);

/*
 * key_index_fetch() makes the CPU load the slot of a hash into its cache, for a search that follows
 * soon. key_index_fetch_item() does so with the beginning of the item that is most likely in the
 * slot; the slot should be in the cache by then. Loads from memory then go on during other work.
 */
void key_index_fetch(const struct key_index *index, uint64_t hash);
void key_index_fetch_item(const struct key_index *index, uint64_t hash);

/* Makes room for n items, so that they can be added without a failure. Returns 0 or -ENOMEM. */
int key_index_reserve(struct key_index *index, size_t n);

/* Adds an item. The index must not have an item with this key. Returns 0 or -ENOMEM. */
int key_index_add(struct key_index *index, void *item, uint64_t hash);

/*
 * Returns an item and advances *at to the next one; NULL after the last item. The caller sets *at
 * to 0 for the first call. The order is not defined.
 */
void *key_index_next(const struct key_index *index, size_t *at);

/* Removes all items, but keeps the memory for others. */
void key_index_clear(struct key_index *index);

void key_index_fini(struct key_index *index);

#endif
