/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/symtab.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/demangle.h"
#include "daemon/symtab_build.h"
#include "proto/base.h"

#define OUTWARD_MAX 64 /* functions around one address; only a hostile file nests deeper */

/* One array a field, sorted by start and, of equal starts, the longest first. */
struct symtab {
	struct symtab_arrays arrays;
	pthread_mutex_t lock; /* of the readable names */
	char **readable;      /* one a function, NULL until asked for; itself NULL until then */
	size_t readable_bytes;
};

int symtab_load(const struct elf_source *source, struct symtab **out)
{
	_cleanup_(symtab_freep) struct symtab *symtab = calloc(1, sizeof(*symtab));
	int r;

	if (!symtab)
		return -ENOMEM;
	pthread_mutex_init(&symtab->lock, NULL);
	r = symtab_build(source, &symtab->arrays);
	if (r < 0)
		return r;
	*out = TAKE(symtab);
	return 0;
}

/* The innermost function that holds the address; n where none does. */
static size_t function_find(const struct symtab_arrays *a, uint64_t address)
{
	size_t low = 0, high = a->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (a->starts[middle] <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return a->n;
	low--;
	for (int i = 0; i < OUTWARD_MAX; i++) {
		if (address - a->starts[low] < a->sizes[low])
			return low;
		if (a->outer[low] == SYMTAB_NO_OUTER)
			break;
		low = a->outer[low];
	}
	return a->n;
}

/* Demangled once and remembered; the mangled name where memory is short. */
static const char *readable_name(struct symtab *symtab, size_t i, const char *name)
{
	char buffer[DEMANGLE_OUTPUT_MAX];
	const char *readable;

	pthread_mutex_lock(&symtab->lock);
	if (!symtab->readable) {
		symtab->readable = calloc(symtab->arrays.n, sizeof(char *));
		if (symtab->readable)
			symtab->readable_bytes += symtab->arrays.n * sizeof(char *);
	}
	if (symtab->readable && !symtab->readable[i]) {
		readable = demangle(name, buffer, sizeof(buffer));
		symtab->readable[i] = strdup(readable);
		if (symtab->readable[i])
			symtab->readable_bytes += strlen(readable) + 1;
	}
	if (symtab->readable && symtab->readable[i])
		name = symtab->readable[i];
	pthread_mutex_unlock(&symtab->lock);
	return name;
}

bool symtab_lookup(struct symtab *symtab, uint64_t address, const char **name_out,
		   uint64_t *start_out)
{
	const struct symtab_arrays *a = &symtab->arrays;
	size_t i = function_find(a, address);
	const char *name;

	if (i == a->n)
		return false;
	name = a->text + a->names[i];
	*name_out = demangle_is_candidate(name) ? readable_name(symtab, i, name) : name;
	*start_out = a->starts[i];
	return true;
}

bool symtab_equal(const struct symtab *x, const struct symtab *y)
{
	const struct symtab_arrays *a = &x->arrays, *b = &y->arrays;

	return a->n == b->n && a->text_size == b->text_size &&
	       (!a->n || (!memcmp(a->starts, b->starts, a->n * sizeof(*a->starts)) &&
			  !memcmp(a->sizes, b->sizes, a->n * sizeof(*a->sizes)) &&
			  !memcmp(a->names, b->names, a->n * sizeof(*a->names)) &&
			  !memcmp(a->text, b->text, a->text_size)));
}

size_t symtab_functions(const struct symtab *symtab)
{
	return symtab->arrays.n;
}

size_t symtab_bytes(struct symtab *symtab)
{
	const struct symtab_arrays *a = &symtab->arrays;
	size_t n = sizeof(*symtab) + a->text_size;

	n += a->n *
	     (sizeof(*a->starts) + sizeof(*a->sizes) + sizeof(*a->names) + sizeof(*a->outer));
	pthread_mutex_lock(&symtab->lock);
	n += symtab->readable_bytes;
	pthread_mutex_unlock(&symtab->lock);
	return n;
}

struct symtab *symtab_free(struct symtab *symtab)
{
	if (!symtab)
		return NULL;
	for (size_t i = 0; symtab->readable && i < symtab->arrays.n; i++)
		free(symtab->readable[i]);
	free(symtab->readable);
	symtab_arrays_fini(&symtab->arrays);
	pthread_mutex_destroy(&symtab->lock);
	free(symtab);
	return NULL;
}

void symtab_freep(struct symtab **symtab)
{
	symtab_free(*symtab);
}
