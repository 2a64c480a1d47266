/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CHUNK = 4096, LARGEST_CHUNK = 1024 * 1024 };

struct chunk {
	struct chunk *next;
	size_t used;
	size_t size;
	alignas(max_align_t) char data[];
};

struct arena {
	struct chunk *chunks; /* list of chunks; new memory is taken from the first one */
	size_t next_size;     /* size in bytes that the next chunk will have */
};

struct arena *arena_new(void)
{
	struct arena *arena = calloc(1, sizeof(*arena));

	if (arena)
		arena->next_size = FIRST_CHUNK;
	return arena;
}

struct arena *arena_free(struct arena *arena)
{
	if (!arena)
		return NULL;
	while (arena->chunks) {
		struct chunk *chunk = arena->chunks;

		arena->chunks = chunk->next;
		free(chunk);
	}
	free(arena);
	return NULL;
}

void arena_freep(struct arena **arena)
{
	*arena = arena_free(*arena);
}

/*
 * Adds a chunk of at least n bytes. A chunk of more than arena->next_size bytes serves only this
 * request. It becomes the second in the list, so that later requests still use the rest of the
 * first.
 */
static struct chunk *chunk_add(struct arena *arena, size_t n)
{
	size_t size = n > arena->next_size ? n : arena->next_size;
	struct chunk *chunk = calloc(1, sizeof(*chunk) + size);

	if (!chunk)
		return NULL;
	chunk->size = size;
	if (n > arena->next_size && arena->chunks) {
		chunk->next = arena->chunks->next;
		arena->chunks->next = chunk;
		return chunk;
	}
	chunk->next = arena->chunks;
	arena->chunks = chunk;
	if (arena->next_size < LARGEST_CHUNK)
		arena->next_size *= 2;
	return chunk;
}

void *arena_alloc(struct arena *arena, size_t n)
{
	const size_t align = alignof(max_align_t);
	struct chunk *chunk = arena->chunks;
	void *p;

	if (n > SIZE_MAX / 2)
		return NULL;
	n = n ? (n + align - 1) / align * align : align;
	if (!chunk || chunk->size - chunk->used < n) {
		chunk = chunk_add(arena, n);
		if (!chunk)
			return NULL;
	}
	p = chunk->data + chunk->used;
	chunk->used += n;
	return p;
}

void *arena_array(struct arena *arena, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes))
		return NULL;
	return arena_alloc(arena, bytes);
}

char *arena_strndup(struct arena *arena, const char *s, size_t n)
{
	size_t len = strnlen(s, n);
	char *copy = arena_alloc(arena, len + 1);

	if (copy)
		memcpy(copy, s, len);
	return copy;
}

char *arena_strdup(struct arena *arena, const char *s)
{
	return arena_strndup(arena, s, strlen(s));
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
	char *s = NULL;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (n < 0)
		return NULL;
	s = arena_alloc(arena, (size_t)n + 1);
	if (!s)
		return NULL;
	va_start(args, format);
	vsnprintf(s, (size_t)n + 1, format, args);
	va_end(args);
	return s;
}
