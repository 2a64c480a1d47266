/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/symbol/symtab_names.h"

#include <stdlib.h>
#include <string.h>

struct slot {
	uint32_t function;
	char *name; /* name of the function; NULL: the slot is free */
};

/* A hash table with open addressing. Some slots are always free, so that searches end. */
struct symtab_names {
	struct slot *slots;
	size_t n, allocated; /* n: number of slots in use; allocated: number of all slots, a
				power of two or 0 */
	size_t text_bytes;
};

struct symtab_names *symtab_names_new(void)
{
	return calloc(1, sizeof(struct symtab_names));
}

struct symtab_names *symtab_names_free(struct symtab_names *names)
{
	if (!names)
		return NULL;
	for (size_t i = 0; i < names->allocated; i++)
		free(names->slots[i].name);
	free(names->slots);
	free(names);
	return NULL;
}

/* Returns the slot that holds the function's name. If there is none, returns the free slot in which
 * the name would be stored. */
static struct slot *slot_of(struct slot *slots, size_t allocated, uint32_t function)
{
	size_t i = function * UINT32_C(2654435761);

	while (slots[i & (allocated - 1)].name && slots[i & (allocated - 1)].function != function)
		i++;
	return &slots[i & (allocated - 1)];
}

const char *symtab_names_find(const struct symtab_names *names, uint32_t function)
{
	return names->allocated ? slot_of(names->slots, names->allocated, function)->name : NULL;
}

static int names_grow(struct symtab_names *names)
{
	size_t more = names->allocated ? names->allocated * 2 : 16;
	struct slot *slots = calloc(more, sizeof(*slots));

	if (!slots)
		return -1;
	for (size_t i = 0; i < names->allocated; i++) {
		if (names->slots[i].name)
			*slot_of(slots, more, names->slots[i].function) = names->slots[i];
	}
	free(names->slots);
	names->slots = slots;
	names->allocated = more;
	return 0;
}

const char *symtab_names_add(struct symtab_names *names, uint32_t function, const char *name)
{
	struct slot *slot;
	char *copy;

	if (names->n + names->n / 2 >= names->allocated && names_grow(names) < 0)
		return NULL;
	copy = strdup(name);
	if (!copy)
		return NULL;
	slot = slot_of(names->slots, names->allocated, function);
	*slot = (struct slot){ function, copy };
	names->n++;
	names->text_bytes += strlen(copy) + 1;
	return copy;
}

size_t symtab_names_bytes(const struct symtab_names *names)
{
	return sizeof(*names) + names->allocated * sizeof(*names->slots) + names->text_bytes;
}
