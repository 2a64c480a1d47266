/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_ARENA_H
#define STACKD_COMMON_ARENA_H

/*
 * An allocator whose memory is freed all at once, with the arena. All memory is zeroed. Owned by
 * the caller of arena_new(); one thread at a time.
 */

#include <stddef.h>

struct arena;

/* Returns an empty arena, owned by the caller; NULL when out of memory. */
struct arena *arena_new(void);

/* Frees the arena and all memory that was allocated from it. NULL is allowed. Returns NULL. */
struct arena *arena_free(struct arena *arena);
void arena_freep(struct arena **arena);

/* Allocates n bytes, aligned for any type. NULL when out of memory. */
void *arena_alloc(struct arena *arena, size_t n);

/* Allocates n members of size bytes. NULL when out of memory or where the product overflows. */
void *arena_array(struct arena *arena, size_t n, size_t size);

/* Copy a string, copy at most n bytes of one, format one. NULL when out of memory. */
char *arena_strdup(struct arena *arena, const char *s);
char *arena_strndup(struct arena *arena, const char *s, size_t n);
char *arena_printf(struct arena *arena, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
