/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_ARENA_H
#define STACKD_COMMON_ARENA_H

/*
 * An allocator that frees all of its memory at once, when the arena is freed. All memory is zeroed.
 * An arena is owned by the caller of arena_new() and used by one thread at a time.
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

/*
 * Allocates an array of n members of `size` bytes each. NULL when out of memory, or when n * size
 * overflows.
 */
void *arena_array(struct arena *arena, size_t n, size_t size);

/*
 * arena_strdup() returns a copy of s, arena_strndup() a copy of at most the first n bytes of s,
 * arena_printf() a formatted text. The new string is in the arena; NULL when out of memory.
 */
char *arena_strdup(struct arena *arena, const char *s);
char *arena_strndup(struct arena *arena, const char *s, size_t n);
char *arena_printf(struct arena *arena, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
