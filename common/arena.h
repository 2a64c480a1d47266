/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_ARENA_H
#define STACKD_COMMON_ARENA_H

/*
 * Memory that is freed all at once: in goes a size, out comes zeroed memory that lives
 * as long as the arena. The one who made the arena owns it; one thread at a time.
 */

#include <stddef.h>

struct arena;

/* Returns an empty arena, owned by the caller; NULL when out of memory. */
struct arena *arena_new(void);

/* Frees the arena and all it gave out. NULL is allowed. */
struct arena *arena_free(struct arena *arena);
void arena_freep(struct arena **arena);

/* n bytes, zeroed, aligned for any type; NULL when out of memory. */
void *arena_alloc(struct arena *arena, size_t n);

/* n members of size bytes; NULL when out of memory or when the product overflows. */
void *arena_array(struct arena *arena, size_t n, size_t size);

char *arena_strdup(struct arena *arena, const char *s);
char *arena_strndup(struct arena *arena, const char *s, size_t n);
char *arena_printf(struct arena *arena, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
