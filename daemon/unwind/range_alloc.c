/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/unwind/range_alloc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int range_alloc_init(struct range_alloc *space, uint32_t first, uint32_t end)
{
	*space = (struct range_alloc){ .allocated = 64 };
	space->free = calloc(space->allocated, sizeof(*space->free));
	if (!space->free)
		return -ENOMEM;
	space->free[0] = (struct unwind_range){ first, end - first };
	space->n_free = end > first;
	return 0;
}

void range_alloc_fini(struct range_alloc *space)
{
	free(space->free);
	*space = (struct range_alloc){ 0 };
}

static void range_remove(struct range_alloc *space, size_t i)
{
	space->n_free--;
	memmove(&space->free[i], &space->free[i + 1], (space->n_free - i) * sizeof(space->free[0]));
}

int range_alloc_take(struct range_alloc *space, uint32_t n, uint32_t *first_out)
{
	for (size_t i = 0; i < space->n_free; i++) {
		struct unwind_range *range = &space->free[i];

		if (range->n < n)
			continue;
		*first_out = range->first;
		range->first += n;
		range->n -= n;
		if (!range->n)
			range_remove(space, i);
		space->used += n;
		return 0;
	}
	return -ENOSPC;
}

static int range_insert(struct range_alloc *space, size_t i, struct unwind_range range)
{
	struct unwind_range *grown;

	if (space->n_free == space->allocated) {
		grown = reallocarray(space->free, 2 * space->allocated, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		space->free = grown;
		space->allocated *= 2;
	}
	memmove(&space->free[i + 1], &space->free[i], (space->n_free - i) * sizeof(space->free[0]));
	space->free[i] = range;
	space->n_free++;
	return 0;
}

void range_alloc_give(struct range_alloc *space, uint32_t first, uint32_t n)
{
	struct unwind_range *range;
	size_t i = 0;

	while (i < space->n_free && space->free[i].first < first)
		i++;
	range = &space->free[i];
	if (i && range[-1].first + range[-1].n == first) {
		range[-1].n += n;
		if (i < space->n_free && first + n == range->first) {
			range[-1].n += range->n;
			range_remove(space, i);
		}
	} else if (i < space->n_free && first + n == range->first) {
		range->first = first;
		range->n += n;
	} else if (range_insert(space, i, (struct unwind_range){ first, n })) {
		return;
	}
	space->used -= n;
}
