/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BASE_HASH_H
#define STACKD_DAEMON_BASE_HASH_H

/*
 * 64-bit hashes that are stored on disk and compared after restarts. The function must never
 * change; otherwise stored stacks would no longer match. Header only, no state.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH64_SEED UINT64_C(0xcbf29ce484222325)

/*
 * Returns the FNV-1a hash of n bytes, with its bits mixed at the end. To continue a hash, pass its
 * result as `seed`; to begin one, pass HASH64_SEED. Never returns 0.
 */
static inline uint64_t hash64(uint64_t seed, const void *data, size_t n)
{
	const unsigned char *bytes = data;
	uint64_t h = seed;

	for (size_t i = 0; i < n; i++)
		h = (h ^ bytes[i]) * UINT64_C(0x100000001b3);
	h = (h ^ (h >> 32)) * UINT64_C(0xd6e8feb86659fd93);
	h ^= h >> 32;
	return h ? h : 1;
}

static inline uint64_t hash64_string(uint64_t seed, const char *s)
{
	return hash64(seed, s, strlen(s) + 1);
}

#endif
