/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_HASH_TABLE_H
#define STACKD_COMMON_HASH_TABLE_H

/*
 * Sets up uthash for keys that consist of whole 64-bit words. If HASH_ADD runs out of memory, the
 * program continues; HASH_HAS() tests whether the entry was added. Header only, no state.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline unsigned int hash_words(const void *key, size_t size)
{
	const char *at = key;
	uint64_t h = size, word;

	for (; size >= sizeof(word); size -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 32;
	}
	/*
	 * Mix the bits a second time. With only one round, the hashes of consecutive numbers, such
	 * as thread ids, collide: to keep all chains short, uthash enlarged a table of 60,000
	 * entries to 16 million buckets.
	 */
	h *= UINT64_C(0xd6e8feb86659fd93);
	h ^= h >> 32;
	return (unsigned int)h;
}

#define HASH_FUNCTION(key, size, hash) ((hash) = hash_words((key), (size)))
#define HASH_NONFATAL_OOM	       1

#include <uthash.h>

/*
 * A chain of this length makes uthash double the number of buckets of its table. Most steps along a
 * chain are cache misses: with 5, merging windows took a tenth less time than with 10, the default
 * of uthash. With 2, tables would grow without limit.
 */
#undef HASH_BKT_CAPACITY_THRESH
#define HASH_BKT_CAPACITY_THRESH 5U

/* True if HASH_ADD has added this entry; false if it ran out of memory. */
#define HASH_HAS(entry) ((entry)->hh.tbl != NULL)

#endif
