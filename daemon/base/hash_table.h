/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BASE_HASH_TABLE_H
#define STACKD_DAEMON_BASE_HASH_TABLE_H

/*
 * uthash for keys that consist of whole 64-bit words. Running out of memory does not end the
 * program: HASH_HAS() says whether an entry was added. Header only, no state.
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
	 * Mix once more: numbers given one after another, like thread ids, are spread too evenly by
	 * one round, in steps that coincide. A table of 60,000 entries grew to 16 million buckets
	 * before no chain was too long.
	 */
	h *= UINT64_C(0xd6e8feb86659fd93);
	h ^= h >> 32;
	return (unsigned int)h;
}

#define HASH_FUNCTION(key, size, hash) ((hash) = hash_words((key), (size)))
#define HASH_NONFATAL_OOM	       1

#include <uthash.h>

/*
 * The longest chain before the table gets more buckets. Each step along a chain is mostly a cache
 * miss: merging windows took a tenth less time than with uthash's 10. With 2, tables grow out of
 * bounds.
 */
#undef HASH_BKT_CAPACITY_THRESH
#define HASH_BKT_CAPACITY_THRESH 5U

/* True if the HASH_ADD before this found memory; if not, the entry is in no table. */
#define HASH_HAS(entry) ((entry)->hh.tbl != NULL)

#endif
