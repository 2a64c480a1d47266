/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/symbol/symtab.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/symbol/demangle.h"
#include "daemon/symbol/symtab_build.h"
#include "daemon/symbol/symtab_names.h"

/*
 * maximum number of functions nested in each other that are tried for an address, from the
 * innermost one outwards; only hostile files nest functions deeper
 */
#define OUTWARD_MAX 64

/* The symbol table of a file, and a cache of the demangled names that were looked up. */
struct symtab {
	struct symtab_arrays arrays;
	pthread_mutex_t lock; /* protects `names` */
	struct symtab_names *names;
};

int symtab_load(const struct elf_source *source, const struct symtab_aids *aids,
		struct symtab **out)
{
	_cleanup_(symtab_freep) struct symtab *symtab = calloc(1, sizeof(*symtab));
	int r;

	if (!symtab)
		return -ENOMEM;
	pthread_mutex_init(&symtab->lock, NULL);
	symtab->names = symtab_names_new();
	if (!symtab->names)
		return -ENOMEM;
	r = symtab_build(source, aids, &symtab->arrays);
	if (r < 0)
		return r;
	*out = TAKE(symtab);
	return 0;
}

/*
 * Returns the index of the innermost function that contains the address. The address is relative to
 * a->base. Returns a->n if no function contains it.
 */
static size_t function_find(const struct symtab_arrays *a, uint32_t address)
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

/*
 * Returns the demangled name of the function with index i from the cache; adds the name to the
 * cache if it is not there. Returns the mangled name when out of memory.
 */
static const char *readable_name(struct symtab *symtab, size_t i, const char *name)
{
	char buffer[DEMANGLE_OUTPUT_MAX];
	const char *readable;

	pthread_mutex_lock(&symtab->lock);
	readable = symtab_names_find(symtab->names, (uint32_t)i);
	if (!readable) {
		readable = demangle(name, buffer, sizeof(buffer));
		readable = symtab_names_add(symtab->names, (uint32_t)i, readable);
	}
	pthread_mutex_unlock(&symtab->lock);
	return readable ? readable : name;
}

bool symtab_lookup(struct symtab *symtab, uint64_t address, const char **name_out,
		   uint64_t *start_out)
{
	const struct symtab_arrays *a = &symtab->arrays;
	uint64_t offset = address - a->base;
	const char *name;
	size_t i;

	i = offset <= UINT32_MAX ? function_find(a, (uint32_t)offset) : a->n;
	if (i == a->n)
		return false;
	name = a->names[i] == SYMTAB_NAMELESS ? NULL : a->text + a->names[i];
	if (name && demangle_is_candidate(name))
		name = readable_name(symtab, i, name);
	*name_out = name;
	*start_out = a->base + a->starts[i];
	return true;
}

bool symtab_is_signal(const struct symtab *symtab, uint64_t address)
{
	const struct symtab_arrays *a = &symtab->arrays;

	for (size_t i = 0; i < a->n_signals; i++) {
		if (address >= a->signals[i].start && address < a->signals[i].end)
			return true;
	}
	return false;
}

bool symtab_equal(const struct symtab *x, const struct symtab *y)
{
	const struct symtab_arrays *a = &x->arrays, *b = &y->arrays;

	return a->n == b->n && a->text_size == b->text_size && a->base == b->base &&
	       (!a->n || (!memcmp(a->starts, b->starts, a->n * sizeof(*a->starts)) &&
			  !memcmp(a->sizes, b->sizes, a->n * sizeof(*a->sizes)) &&
			  !memcmp(a->names, b->names, a->n * sizeof(*a->names)) &&
			  !memcmp(a->text, b->text, a->text_size)));
}

size_t symtab_bytes(struct symtab *symtab)
{
	const struct symtab_arrays *a = &symtab->arrays;
	size_t n = sizeof(*symtab) + a->text_size;

	n += a->n *
	     (sizeof(*a->starts) + sizeof(*a->sizes) + sizeof(*a->names) + sizeof(*a->outer));
	pthread_mutex_lock(&symtab->lock);
	n += symtab_names_bytes(symtab->names);
	pthread_mutex_unlock(&symtab->lock);
	return n;
}

struct symtab *symtab_free(struct symtab *symtab)
{
	if (!symtab)
		return NULL;
	symtab_names_free(symtab->names);
	symtab_arrays_fini(&symtab->arrays);
	pthread_mutex_destroy(&symtab->lock);
	free(symtab);
	return NULL;
}

void symtab_freep(struct symtab **symtab)
{
	symtab_free(*symtab);
}
