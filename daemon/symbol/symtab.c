/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/symbol/symtab.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "common/demangle.h"
#include "common/hash_table.h"
#include "common/search.h"
#include "daemon/symbol/symtab_build.h"

/*
 * maximum number of functions nested in each other that are tried for an address, from the
 * innermost one outwards; only hostile files nest functions deeper
 */
#define OUTWARD_MAX 64

/* A readable name that was looked up: few of the many functions of a file have one. */
struct name {
	uint64_t function; /* index of the function */
	UT_hash_handle hh;
	char text[];
};

/* The symbol table of a file, and a cache of the names that were looked up. */
struct symtab {
	struct symtab_arrays arrays;
	pthread_mutex_t lock; /* protects the members up to the empty line */
	struct name *names;
	size_t names_bytes; /* what they take beside HASH_OVERHEAD() */

	struct symtab_demangler demangler;
};

int symtab_from_arrays(struct symtab_arrays *arrays, struct symtab **out)
{
	struct symtab *symtab = calloc(1, sizeof(*symtab));

	if (!symtab) {
		symtab_arrays_fini(arrays);
		return -ENOMEM;
	}
	pthread_mutex_init(&symtab->lock, NULL);
	symtab->arrays = *arrays;
	*arrays = (struct symtab_arrays){ 0 };
	*out = symtab;
	return 0;
}

void symtab_set_demangler(struct symtab *symtab, const struct symtab_demangler *demangler)
{
	symtab->demangler = *demangler;
}

int symtab_load(const struct elf_source *source, const struct symtab_aids *aids,
		struct symtab **out)
{
	struct symtab_arrays arrays = { 0 };
	int r = symtab_build(source, aids, &arrays);

	return r ? r : symtab_from_arrays(&arrays, out);
}

/*
 * Returns the index of the innermost function that contains the address. The address is relative to
 * a->base. Returns a->n if no function contains it.
 */
static size_t function_find(const struct symtab_arrays *a, uint32_t address)
{
	size_t at = SEARCH(a->n, i, a->starts[i] <= address);

	if (!at)
		return a->n;
	at--;
	for (int i = 0; i < OUTWARD_MAX; i++) {
		if (address - a->starts[at] < a->sizes[at])
			return at;
		if (!a->outer || a->outer[at] == SYMTAB_NO_OUTER)
			break;
		at = a->outer[at];
	}
	return a->n;
}

/* Unpacks the name of the function with index i, demangles it and adds it to the cache. */
static const char *name_add(struct symtab *symtab, size_t i)
{
	char name[ELF_NAME_BYTES_MAX], buffer[DEMANGLE_OUTPUT_MAX];
	const char *readable = name;
	struct name *added;
	size_t bytes;

	if (!symtab_text_get(&symtab->arrays.names, i, name))
		return NULL;
	if (demangle_is_candidate(name)) {
		if (!symtab->demangler.demangle)
			readable = demangle(name, buffer, sizeof(buffer));
		else if (symtab->demangler.demangle(symtab->demangler.context, name, buffer))
			readable = buffer;
	}
	bytes = sizeof(*added) + strlen(readable) + 1;
	added = calloc(1, bytes);
	if (!added)
		return NULL;
	added->function = i;
	strcpy(added->text, readable);
	HASH_ADD(hh, symtab->names, function, sizeof(added->function), added);
	if (!HASH_HAS(added)) {
		free(added);
		return NULL;
	}
	symtab->names_bytes += bytes - sizeof(added->hh);
	return added->text;
}

/*
 * Returns the readable name of the function with index i. NULL if it has none, or when out of
 * memory.
 */
static const char *readable_name(struct symtab *symtab, size_t i)
{
	const uint64_t function = i;
	const char *text;
	struct name *name;

	if (!symtab_text_has(&symtab->arrays.names, i))
		return NULL;
	pthread_mutex_lock(&symtab->lock);
	HASH_FIND(hh, symtab->names, &function, sizeof(function), name);
	text = name ? name->text : name_add(symtab, i);
	pthread_mutex_unlock(&symtab->lock);
	return text;
}

bool symtab_lookup(struct symtab *symtab, uint64_t address, const char **name_out,
		   uint64_t *start_out)
{
	const struct symtab_arrays *a = &symtab->arrays;
	uint64_t offset = address - a->base;
	size_t i;

	i = offset <= UINT32_MAX ? function_find(a, (uint32_t)offset) : a->n;
	if (i == a->n)
		return false;
	*name_out = readable_name(symtab, i);
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

	return a->n == b->n && a->base == b->base && symtab_text_equal(&a->names, &b->names) &&
	       (!a->n || (!memcmp(a->starts, b->starts, a->n * sizeof(*a->starts)) &&
			  !memcmp(a->sizes, b->sizes, a->n * sizeof(*a->sizes))));
}

size_t symtab_bytes(struct symtab *symtab)
{
	const struct symtab_arrays *a = &symtab->arrays;
	size_t n = sizeof(*symtab) + symtab_text_bytes(&a->names);

	n += a->n * (sizeof(*a->starts) + sizeof(*a->sizes));
	n += a->outer ? a->n * sizeof(*a->outer) : 0;
	pthread_mutex_lock(&symtab->lock);
	n += symtab->names_bytes + HASH_OVERHEAD(hh, symtab->names);
	pthread_mutex_unlock(&symtab->lock);
	return n;
}

struct symtab *symtab_free(struct symtab *symtab)
{
	struct name *name, *next;

	if (!symtab)
		return NULL;
	if (symtab->demangler.free_context)
		symtab->demangler.free_context(symtab->demangler.context);
	HASH_ITER (hh, symtab->names, name, next) {
		HASH_DEL(symtab->names, name);
		free(name);
	}
	symtab_arrays_fini(&symtab->arrays);
	pthread_mutex_destroy(&symtab->lock);
	free(symtab);
	return NULL;
}

void symtab_freep(struct symtab **symtab)
{
	symtab_free(*symtab);
}
