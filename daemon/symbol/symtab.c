/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/symbol/symtab.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "common/demangle.h"
#include "common/search.h"
#include "daemon/symbol/symtab_build.h"
#include "daemon/symbol/symtab_names.h"

/*
 * maximum number of functions nested in each other that are tried for an address, from the
 * innermost one outwards; only hostile files nest functions deeper
 */
#define OUTWARD_MAX 64

/* The symbol table of a file, and a cache of the names that were looked up. */
struct symtab {
	struct symtab_arrays arrays;
	pthread_mutex_t lock; /* protects `names` */
	struct symtab_names *names;
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
	symtab->names = symtab_names_new();
	if (!symtab->names) {
		symtab_free(symtab);
		return -ENOMEM;
	}
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

	if (!symtab_text_get(&symtab->arrays.names, i, name))
		return NULL;
	if (demangle_is_candidate(name)) {
		if (!symtab->demangler.demangle)
			readable = demangle(name, buffer, sizeof(buffer));
		else if (symtab->demangler.demangle(symtab->demangler.context, name, buffer))
			readable = buffer;
	}
	return symtab_names_add(symtab->names, (uint32_t)i, readable);
}

/*
 * Returns the readable name of the function with index i. NULL if it has none, or when out of
 * memory.
 */
static const char *readable_name(struct symtab *symtab, size_t i)
{
	const char *name;

	if (!symtab_text_has(&symtab->arrays.names, i))
		return NULL;
	pthread_mutex_lock(&symtab->lock);
	name = symtab_names_find(symtab->names, (uint32_t)i);
	if (!name)
		name = name_add(symtab, i);
	pthread_mutex_unlock(&symtab->lock);
	return name;
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
	n += symtab_names_bytes(symtab->names);
	pthread_mutex_unlock(&symtab->lock);
	return n;
}

struct symtab *symtab_free(struct symtab *symtab)
{
	if (!symtab)
		return NULL;
	if (symtab->demangler.free_context)
		symtab->demangler.free_context(symtab->demangler.context);
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
